"""BM25Index: the public face of the core."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from bm25rag.analysis.analyzer import Analyzer
from bm25rag.reader import Text
from bm25rag.saving import Saver
from bm25rag.scoring.variants import DeltaOn, Parameters, VariantName
from bm25rag.search.snapshot import Snapshot
from bm25rag.writer import OnDuplicate


class _Unchanged:
    """Stands for an argument of ``tune`` that is not given."""

    def __repr__(self) -> str:
        return "<unchanged>"


_KEEP: Any = _Unchanged()


class BM25Index(Saver):
    """An exact BM25 index that can be updated, filtered, tuned and saved.

    Reading is safe from many threads while one writes: a reader sees the state before
    or after a write, never between. The index can be pickled and copied; a copy is an
    index of its own, in memory.

    Parameters
    ----------
    analyzer
        How texts and queries become terms; ``None`` for ``Analyzer()``, English.
    variant
        ``"lucene"``, ``"robertson"``, ``"atire"``, ``"bm25l"``, ``"bm25+"``,
        ``"tfldp"`` or ``"tfidf"``; see ``bm25rag.scoring.variants``.
    k1
        Saturation of the term frequency, ``0 <= k1 <= 1e30``.
    b
        Strength of the length normalisation, ``0 <= b <= 1``.
    delta
        Lower bound of BM25L, BM25+ and TF_l∘δ∘p; ``None`` for the variant's default.
    delta_on
        ``"all"`` adds the lower bound for every query term, as BM25S does;
        ``"matched"`` for those that the document contains, as Lv & Zhai do.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a parameter is outside its formula's domain.

    Examples
    --------
    >>> index = BM25Index.from_texts(["A cat sat.", "Dogs run.", "Cats and dogs."])
    >>> [hit.id for hit in index.search("cats")]
    ['0', '2']
    """

    def __init__(
        self,
        analyzer: Analyzer | None = None,
        variant: VariantName = "lucene",
        k1: float = 1.2,
        b: float = 0.75,
        delta: float | None = None,
        delta_on: DeltaOn = "all",
    ) -> None:
        if analyzer is not None and not isinstance(analyzer, Analyzer):
            hint = (
                f" {analyzer!r}: write Analyzer({analyzer!r})" if isinstance(analyzer, str) else ""
            )
            raise TypeError(
                f"analyzer must be an Analyzer or None, got {type(analyzer).__name__}{hint}"
            )
        parameters = Parameters(variant, k1, b, delta, delta_on)
        self._snapshot = Snapshot((), parameters, Analyzer() if analyzer is None else analyzer)
        self._next_id = 0
        self._probe: dict[str, str] = {}
        self._extra = {}
        self._why_read_only: str | None = None
        self._store, self._source, self._kept = None, None, None
        self._renew_lock()

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[Text],
        ids: Iterable[str] | None = None,
        metadata: Iterable[dict[str, Any] | None] | None = None,
        payloads: Iterable[bytes | None] | None = None,
        *,
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
        **settings: Any,
    ) -> Self:
        """Make an index and add texts to it, in one call.

        Parameters
        ----------
        texts, ids, metadata, payloads, store_text, on_duplicate, progress, threads
            As in ``add``.
        **settings
            As in the constructor: ``analyzer``, ``variant``, ``k1``, ``b`` ....
        """
        index = cls(**settings)
        index.add(texts, ids, metadata, payloads, store_text, on_duplicate, progress, threads)
        return index

    # --- views -------------------------------------------------------------------

    def tune(
        self,
        variant: VariantName = _KEEP,
        k1: float = _KEEP,
        b: float = _KEEP,
        delta: float | None = _KEEP,
        delta_on: DeltaOn = _KEEP,
    ) -> Self:
        """Return a read-only view of the same documents under other parameters.

        Parameters that are not given stay; a delta is dropped if the new variant has none.
        The view keeps the documents of this moment, whatever is written later.

        Parameters
        ----------
        variant, k1, b, delta, delta_on
            As in the constructor.

        Raises
        ------
        TypeError
            If a value has the wrong type.
        ValueError
            If a value is outside its formula's domain.
        """
        given = {"variant": variant, "k1": k1, "b": b, "delta": delta, "delta_on": delta_on}
        given = {name: value for name, value in given.items() if value is not _KEEP}
        snapshot = self._snapshot
        parameters = snapshot.parameters.changed(given)
        tuned = Snapshot(snapshot.views, parameters, snapshot.analyzer)
        return self._view(tuned, "a view made by tune()")

    def snapshot(self) -> Self:
        """Return a read-only index of the documents of this moment, whatever is written later."""
        return self._view(self._snapshot, "a snapshot")

    def _view(self, snapshot: Snapshot, why: str) -> Self:
        view = type(self)(snapshot.analyzer)
        view._snapshot, view._why_read_only = snapshot, why
        view._next_id, view._probe, view._extra = self._next_id, self._probe, self._extra
        return view

    def reanalyze(self, analyzer: Analyzer | None = None) -> Self:
        """Return a new index of the same documents, analysed anew from their stored texts.

        For a stemmer that has changed since, or another analyzer.

        Parameters
        ----------
        analyzer
            The new analyzer; ``None`` for the present settings.

        Raises
        ------
        ValueError
            If the text of a document is not stored.
        """
        parameters, snapshot = self._snapshot.parameters, self._snapshot
        analyzer = snapshot.analyzer if analyzer is None else analyzer
        index = type(self)(analyzer, **parameters.to_dict())
        documents = [snapshot.document(*place) for place in snapshot.passing(None)]
        bare = [document.id for document in documents if document.text is None]
        if bare:
            raise ValueError(
                f"the texts of {len(bare)} of {len(documents)} documents are not stored "
                f"({bare[0]!r} ...): index them again from their source"
            )
        index.add_documents(documents)
        index._next_id = self._next_id
        return index

    def __repr__(self) -> str:
        settings = f"variant={self.variant!r}, analyzer={self.analyzer!r}"
        noun = "document" if len(self) == 1 else "documents"
        return f"BM25Index({len(self)} {noun}, {settings})"

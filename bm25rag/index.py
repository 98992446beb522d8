"""BM25Index: the public face of the core."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bm25rag._types import check_choice
from bm25rag.analysis import Analyzer, Tokenizer
from bm25rag.errors import ReadOnlyError
from bm25rag.reader import Text
from bm25rag.snapshot import Snapshot
from bm25rag.store import State, Store, check_extra, read_state, verify_folder
from bm25rag.variants import Parameters
from bm25rag.writer import Writer

_KEEP: Any = object()


class BM25Index(Writer):
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
        ``"tfldp"`` or ``"tfidf"``; see ``bm25rag.variants``.
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
        variant: str = "lucene",
        k1: float = 1.2,
        b: float = 0.75,
        delta: float | None = None,
        delta_on: str = "all",
    ) -> None:
        if analyzer is not None and not isinstance(analyzer, Analyzer):
            raise TypeError(f"analyzer must be an Analyzer or None, got {type(analyzer).__name__}")
        self._analyzer = Analyzer() if analyzer is None else analyzer
        self._snapshot = Snapshot((), Parameters(variant, k1, b, delta, delta_on))
        self._next_id = 0
        self._probe: dict[str, str] = {}
        self._extra: dict[str, Any] = {}
        self._why_read_only: str | None = None
        self._store: Store | None = None
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
        on_duplicate: str = "error",
        progress: bool = False,
        **settings: Any,
    ) -> Self:
        """Make an index and add texts to it, in one call.

        Parameters
        ----------
        texts, ids, metadata, payloads, store_text, on_duplicate, progress
            As in ``add``.
        **settings
            As in the constructor: ``analyzer``, ``variant``, ``k1``, ``b`` ....
        """
        index = cls(**settings)
        index.add(texts, ids, metadata, payloads, store_text, on_duplicate, progress)
        return index

    # --- parameters ---------------------------------------------------------------

    def tune(
        self,
        variant: str = _KEEP,
        k1: float = _KEEP,
        b: float = _KEEP,
        delta: float | None = _KEEP,
        delta_on: str = _KEEP,
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
        return self._view(Snapshot(snapshot.parts, parameters), "a view made by tune()")

    def _view(self, snapshot: Snapshot, why: str) -> Self:
        view = type(self)(self._analyzer)
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
        index = type(self)(self._analyzer if analyzer is None else analyzer, **asdict(parameters))
        documents = [snapshot.document(*place) for place in snapshot.passing(None)]
        bare = [document.id for document in documents if document.text is None]
        if bare:
            raise ValueError(
                f"the texts of {len(bare)} documents are not stored ({bare[0]!r} ...): "
                "index them again from their source"
            )
        index.add(
            [document.text or "" for document in documents],
            [document.id for document in documents],
            [document.metadata for document in documents],
            [document.payload for document in documents],
        )
        index._next_id = self._next_id
        return index

    # --- saving -------------------------------------------------------------------

    @property
    def extra(self) -> dict[str, Any]:
        """What was last saved beside the index for a caller's own use; a fresh copy."""
        return deepcopy(self._extra)

    def save(
        self,
        path: str | PathLike[str],
        extra: dict[str, Any] | None = None,
        overwrite: bool = True,
    ) -> None:
        """Save the index in a folder, in one atomic step.

        A folder that holds an index is replaced: until the last moment it opens to the
        old one, then to the new.

        Parameters
        ----------
        path
            The folder; made if it is missing.
        extra
            JSON values to keep with the index, in the same atomic step: the settings of
            an adapter, say. ``None`` keeps those of the last time.
        overwrite
            Whether to replace an index that the folder holds.

        Raises
        ------
        FileExistsError
            If the folder holds an index and ``overwrite`` is false.
        NotAnIndexError
            If the folder holds something else.
        LockedError
            If a writer has the folder open.
        OSError
            If the disk refuses; what the folder held is still there.
        """
        folder = Path(path).resolve()
        if extra is not None:
            self._extra = check_extra(extra)
        if self._store is not None and self._store.holds(folder):
            self.commit()
            return
        with self._locked():
            Store.write(folder, self._state(), overwrite)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        mode: str = "r",
        mmap: bool = True,
        tokenizer: Tokenizer | None = None,
        verify: bool = False,
    ) -> Self:
        """Open a saved index.

        Parameters
        ----------
        path
            The folder.
        mode
            ``"r"`` for a reader; ``"w"`` for the one writer, which locks the folder and
            has ``commit``, ``rollback`` and ``close``.
        mmap
            Whether to map the files, which takes milliseconds and shares memory with
            other processes, or to read them.
        tokenizer
            The callable of an analyzer that was made with one.
        verify
            Whether to check every byte now, and not each part before its first use.

        Raises
        ------
        NotAnIndexError
            If the folder holds no index.
        FormatVersionError
            If a newer bm25rag wrote it.
        CorruptIndexError
            If a file is damaged.
        LockedError
            If ``mode`` is ``"w"`` and another writer has the folder open.
        TokenizerRequiredError
            If the analyzer was made with a callable and ``tokenizer`` is missing.

        Warns
        -----
        AnalyzerChangedWarning
            If the installed stemmer gives other stems than those indexed.
        """
        check_choice("mode", mode, ("r", "w"))
        folder = Path(path).resolve()
        store = Store.lock(folder) if mode == "w" else None
        try:
            state = (
                read_state(folder, mmap, tokenizer)
                if store is None
                else store.read(mmap, tokenizer)
            )
            if verify:
                state.check_all()
        except BaseException:
            if store is not None:
                store.close()
            raise
        index = cls.__new__(cls)
        index.__setstate__(state)
        index._store = store
        if store is None:
            index._why_read_only = "an index opened with mode='r'"
        return index

    @classmethod
    def verify(cls, path: str | PathLike[str]) -> None:
        """Check every byte of a saved index.

        Parameters
        ----------
        path
            The folder.

        Raises
        ------
        CorruptIndexError
            If a file is damaged; the message names it.
        """
        verify_folder(Path(path))

    def commit(self) -> None:
        """Make the changes since the last commit durable, in one atomic step.

        Raises
        ------
        ReadOnlyError
            If the index was not opened with ``mode="w"``.
        OSError
            If the disk refuses; the last commit is still there.
        """
        with self._writing():
            self._writer().commit(self._state())

    def rollback(self) -> None:
        """Go back to the last commit.

        Raises
        ------
        ReadOnlyError
            If the index was not opened with ``mode="w"``.
        """
        with self._writing():
            self._load(self._writer().last)

    def close(self) -> None:
        """Give up the writer's lock, without a commit; without a lock, do nothing."""
        with self._locked():
            if self._store is not None:
                self._store.close()
                self._store = None
                self._why_read_only = "a writer that was closed"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._store is not None:
                self.commit() if error is None else self.rollback()
        finally:
            self.close()

    def _writer(self) -> Store:
        if self._store is None:
            raise ReadOnlyError(
                "commit and rollback need an index opened with mode='w'; use save(path)"
            )
        return self._store

    # --- state ----------------------------------------------------------------------

    def _state(self) -> State:
        snapshot = self._snapshot
        return State(
            self._analyzer,
            snapshot.parameters,
            list(snapshot.parts),
            self._next_id,
            self._probe,
            self._extra,
        )

    def _load(self, state: State) -> None:
        self._analyzer = state.analyzer
        self._snapshot = Snapshot(state.parts, state.parameters)
        self._next_id, self._probe, self._extra = state.next_id, state.probe, state.extra

    def __getstate__(self) -> State:
        return self._state()

    def __setstate__(self, state: State) -> None:
        self._load(state)
        self._why_read_only, self._store = None, None
        self._renew_lock()

    def __repr__(self) -> str:
        settings = f"variant={self.variant!r}, analyzer={self.analyzer!r}"
        return f"BM25Index({len(self)} documents, {settings})"

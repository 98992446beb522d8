"""Systems that a benchmark can run: bm25rag, other engines, and anything a factory makes.

Each runs in its own process (see ``worker``), takes raw texts, and returns ids, best first, with
scores if it has them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bm25rag.documents import Document
from bm25rag.scoring.variants import VARIANTS

__all__ = ["SYSTEMS", "System", "make_system"]

Found = list[tuple[str, float]]


class System:
    """The interface of a system; every system has ``build`` and ``search``."""

    def build(self, documents: Sequence[Document]) -> None:
        """Index documents."""
        raise NotImplementedError

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k, best first."""
        raise NotImplementedError

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        """Answer many queries; one by one unless the system has a better way."""
        for query in queries:
            self.search(query, k)

    can_save = False

    def save(self, folder: Path) -> None:
        """Write the index to a folder."""
        raise NotImplementedError

    def load(self, folder: Path) -> None:
        """Open the index that ``save`` wrote."""
        raise NotImplementedError


class Ours(System):
    """bm25rag, by variant."""

    can_save = True

    def __init__(self, variant: str = "lucene") -> None:
        from bm25rag.index import BM25Index

        self._type, self._variant = BM25Index, variant
        self._index = BM25Index()

    def build(self, documents: Sequence[Document]) -> None:
        """Index documents."""
        variant: Any = self._variant
        self._index = self._type(variant=variant)
        self._index.add_documents(documents)

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k."""
        return [(hit.id, hit.score) for hit in self._index.search(query, k=k)]

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        """Answer queries on threads."""
        self._index.search_batch(queries, k=k, threads=threads).ids()

    def save(self, folder: Path) -> None:
        """Write the index."""
        self._index.save(folder)

    def load(self, folder: Path) -> None:
        """Map the index into memory."""
        self._index = self._type.open(folder)


class Bm25s(System):
    """bm25s, by backend, with its English stop words and PyStemmer, as in its README."""

    can_save = True

    def __init__(self, backend: str) -> None:
        self._bm25s = importlib.import_module("bm25s")
        if backend != "numpy":
            importlib.import_module(backend)
        self._stemmer = importlib.import_module("Stemmer").Stemmer("english")
        self._backend = backend
        self._ids: list[str] = []

    def _tokens(self, texts: Sequence[str]) -> Any:
        return self._bm25s.tokenize(
            list(texts), stopwords="en", stemmer=self._stemmer, show_progress=False
        )

    def build(self, documents: Sequence[Document]) -> None:
        """Index documents."""
        self._ids = [document.id for document in documents]
        backend = "numba" if self._backend == "numba" else "numpy"
        self._index = self._bm25s.BM25(backend=backend)
        self._index.index(
            self._tokens([document.text or "" for document in documents]), show_progress=False
        )
        if backend == "numba":
            self._index.activate_numba_scorer()

    def _retrieve(self, queries: Sequence[str], k: int, threads: int) -> Any:
        """Retrieve for queries that have terms; the Numba backend raises for others."""
        tokens = self._bm25s.tokenize(
            list(queries),
            stopwords="en",
            stemmer=self._stemmer,
            return_ids=False,
            show_progress=False,
        )
        asked = [terms for terms in tokens if terms]
        if not asked:
            return None
        return self._index.retrieve(
            asked,
            k=min(k, self._index.scores["num_docs"]),  # it raises if k is larger
            n_threads=0 if threads == 1 else threads,
            show_progress=False,
            backend_selection=self._backend,
        )

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k, without the documents of score 0 that bm25s adds."""
        found = self._retrieve([query], k, 1)
        if found is None:
            return []
        pairs = zip(found.documents[0].tolist(), found.scores[0].tolist(), strict=True)
        return [(self._ids[row], score) for row, score in pairs if score > 0]

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        """Answer queries on threads."""
        self._retrieve(queries, k, threads)

    def save(self, folder: Path) -> None:
        """Write the index and the ids."""
        self._index.save(str(folder), show_progress=False)
        (folder / "ids.txt").write_text("\n".join(self._ids), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Map the index into memory."""
        self._index = self._bm25s.BM25.load(str(folder), mmap=True, load_corpus=False)
        self._index.backend = "numba" if self._backend == "numba" else "numpy"
        if self._backend == "numba":
            self._index.activate_numba_scorer()
        self._ids = (folder / "ids.txt").read_text(encoding="utf-8").split("\n")


class RankBm25(System):
    """rank_bm25's BM25Okapi on lower-cased words, as in its README."""

    def __init__(self) -> None:
        self._type = importlib.import_module("rank_bm25").BM25Okapi

    def build(self, documents: Sequence[Document]) -> None:
        """Index documents."""
        self._ids = [document.id for document in documents]
        self._index = self._type([(document.text or "").lower().split() for document in documents])

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k."""
        scores = self._index.get_scores(query.lower().split())
        best = (-scores).argsort(kind="stable")[:k].tolist()
        return [(self._ids[row], float(scores[row])) for row in best if scores[row] > 0]


class Tantivy(System):
    """tantivy with its English stemmer; k1 and b are its own, 1.2 and 0.75."""

    def __init__(self) -> None:
        self._tantivy = importlib.import_module("tantivy")

    def build(self, documents: Sequence[Document]) -> None:
        """Index documents."""
        builder = self._tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
        self._index = self._tantivy.Index(builder.build())
        writer = self._index.writer()
        for document in documents:
            writer.add_document(self._tantivy.Document(id=document.id, text=document.text or ""))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k."""
        words = "".join(c if c.isalnum() else " " for c in query).lower()
        if not words.strip():
            return []
        parsed = self._index.parse_query(words, ["text"])
        hits = self._searcher.search(parsed, k).hits
        return [(self._searcher.doc(address)["id"][0], float(score)) for score, address in hits]


class Made(System):
    """A system made by a factory: a callable, or a framework's retriever.

    Parameters
    ----------
    path
        ``module:factory``; the factory takes a list of ``Document`` and returns a callable
        from query and k to ids or (id, score) pairs, or a retriever of LangChain,
        LlamaIndex or Haystack that returns documents whose id is the document's.
    """

    def __init__(self, path: str) -> None:
        module, _, name = path.partition(":")
        self._factory = getattr(importlib.import_module(module), name)

    def build(self, documents: Sequence[Document]) -> None:
        """Call the factory."""
        self._answer = _answering(self._factory(list(documents)))

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k; without scores, scores that decrease by rank."""
        found = list(self._answer(query, k))[:k]
        if all(isinstance(one, str) for one in found):
            return [(id, float(-rank)) for rank, id in enumerate(found)]
        return [(id, float(score)) for id, score in found]


def _answering(made: Any) -> Callable[[str, int], Iterable[Any]]:
    """Return a search function for a factory's result; methods identify frameworks."""
    if hasattr(made, "invoke"):
        return lambda query, k: [one.id for one in made.invoke(query)]
    if hasattr(made, "retrieve"):
        return lambda query, k: [one.node.node_id for one in made.retrieve(query)]
    if hasattr(made, "run"):
        return lambda query, k: [one.id for one in made.run(query=query, top_k=k)["documents"]]
    if callable(made):
        return made  # type: ignore[no-any-return]
    raise TypeError(f"a factory must return a callable or a retriever, got {type(made).__name__}")


SYSTEMS: dict[str, Callable[[], System]] = {
    **{f"bm25rag {name}": partial(Ours, name) for name in VARIANTS},
    **{f"bm25s {name}": partial(Bm25s, name) for name in ("numpy", "numba", "jax")},
    "rank_bm25": RankBm25,
    "tantivy": Tantivy,
}


def make_system(name: str) -> System:
    """Make a system in this process.

    Parameters
    ----------
    name
        One of ``SYSTEMS``, or ``module:factory``.

    Raises
    ------
    ImportError
        If its package is not installed.
    ValueError
        If there is no system of that name.
    """
    if name in SYSTEMS:
        return SYSTEMS[name]()
    if ":" not in name:
        raise ValueError(f"unknown system {name!r}; systems are {list(SYSTEMS)} or module:factory")
    return Made(name)

"""The other engines for ``benchmarks.large``, from raw text, each with its English analysis.

All use both cores to build where they can, and are opened from their folder to serve. tantivy
returns ids and texts, as we do; bm25s and PISA return numbers, and keep no texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.engines import K1, B
from bm25rag.kernels.backend import cores


class Bm25s:
    """bm25s with its numba backend, all in memory while it is built, mapped when it serves."""

    def build(self, texts: Iterator[str], folder: Path, memory: int) -> None:
        import bm25s

        index = bm25s.BM25(k1=K1, b=B, backend="numba")
        index.index(self._terms(list(texts)), show_progress=False)
        index.save(folder, show_progress=False)

    def open(self, folder: Path) -> Callable[[str], object]:
        import bm25s

        index = bm25s.BM25.load(folder, mmap=True, load_corpus=False)
        index.backend = "numba"
        index.activate_numba_scorer()

        def answer(question: str) -> object:
            return index.retrieve(
                self._terms([question]),
                k=10,
                n_threads=0,
                show_progress=False,
                backend_selection="numba",
            )

        return answer

    def _terms(self, texts: list[str]) -> Any:
        import bm25s
        import Stemmer

        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)


class Tantivy:
    """tantivy, with as much memory for its threads as we have."""

    def build(self, texts: Iterator[str], folder: Path, memory: int) -> None:
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field("text", stored=True, tokenizer_name="en_stem", index_option="freq")
        folder.mkdir(parents=True)
        index = tantivy.Index(builder.build(), path=str(folder))
        writer = index.writer(memory, cores())
        for number, text in enumerate(texts):
            writer.add_document(tantivy.Document(id=str(number), text=text))
        writer.commit()
        writer.wait_merging_threads()

    def open(self, folder: Path) -> Callable[[str], object]:
        import tantivy

        index = tantivy.Index.open(str(folder))
        searcher = index.searcher()

        def answer(question: str) -> object:
            hits = searcher.search(index.parse_query(question, ["text"]), 10, count=False).hits
            found = [searcher.doc(address) for _, address in hits]
            return [(document["id"][0], document["text"][0]) for document in found]

        return answer


class Pisa:
    """PISA by block-max WAND, its default."""

    def build(self, texts: Iterator[str], folder: Path, memory: int) -> None:
        documents = ({"docno": str(number), "text": text} for number, text in enumerate(texts))
        self._at(folder).index(documents)
        self.open(folder)  # writes down what BM25 needs

    def open(self, folder: Path) -> Callable[[str], object]:
        from bm25rag.evaluation.systems.pisa import PisaSearcher

        searcher = PisaSearcher(self._at(folder), K1, B)
        return lambda question: searcher.search([question], 10, 1, "block_max_wand")

    def _at(self, folder: Path) -> Any:
        from pyterrier_pisa import PisaIndex

        analysis = {"stemmer": "porter2", "stops": "terrier"}
        return PisaIndex(str(folder), text_field="text", threads=cores(), **analysis)


PEERS: dict[str, Callable[[], Any]] = {"bm25s": Bm25s, "tantivy": Tantivy, "PISA": Pisa}

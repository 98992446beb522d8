"""Further analyses beside a language's own: quality on judged collections, and what they cost.

``python -m benchmarks.analyses`` measures, and writes the tables of ``docs/languages.md``. Words of
dictionaries need jieba, janome and pythainlp; collections whose package is missing are left out.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.corpora import COLLECTIONS
from benchmarks.fields import K, best, search_each, texts
from benchmarks.quality import LANGUAGES
from benchmarks.report import put_into, table
from bm25rag import Analyzer, BM25Index
from bm25rag.evaluation import Collection, Evaluation, compare, evaluate, load_beir, run_of
from bm25rag.readers import read_queries
from bm25rag.readers.lines import find_packed

PAGE = Path(__file__).parents[1] / "docs" / "languages.md"
# The further analysis of a language with stems, and the weights that are tried.
RUNS, OF_RUNS, OF_WORDS = Analyzer(None, ngrams=4), (0.1, 0.2), (0.3, 1.0)
TIMED = ("xquad-de", "scifact", "enwiki-150k")


def dictionary(language: str) -> Analyzer | None:
    """Return the analysis by the words of a dictionary, if a package is installed."""
    find: Callable[[str], list[str]]
    try:
        if language == "chinese":
            find = importlib.import_module("jieba").lcut
        elif language == "japanese":
            module = importlib.import_module("janome.tokenizer")
            find = partial(_listed, module.Tokenizer(wakati=True).tokenize)
        else:
            find = importlib.import_module("pythainlp.tokenize").word_tokenize
    except ImportError:
        return None
    return Analyzer(tokenizer=partial(_words, find))


def _listed(find: Callable[[str], Iterator[str]], text: str) -> list[str]:
    return list(find(text))


def _words(find: Callable[[str], list[str]], text: str) -> list[str]:
    return [word.lower() for word in find(text) if any(map(str.isalnum, word))]


def quality() -> Iterator[list[str]]:
    """Yield a row for each collection: before, and with each weight."""
    for name, language in LANGUAGES.items():
        runs = language not in ("chinese", "japanese", "thai")
        further = RUNS if runs else dictionary(language)
        if further is None:
            continue
        collection, analyzer = load_beir(COLLECTIONS / name), Analyzer(language)
        documents = list(collection.read())
        plain, index = BM25Index(analyzer), BM25Index(Analyzer(language, also=[(further, 1.0)]))
        for one in (plain, index):
            one.add_documents(documents)

        def judged(one: BM25Index, of: Collection = collection) -> Evaluation:
            return evaluate(run_of(one, of.queries, K), of.qrels, ["nDCG@10"])

        before = judged(plain)
        cells = [f"{100 * before.mean['nDCG@10']:.2f}"]
        for weight in OF_RUNS if runs else OF_WORDS:
            found = compare(judged(index.tune(also=[weight])), before, "nDCG@10")
            cells.append(f"{100 * found.difference:+.2f} (p = {found.p_value:.3f})")
        postings = [one.stats()["postings"] for one in (plain, index)]
        kind = "4-grams" if runs else "words of a dictionary"
        yield [name, kind, *cells, f"{postings[1] / postings[0]:.1f}"]
        print(*cells, name, flush=True)


def costs(name: str) -> list[str]:
    """Return what 4-grams cost beside the stems of a collection's language."""
    language = LANGUAGES.get(name, "english")
    given = [f"{one['title']} {one['text']}".strip() for one in texts(name)]
    path = find_packed(COLLECTIONS / name / "queries.jsonl")
    assert path is not None
    asked = [query.text for query in read_queries(path)][:1000]
    analyzers = [Analyzer(language), Analyzer(language, also=[(RUNS, 0.1)])]
    made: list[BM25Index] = []

    def build(analyzer: Analyzer) -> None:
        made.append(BM25Index.from_texts(given, threads=1, analyzer=analyzer))

    builds = best([partial(build, one) for one in analyzers], 2)
    indexes = made[-2:]
    single = best([partial(search_each, one, asked) for one in indexes], 5)
    batch = best([partial(one.search_batch, asked, K, threads=1) for one in indexes], 5)
    stats = [one.stats() for one in indexes]
    each = len(asked) / 1e6
    return [
        name,
        *(f"{stats[0][key]:,} to {stats[1][key]:,}" for key in ("postings", "impact_codes")),
        " to ".join(f"{one['bytes'] / (1 << 20):.1f}" for one in stats) + " MiB",
        " to ".join(f"{one:.2f}" for one in builds) + " s",
        " to ".join(f"{one / each:.0f}" for one in single) + " us",
        " to ".join(f"{one / each:.0f}" for one in batch) + " us",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("quality", "costs"), help="measure one of the tables")
    only = parser.parse_args().only
    if only != "costs":
        weights = [f"{one:g} or {two:g}" for one, two in zip(OF_RUNS, OF_WORDS, strict=True)]
        heads = ["collection", "further analysis", "without", *weights, "times the postings"]
        put_into(PAGE, "further", [table(heads, quality())])
    if only != "quality":
        heads = ["", "postings", "codes", "bytes", "build", "a search", "in a batch"]
        put_into(PAGE, "further-costs", [table(heads, map(costs, TIMED))])


if __name__ == "__main__":
    main()

"""Quality on judged collections, NDCG@10 times 100, in four tables.

``analysis``: our analysis, none, and that of others. All rank with k1 = 1.2 and b = 0.75. Others
analyse as they do by default for the language, or as for English where they know none.
``accents``: whether accents are folded, for questions as they are and without what Unicode
decomposes into a letter and marks, as people type them in a hurry.
``variants`` and ``words``: the settings of Tables 3 and 2 of the BM25S paper, with its token
pattern, which the paper has for SciFact.

``python -m benchmarks.quality`` prints them; it takes a few minutes and looks at no times.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import COLLECTIONS, read_records
from benchmarks.engines import K1, B
from bm25rag import Analyzer, BM25Index
from bm25rag.analysis import PAPER
from bm25rag.evaluation.systems.base import CannotRunError
from bm25rag.evaluation.systems.lucene import java_class
from bm25rag.scoring.variants import VariantName

DEPTH = 10
LANGUAGES = {
    "cmrc2018-zh": "chinese", "cranfield": "english", "jaquad-ja-half": "japanese",
    "scifact": "english", "xquad-ar": "arabic", "xquad-de": "german", "xquad-en": "english",
    "xquad-es": "spanish", "xquad-ru": "russian", "xquad-th-half": "thai", "xquad-zh": "chinese",
}  # fmt: skip
# What the stemmer or, for want of one, the tokenizer of the others is called.
_CODES = {
    "arabic": "ar", "chinese": "zh", "english": "en", "german": "de", "japanese": "ja",
    "russian": "ru", "spanish": "es", "thai": "th",
}  # fmt: skip

Rankings = Sequence[Sequence[str]]
_LUCENE = {
    "arabic": ".analysis.ar.ArabicAnalyzer", "chinese": ".analysis.cjk.CJKAnalyzer",
    "english": ".analysis.en.EnglishAnalyzer", "german": ".analysis.de.GermanAnalyzer",
    "japanese": ".analysis.ja.JapaneseAnalyzer", "russian": ".analysis.ru.RussianAnalyzer",
    "spanish": ".analysis.es.SpanishAnalyzer", "thai": ".analysis.th.ThaiAnalyzer",
}  # fmt: skip


class NotHereError(Exception):
    """What is to be measured is not installed; the message says what."""


class Collection(NamedTuple):
    """Documents, judged questions and grades."""

    ids: list[str]
    texts: list[str]
    questions: dict[str, str]
    grades: dict[str, dict[str, int]]
    language: str


def load(folder: Path, language: str) -> Collection:
    """Read a collection in BEIR's layout."""
    rows = list(read_records(folder / "corpus.jsonl"))
    grades: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        grades.setdefault(question, {})[document] = int(grade)
    asked = {row["_id"]: row["text"] for row in read_records(folder / "queries.jsonl")}
    return Collection(
        [row["_id"] for row in rows],
        [f"{row.get('title', '')} {row['text']}".strip() for row in rows],
        {name: asked[name] for name in grades},
        grades,
        language,
    )


def by_ours(collection: Collection, analyzer: Analyzer) -> tuple[Rankings, int]:
    """Rank with an analyzer of ours; return how many postings there are, too."""
    index = BM25Index.from_texts(collection.texts, ids=collection.ids, analyzer=analyzer)
    asked = list(collection.questions.values())
    return index.search_batch(asked, k=DEPTH).ids(), int(index.stats()["postings"])


def by_language(collection: Collection) -> tuple[Rankings, int]:
    """Rank as the language's analyzer does."""
    return by_ours(collection, Analyzer(collection.language))


def plain(collection: Collection) -> tuple[Rankings, int]:
    """Rank words as they are: of no language."""
    return by_ours(collection, Analyzer(None))


def by_bm25s(collection: Collection) -> tuple[Rankings, int]:
    """Rank as bm25s does, with its stop words and the Snowball stemmer."""
    try:
        import bm25s
        import Stemmer
    except ImportError as error:
        raise NotHereError("bm25s is not installed") from error
    language = collection.language
    stemmer = Stemmer.Stemmer(language) if language in Stemmer.algorithms() else None
    try:
        bm25s.tokenize(["x"], stopwords=_CODES[language], show_progress=False)
        stopwords: str | list[str] = _CODES[language]
    except ValueError:
        stopwords = []

    def tokens(texts: Sequence[str]) -> object:
        return bm25s.tokenize(texts, stopwords=stopwords, stemmer=stemmer, show_progress=False)

    engine = bm25s.BM25(k1=K1, b=B)
    engine.index(tokens(collection.texts), show_progress=False)
    asked = tokens(list(collection.questions.values()))
    found = engine.retrieve(asked, k=min(DEPTH, len(collection.ids)), show_progress=False)
    rankings = [
        [collection.ids[row] for row, score in zip(rows, scores, strict=True) if score > 0]
        for rows, scores in zip(found.documents.tolist(), found.scores.tolist(), strict=True)
    ]
    return rankings, 0


def by_tantivy(collection: Collection) -> tuple[Rankings, int]:
    """Rank as tantivy does, with its stop words and stemmer where it has the language."""
    try:
        import tantivy
    except ImportError as error:
        raise NotHereError("tantivy is not installed") from error

    def made(filters: Sequence[Any]) -> Any:
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        for one in filters:
            builder = builder.filter(one)
        return builder.build()

    filters = [tantivy.Filter.remove_long(40), tantivy.Filter.lowercase()]
    for make in (tantivy.Filter.stopword, tantivy.Filter.stemmer):
        try:
            made([make(collection.language)])
        except ValueError:
            continue
        filters.append(make(collection.language))
    analyzer = made(filters)
    terms = [analyzer.analyze(text) for text in collection.texts]
    return _rank_terms(
        collection, terms, list(map(analyzer.analyze, collection.questions.values()))
    )


def by_lucene(collection: Collection) -> tuple[Rankings, int]:
    """Rank the terms of Lucene's analyzer of the language."""
    try:
        analyzer = java_class(_LUCENE[collection.language])()
        kind = java_class(".analysis.tokenattributes.CharTermAttribute")
    except (ImportError, CannotRunError) as error:
        raise NotHereError(str(error)) from error

    def terms(text: str) -> list[str]:
        found = []
        with analyzer.tokenStream("text", text) as stream:
            term = stream.addAttribute(kind)
            stream.reset()
            while stream.incrementToken():
                found.append(str(term.toString()))
            stream.end()
        return found

    try:
        documents = [terms(text) for text in collection.texts]
    except java_class("java.lang.UnsupportedOperationException") as error:
        raise NotHereError(str(error)) from error  # Thai needs a Java with its locale data
    return _rank_terms(collection, documents, list(map(terms, collection.questions.values())))


def _rank_terms(
    collection: Collection, documents: Sequence[list[str]], questions: Sequence[list[str]]
) -> tuple[Rankings, int]:
    index = BM25Index.from_texts(documents, ids=collection.ids)
    return index.search_batch(questions, k=DEPTH).ids(), int(index.stats()["postings"])


ENGINES: Mapping[str, Callable[[Collection], tuple[Rankings, int]]] = {
    "none": plain,
    "bm25rag": by_language,
    "bm25s": by_bm25s,
    "tantivy": by_tantivy,
    "Lucene": by_lucene,
}


def measure(collection: Collection, engine: str) -> tuple[float, int]:
    """Return the mean NDCG@10, times 100, and how many postings there are (0 if unknown).

    Raises
    ------
    NotHereError
        If the engine is not installed.
    """
    rankings, postings = ENGINES[engine](collection)
    return _mean(collection, rankings), postings


def _mean(collection: Collection, rankings: Rankings) -> float:
    gained = [
        _ndcg(ranking, grades)
        for ranking, grades in zip(rankings, collection.grades.values(), strict=True)
    ]
    return 100 * sum(gained) / len(gained)


def _ndcg(ranking: Sequence[str], grades: Mapping[str, int]) -> float:
    # The tests' own, so that there is one definition.
    path = Path(__file__).parents[1] / "tests" / "support" / "ndcg.py"
    spec = importlib.util.spec_from_file_location("ndcg", path)
    if spec is None or spec.loader is None:
        raise NotHereError(f"{path} is missing")
    module = sys.modules.get("ndcg")
    if module is None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules["ndcg"] = module
    value: float = module.ndcg(ranking, grades, DEPTH)
    return value


def analysis_table(folder: Path, names: Sequence[str]) -> str:
    """Return what analyses give, in Markdown."""
    lines = [
        f"| collection | language | {' | '.join(ENGINES)} | postings |",
        "|---|---|" + "---|" * (len(ENGINES) + 1),
    ]
    missing: dict[str, str] = {}
    for name in names:
        collection = load(folder / name, LANGUAGES[name])
        cells, postings = [], []
        for engine in ENGINES:
            try:
                value, size = measure(collection, engine)
            except NotHereError as error:
                missing[f"{engine}, {collection.language}"] = str(error)
                cells.append("-")
                continue
            cells.append(f"{value:.2f}")
            postings += [f"{size:,}"] if engine == "bm25rag" else []
        lines.append(f"| {' | '.join([name, collection.language, *cells, *postings])} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join([*lines, *(f"\n{one}: not measured, {why}" for one, why in missing.items())])


def without_accents(text: str) -> str:
    """Return a text without its accents and other marks."""
    parts = unicodedata.normalize("NFD", text)
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


def _by_folding(collection: Collection) -> list[float]:
    typed = {name: without_accents(text) for name, text in collection.questions.items()}
    asked = [collection, collection._replace(questions=typed)]
    analyzers = [Analyzer(collection.language, fold_accents=fold) for fold in (False, "auto")]
    return [_mean(one, by_ours(one, analyzer)[0]) for one in asked for analyzer in analyzers]


class _Columns(NamedTuple):
    """The columns of a table, and how it is filled: settings by name, and their values.

    What the paper has for SciFact, ``published``, is a line of its own.
    """

    names: Sequence[str]
    values: Callable[[Collection], Sequence[float]]
    published: Sequence[float] = ()


# Variant, k1 and b of the paper's Table 3, and what it has for SciFact.
_VARIANTS: tuple[tuple[VariantName, float, float, float], ...] = (
    ("lucene", 1.5, 0.75, 68.7), ("lucene", 1.2, 0.75, 68.0), ("lucene", 0.9, 0.4, 67.6),
    ("robertson", 1.2, 0.75, 68.3), ("atire", 1.2, 0.75, 68.1), ("bm25l", 1.2, 0.75, 68.7),
    ("bm25+", 1.2, 0.75, 68.1),
)  # fmt: skip
# Whether stop words are taken out and words stemmed, in its Table 2; lucene, k1 = 1.5, b = 0.75.
_WORDS = (
    ("both", True, True, 68.7), ("stop words", True, False, 66.2),
    ("stemmer", False, True, 68.5), ("neither", False, False, 66.1),
)  # fmt: skip


def _by_variant(collection: Collection) -> list[float]:
    index = _paper_index(collection, "auto", "auto")
    asked = list(collection.questions.values())
    views = [index.tune(variant=name, k1=k1, b=b) for name, k1, b, _ in _VARIANTS]
    return [_mean(collection, view.search_batch(asked, k=DEPTH).ids()) for view in views]


def _by_words(collection: Collection) -> list[float]:
    asked = list(collection.questions.values())
    return [
        _mean(
            collection,
            _paper_index(collection, "auto" if stop else None, "auto" if stem else None)
            .tune(k1=1.5)
            .search_batch(asked, k=DEPTH)
            .ids(),
        )
        for _, stop, stem, _ in _WORDS
    ]


def _paper_index(collection: Collection, stopwords: Any, stemmer: Any) -> BM25Index:
    analyzer = Analyzer(
        collection.language, token_pattern=PAPER, stopwords=stopwords, stemmer=stemmer
    )
    return BM25Index.from_texts(collection.texts, ids=collection.ids, analyzer=analyzer)


_COLUMNS = {
    "accents": _Columns(
        ["not folded", "folded", "typed without, not folded", "typed without, folded"],
        _by_folding,
    ),
    "variants": _Columns(
        [f"{name} {k1:g}, {b:g}" for name, k1, b, _ in _VARIANTS],
        _by_variant,
        [one[-1] for one in _VARIANTS],
    ),
    "words": _Columns([one[0] for one in _WORDS], _by_words, [one[-1] for one in _WORDS]),
}


def columns_table(which: str, folder: Path, names: Sequence[str]) -> str:
    """Return the accents, or one of the paper's tables, for these collections, in Markdown."""
    columns = _COLUMNS[which]
    lines = [
        f"| collection | {' | '.join(columns.names)} |",
        "|---|" + "---|" * len(columns.names),
    ]
    if columns.published:
        cells = " | ".join(f"{one:.1f}" for one in columns.published)
        lines.append(f"| scifact, published | {cells} |")
    for name in sorted(names, key=lambda name: name != "scifact"):
        values = columns.values(load(folder / name, LANGUAGES[name]))
        lines.append(f"| {name} | {' | '.join(f'{one:.2f}' for one in values)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main() -> None:
    """Print the tables of all collections that are there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--collections", type=Path, default=COLLECTIONS, help="their folder")
    parser.add_argument("--only", nargs="+", choices=LANGUAGES, metavar="NAME", help="some of them")
    parser.add_argument(
        "--table",
        choices=["analysis", *_COLUMNS],
        metavar="NAME",
        help="one of them [default: all]",
    )
    options = parser.parse_args()
    names = [one for one in options.only or LANGUAGES if (options.collections / one).is_dir()]
    if not names:
        get = f"bm25rag download scifact {options.collections}"
        parser.exit(1, f"cannot measure: no collection in {options.collections}; try: {get}\n")
    for which in [options.table] if options.table else ["analysis", *_COLUMNS]:
        if which == "analysis":
            print(analysis_table(options.collections, names), "\n")
        else:
            print(columns_table(which, options.collections, names), "\n")


if __name__ == "__main__":
    main()

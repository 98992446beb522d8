"""The corpora: raw texts, and the analysed terms that every engine gets alike.

Analysis happens once and is kept on disk. Terms are numbered ("t17"), so that every engine's
own tokenizer, whatever it does to accents or scripts, cuts the prepared lines at the same places.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

COLLECTIONS = Path(__file__).parents[1].parent / "shared" / "collections"
WORK = Path(__file__).parent / ".work"
LENGTHS = (1, 2, 3, 5, 10, 20, 40)
_PER_LENGTH = 300
# The name of the queries that are documents of so many terms, and how many there are.
PASSAGES = "passages"
_PASSAGE_TERMS = range(80, 201)
_PER_PASSAGES = 100

Queries = list[list[str]]


class Corpus(NamedTuple):
    """A collection in BEIR's layout, under one analysis.

    Parameters
    ----------
    collection
        Its folder's name.
    language
        Whose stemmer and stop words apply.
    stopwords
        Whether stop words are taken out.
    """

    collection: str
    language: str = "english"
    stopwords: bool = True

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.collection + ("" if self.stopwords else ", stop words kept")

    @property
    def folder(self) -> Path:
        """Where the prepared terms are."""
        return WORK / (self.collection + ("" if self.stopwords else "-all-words"))

    def present(self) -> bool:
        """Whether the collection is on this machine."""
        return (COLLECTIONS / self.collection).is_dir()

    def texts(self) -> list[str]:
        """Read the raw texts, titles first."""
        records = read_records(COLLECTIONS / self.collection / "corpus.jsonl")
        return [f"{one.get('title', '')} {one['text']}".strip() for one in records]

    def questions(self) -> list[str]:
        """Read the raw queries."""
        return [
            one["text"] for one in read_records(COLLECTIONS / self.collection / "queries.jsonl")
        ]

    def prepare(self) -> None:
        """Analyse texts and queries, unless that was done before."""
        if (self.folder / "queries.json").exists():
            return
        from bm25rag import Analyzer

        stopwords = "auto" if self.stopwords else None
        terms = Analyzer(language=self.language, stopwords=stopwords).terms
        numbers = _Numbers()
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "terms.txt").open("w", encoding="ascii") as file:
            file.writelines(" ".join(numbers.of(terms(text))) + "\n" for text in self.texts())
        asked = [numbers.of(terms(question)) for question in self.questions()]
        write_queries(self.folder, {"questions": asked, **of_lengths(asked)})


class _Numbers(dict[str, str]):
    """The name of each term, by order of appearance."""

    def __missing__(self, term: str) -> str:
        name = self[term] = f"t{len(self)}"
        return name

    def of(self, terms: Iterable[str]) -> list[str]:
        return [self[term] for term in terms]


def read_records(path: Path) -> Iterator[dict[str, str]]:
    """Read JSON lines, perhaps packed."""
    packed = path.with_suffix(".jsonl.gz")
    body = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    yield from map(json.loads, body.splitlines())


def of_lengths(questions: Queries) -> dict[str, Queries]:
    """Make queries of 1 to 40 different terms out of those of random questions."""
    chance = random.Random(40)
    made = {}
    for length in LENGTHS:
        made[f"{length} terms"] = [_drawn(questions, length, chance) for _ in range(_PER_LENGTH)]
    return made


def _drawn(questions: Queries, length: int, chance: random.Random) -> list[str]:
    terms: dict[str, None] = {}
    while len(terms) < length:
        question = chance.choice(questions)
        terms.update(dict.fromkeys(chance.sample(question, len(question))))
    return list(terms)[:length]


def write_queries(folder: Path, queries: dict[str, Queries]) -> None:
    """Keep sets of queries under their names."""
    (folder / "queries.json").write_text(json.dumps(queries), encoding="ascii")


def read_queries(folder: Path, name: str) -> Queries:
    """Return one set of queries."""
    if name == PASSAGES:
        return _passages(folder)
    found: Queries = json.loads((folder / "queries.json").read_text("ascii"))[name]
    return found


def _passages(folder: Path) -> Queries:
    """Return random documents as queries."""
    lines = (line.split() for line in read_lines(folder))
    fitting = [terms for terms in lines if len(terms) in _PASSAGE_TERMS]
    return random.Random(80).sample(fitting, min(_PER_PASSAGES, len(fitting)))


def read_lines(folder: Path, limit: int | None = None) -> Iterator[str]:
    """Yield the prepared terms of the first documents, a line of numbered terms each."""
    with (folder / "terms.txt").open(encoding="ascii") as file:
        for line in islice(file, limit):
            yield line.rstrip("\n")


ENWIKI = Corpus("enwiki-150k")
SCIFACT = Corpus("scifact")
ALL_WORDS = Corpus("enwiki-150k", stopwords=False)
SMALL = (
    Corpus("cranfield"),
    Corpus("xquad-en"),
    Corpus("xquad-de", "german"),
    Corpus("xquad-es", "spanish"),
    Corpus("xquad-ru", "russian"),
    Corpus("xquad-zh", "english"),
    Corpus("cmrc2018-zh", "english"),
)

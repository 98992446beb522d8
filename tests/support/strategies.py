"""Corpora, queries, parameters and histories for the property tests.

Alphabets are small on purpose: with half a dozen terms and short documents, ties,
documents of equal length and terms that are in every document are the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from support.reference import DEFAULT_DELTA, VARIANTS

TERMS = "abcdef"
# Some of them look like the counter's ids, so that it has to step around them.
IDS = ("0", "1", "2", "3", "7", "x", "y", "é", "")
LABELS = (0, 1, 2)

terms = st.sampled_from(TERMS)
plain_documents = st.lists(terms, max_size=9)
# A term repeated more often than eight bits can count.
long_documents = st.builds(
    lambda term, times, rest: [term] * times + rest,
    terms,
    st.sampled_from([16, 255, 256, 300]),
    plain_documents,
)
documents = st.one_of(plain_documents, plain_documents, plain_documents, long_documents)
corpora = st.lists(documents, max_size=24)
queries = st.lists(st.sampled_from([*TERMS, "unknown"]), max_size=7)
# Whole weights let the compiled kernel prune, others do not; the smallest make parts of 0.
edges = [0.0, -0.0, 1.0, 2.0, -1.0, 0.5, -0.3, 1e30, -1e30, 1e-30, 5e-324]
weights = st.sampled_from(edges) | st.floats(-1e30, 1e30) | st.integers(-3, 9)
weighted = st.dictionaries(st.sampled_from([*TERMS, "unknown"]), weights, max_size=7)
positive = st.dictionaries(st.sampled_from(TERMS), st.integers(1, 5) | st.floats(0.1, 3))
mixed = st.one_of(weighted, positive, queries)


# Weights of fields; those of 0 leave postings out.
field_weights = st.sampled_from([0.0, 1.0, 1, 3.0, 0.1, 1e30, 1e-30]) | st.floats(0.1, 9)
fielded = st.fixed_dictionaries(
    {"title": field_weights, "text": field_weights, "notes": field_weights}
).filter(lambda fields: any(fields.values()))


@st.composite
def parameters(draw: st.DrawFn, variant: str | None = None, fields: bool = True) -> dict[str, Any]:
    """Keyword arguments of a variant, the edges of each domain often among them."""
    name = draw(st.sampled_from(VARIANTS)) if variant is None else variant
    chosen: dict[str, Any] = {
        "variant": name,
        "k1": draw(st.sampled_from([0.0, 0.9, 1.2, 1.5, 100.0]) | st.floats(0, 5)),
        "b": draw(st.sampled_from([0.0, 0.4, 0.75, 1.0]) | st.floats(0, 1)),
        "delta_on": draw(st.sampled_from(["all", "matched"])),
        "delta": None,
    }
    if name in DEFAULT_DELTA:
        # TF-l-delta-p-idf needs more than 1/e, and is below 0 between there and 1.
        lowest = 0.38 if name == "tfldp" else 0.0
        chosen["delta"] = draw(st.none() | st.sampled_from([0.5, 1.0]) | st.floats(lowest, 3))
    if fields and draw(st.booleans()):
        chosen["fields"] = draw(fielded)
    return chosen


def in_fields(texts: list[list[str]], fields: dict[str, float] | None) -> list[Any]:
    """Divide texts among the fields of an index, if it has any: each in one of four ways."""
    if fields is None:
        return texts
    return [
        [
            text,
            {"title": text},
            {"title": text[: len(text) // 2], "text": text[len(text) // 2 :]},
            {"notes": text[1:], "title": text[:1]},
        ][len(text) % 4]
        for text in texts
    ]


@dataclass(frozen=True)
class Add:
    """Documents added, under the counter's ids or under given ones."""

    texts: list[list[str]]
    ids: list[str] | None
    labels: list[int]
    on_duplicate: str


@dataclass(frozen=True)
class Delete:
    """Ids deleted, unknown ones among them."""

    ids: list[str]


@dataclass(frozen=True)
class Relabel:
    """Metadata replaced."""

    ids: list[str]
    labels: list[int]


@dataclass(frozen=True)
class Copy:
    """Index replaced by a copy of it: pickled, deep-copied, or saved and opened."""

    how: str


Step = Add | Delete | Relabel | Copy


@st.composite
def additions(draw: st.DrawFn) -> Add:
    """Add up to six documents."""
    texts = draw(st.lists(documents, max_size=6))
    size = len(texts)
    ids = draw(st.none() | st.lists(st.sampled_from(IDS), min_size=size, max_size=size))
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=size, max_size=size))
    return Add(texts, ids, labels, draw(st.sampled_from(["error", "skip", "replace"])))


@st.composite
def relabellings(draw: st.DrawFn) -> Relabel:
    """Change the metadata of up to four ids."""
    ids = draw(st.lists(st.sampled_from(IDS), max_size=4, unique=True))
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=len(ids), max_size=len(ids)))
    return Relabel(ids, labels)


deletions = st.builds(Delete, st.lists(st.sampled_from([*IDS, "4", "5", "6"]), max_size=5))
copies = st.builds(Copy, st.sampled_from(["pickle", "deepcopy", "save"]))
histories = st.lists(st.one_of(additions(), additions(), deletions, relabellings()), max_size=8)
travelled_histories = st.lists(
    st.one_of(additions(), additions(), deletions, relabellings(), copies), max_size=8
)

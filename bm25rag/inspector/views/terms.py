"""Terms: one term with its neighbours, and those of the vocabulary that look wrong."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import numpy as np

from bm25rag.analysis.spaces import space_of
from bm25rag.common.arrays import Int64
from bm25rag.index import BM25Index
from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.python_code import program
from bm25rag.inspector.views.shown import hit_of
from bm25rag.segments.similar_terms import LONGEST

# How many terms of a list are shown, and neighbours on each side.
_SHOWN, _BESIDE = 50, 8
# A term in more than this part of the documents tells little, and one of more characters is
# hardly a word. Fewer documents than these tell nothing of what is frequent.
_FREQUENT, _LONG, _FEWEST = 0.25, 40, 20
_SHORTEST = 3
# Control characters, what stands for characters that were lost, and UTF-8 read as Latin-1.
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\ufffd\ufeff]|Ã.|â€|ã.[\x80-\xbf]")


def terms_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return what the vocabulary holds, what looks wrong in it, and terms with a beginning."""
    side = desk.side(asked.settings)
    index, several = side.index, bool(side.index.analyzer.also)
    vocabulary, frequencies = desk.opened.vocabulary(index)
    prefix = asked.given.get("prefix", "")
    documents = len(index)
    threshold = max(_FREQUENT * documents, 1.0)
    frequent = (
        np.flatnonzero(frequencies > threshold) if documents >= _FEWEST else np.empty(0, np.int64)
    )
    frequent = frequent[np.argsort(-frequencies[frequent], kind="stable")]
    names = [space_of(term)[1] if several else term for term in vocabulary]
    long = [n for n, term in enumerate(names) if len(term) > _LONG]
    odd = [n for n, term in enumerate(names) if _ODD.search(term)]
    start = bisect_left(vocabulary, prefix)
    stop = start
    while stop < len(vocabulary) and stop - start < _SHOWN and vocabulary[stop].startswith(prefix):
        stop += 1

    def listed(numbers: Iterable[int]) -> list[dict[str, Any]]:
        return _listed(vocabulary, frequencies, [*numbers], several)

    return {
        "documents": documents,
        "count": len(vocabulary),
        "once": int(np.count_nonzero(frequencies == 1)),
        "prefix": prefix,
        "beginning": listed(range(start, stop)),
        "frequent": {
            "count": len(frequent),
            "share": _FREQUENT,
            "terms": listed(frequent.tolist()),
        },
        "long": {"count": len(long), "characters": _LONG, "terms": listed(long)},
        "odd": {"count": len(odd), "terms": listed(odd)},
        "python": program(
            desk,
            side,
            asked,
            "terms = zip(index.document_frequencies().tolist(), index.vocabulary())",
            "for frequency, term in sorted(terms, reverse=True)[:20]:",
            "    print(frequency, term)",
        ),
    }


def term_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return a term: where it is, what it weighs, and the terms that are near."""
    side = desk.side(asked.settings)
    index, several = side.index, bool(side.index.analyzer.also)
    vocabulary, frequencies = desk.opened.vocabulary(index)
    term = asked.term or ""
    place = bisect_left(vocabulary, term)
    known = place < len(vocabulary) and vocabulary[place] == term
    df = int(frequencies[place]) if known else 0
    analysis, name = space_of(term) if several else (0, term)
    data: dict[str, Any] = {"term": term, "name": name, "analysis": analysis, "known": known}
    data |= {"df": df, "documents": len(index), "idf": None, "hits": []}
    if known:
        hits = index.search([term], asked.size)
        data["idf"] = index.explain([term], hits[0].id).terms[0].idf if hits else None
        data["hits"] = [hit_of(hit, rank) for rank, hit in enumerate(hits, 1)]
    beside = range(max(place - _BESIDE, 0), min(place + _BESIDE + 1, len(vocabulary)))
    near = [
        (bisect_left(vocabulary, one), distance)
        for distance in (1, 2)
        for one in _near(index, term, distance)
    ]
    edits = {
        number: distance
        for number, distance in reversed(near)
        if number < len(vocabulary) and number != place
    }
    best = sorted(edits, key=lambda number: (edits[number], -int(frequencies[number])))
    spelt = _listed(vocabulary, frequencies, best, several)
    return data | {
        "beside": _listed(vocabulary, frequencies, [*beside], several),
        "spelt": [{**one, "edits": edits[n]} for n, one in zip(best, spelt, strict=False)],
        "becomes": [] if known else list(dict.fromkeys(index.analyzer.query_terms(term))),
        "python": program(
            desk,
            side,
            asked,
            f"for hit in index.search([{asked.term or ''!r}], k={asked.size}):",
            "    print(hit.id, hit.score)",
        ),
    }


def _near(index: BM25Index, term: str, distance: int) -> list[str]:
    """Return the terms that are so many edits away or fewer and in a living document."""
    if not _SHORTEST <= len(term) <= LONGEST:
        return []
    snapshot = index._snapshot
    terms = {
        one
        for view in snapshot.views
        for one in view.segment.postings.spelling.near(term, distance)
    }
    names = sorted(terms)
    if snapshot.is_restricted:
        counts = index.search_batch([[one] for one in names], 1).counts.tolist()
        return [one for one, count in zip(names, counts, strict=True) if count]
    cache, numbers = snapshot.term_numbers(names)
    return [
        one for one, n in zip(names, numbers, strict=True) if n >= 0 and cache.frequencies[n] > 0
    ]


def _listed(
    vocabulary: list[str], frequencies: Int64, numbers: list[int], several: bool
) -> list[dict[str, Any]]:
    terms = []
    for number in numbers[:_SHOWN]:
        analysis, name = space_of(vocabulary[number]) if several else (0, vocabulary[number])
        shown = {"term": vocabulary[number], "name": name, "analysis": analysis}
        terms.append({**shown, "df": int(frequencies[number])})
    return terms

"""Words of a query that no document has, replaced by words that are spelt alike.

What is compared are terms, as they are in the index, stems that is, if there is a stemmer:
a slip that changes what the stemmer cuts off may be more than one edit of the stem.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from bm25rag.filtered import search_filtered
from bm25rag.filters import Filter
from bm25rag.queries import Terms
from bm25rag.snapshot import Snapshot
from bm25rag.spelling import LONGEST

# Characters of a term that is corrected, as in Lucene's DirectSpellChecker, and of one in
# which two edits are looked for if there is no word one edit away.
_SHORTEST, _LONG = 4, 8
# Terms of a query that are corrected, the first: others may be no words, and each takes a while.
MOST = 100


class Correction(NamedTuple):
    """A query in which unknown words are replaced.

    Parameters
    ----------
    terms
        The query's terms, or its terms with their weights: a query for ``search``.
    corrections
        What stands for each term that was replaced.
    """

    terms: list[str] | dict[str, float]
    corrections: dict[str, str]


def correct_queries(
    snapshot: Snapshot, queries: Sequence[Terms], filter: Filter | None
) -> list[Correction]:
    """Replace the unknown terms of queries by the most frequent terms that are spelt alike.

    Parameters
    ----------
    snapshot
        Where to search.
    queries
        The terms of each query, or their weights.
    filter
        What documents must pass; a term in none of them is unknown, and stands for none.
    """
    words = list(dict.fromkeys(term for query in queries for term in query if _is_word(term)))
    unknown = set(words) - _known(snapshot, words, filter)
    replacements: dict[str, str | None] = {}
    found = []
    for query in queries:
        corrections = {}
        for term in islice((term for term in dict.fromkeys(query) if term in unknown), MOST):
            if term not in replacements:
                replacements[term] = _replacement(snapshot, term, filter)
            if (replacement := replacements[term]) is not None:
                corrections[term] = replacement
        found.append(_corrected(query, corrections))
    return found


def _is_word(term: str) -> bool:
    """Whether a term may be a misspelt word; numbers are not corrected."""
    return _SHORTEST <= len(term) <= LONGEST and not any(map(str.isdigit, term))


def _known(snapshot: Snapshot, terms: Sequence[str], filter: Filter | None) -> set[str]:
    """Return those of some terms that a document contains that passes the filter."""
    if filter is None:
        found = (snapshot.number(terms)[1] >= 0).tolist()
    else:
        asked = [[term] for term in terms]
        found = (search_filtered(snapshot, asked, 1, filter, None, 1).counts > 0).tolist()
    return {term for term, is_there in zip(terms, found, strict=True) if is_there}


def _replacement(snapshot: Snapshot, term: str, filter: Filter | None) -> str | None:
    """Return the most frequent term that is near, of equal ones the first by code point."""
    for distance in (1, 2) if len(term) >= _LONG else (1,):
        near = {
            name
            for part in snapshot.parts
            for name in part.segment.postings.spelling.near(term, distance)
        }
        names = sorted(_known(snapshot, list(near), filter))
        if names:
            lexicon, numbers = snapshot.number(names)
            return names[int(lexicon.frequencies[numbers].argmax())]
    return None


def _corrected(query: Terms, corrections: dict[str, str]) -> Correction:
    if not isinstance(query, dict):
        return Correction([corrections.get(term, term) for term in query], corrections)
    weights: dict[str, float] = {}
    for term, weight in query.items():
        name = corrections.get(term, term)
        weights[name] = weights.get(name, 0.0) + weight
    return Correction(weights, corrections)

"""Search for agents: the best documents, of each the part that matches best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from bm25rag.agents import answers
from bm25rag.agents.answers import Answer, Part
from bm25rag.agents.cursors import digest, read_cursor, stale, write_cursor
from bm25rag.common.checks import check_count, check_sequence
from bm25rag.common.lines import line_of
from bm25rag.common.sparse import Vector
from bm25rag.documents import Hit, Snippet
from bm25rag.filters import (
    And,
    Demand,
    Filter,
    FilterSpec,
    escape_key,
    parse_filter,
    without_demands,
)
from bm25rag.fusion import Ranking
from bm25rag.hybrid import HybridSearch
from bm25rag.index import BM25Index
from bm25rag.search.query import Query
from bm25rag.search.query_terms import QueryLike
from bm25rag.search.results import BatchResult
from bm25rag.search.shaping import group_key, group_value

MOST_HITS, MOST_PER_GROUP, LONGEST_QUERY = 100, 10, 10_000
# How far cursors lead, and how many documents of each ranking are fused.
_DEEPEST, _FUSED = 10_000, 1000
# Characters of a text that are shown at least, or all; fewer documents are shown rather.
_LEAST_TEXT = 160
# Characters of all hits of a call together in which the best parts are looked for.
_MOST_SEARCHED = 1_000_000
_NO_TEXT = Snippet("", 0, [])
# Seconds that phrases are looked for in texts, and what is said where these were over.
_LOOKING = 5.0
_INCOMPLETE = "There was no time to look into all texts: other documents may match, too."


Beside: TypeAlias = Callable[[str, int], Ranking]
"""Asks another retriever for so many documents, given a text."""


def search(
    index: BM25Index,
    query: str | None,
    k: int = 10,
    filter: dict[str, Any] | None = None,
    *,
    also: Sequence[str] = (),
    must: Sequence[str] = (),
    must_not: Sequence[str] = (),
    phrases: Sequence[str] = (),
    not_phrases: Sequence[str] = (),
    field: str | None = None,
    group: str | None = None,
    per_group: int = 1,
    decay: dict[str, Any] | None = None,
    vector: Vector | None = None,
    budget: int = answers.BUDGET,
    cursor: str | None = None,
    scope: str = "",
    within: FilterSpec | None = None,
    metadata: bool = True,
    options: Mapping[str, Any] | None = None,
    beside: Beside | None = None,
) -> Answer:
    """Return the best documents; all arguments may come from a model.

    Parameters
    ----------
    query
        A text of at most 10,000 characters; ``None`` for the vector alone.
    k
        How many documents at most, or groups, 1 to 100.
    filter
        In bm25rag's language.
    also, must, must_not, phrases, not_phrases, field
        As in ``Query``, lists of texts; of 10,000 characters together, each.
    group, per_group, decay
        As in ``BM25Index.search``, but that the documents of a group come together; ``per_group``
        is 10 at most.
    vector
        A sparse vector; with a query, both are fused.
    budget, cursor
        The characters of the answer, 1,000 to 100,000, and where to go on.
    scope
        What names the index, so that its cursors are known from those of others.
    within
        A filter of yours that documents must pass as well.
    metadata
        Whether metadata are shown.
    options
        More arguments for ``BM25Index.search``, the same for all pages; not for vectors. With
        ``beside``, those of ``HybridSearch``.
    beside
        Asks another retriever of the same documents, whose answer is fused with the index's: given
        the text of the query, and of how many documents it returns the ids and scores.
    """
    room = answers.check_budget(budget) - answers.FRAME
    question: str | Query | None = None
    parts_asked = must, must_not, phrases, not_phrases, also, field
    if query is not None or vector is None or any(parts_asked):
        question = read_question(query, *parts_asked)
        room -= 0 if isinstance(question, str) else len(_INCOMPLETE) + len('"incomplete":"",')
    wanted = check_count("k", k, least=1)
    if wanted > MOST_HITS:
        raise ValueError(f"k must be at most {MOST_HITS}; go on with the cursor of the answer")
    if check_count("per_group", per_group, least=1) > MOST_PER_GROUP:
        message = f"per_group must be at most {MOST_PER_GROUP}; search in one group for all of it"
        raise ValueError(message)
    both = filter_within(filter, within)
    shaping = {"group": group, "per_group": per_group, "decay": decay}
    more: Mapping[str, Any] = {} if vector is not None or options is None else options
    ranking = _Ranking(index.snapshot(), question, vector, both, shaping, more, beside)
    given = [[*texts] for texts in parts_asked[:-1]]
    asked = digest("search", scope, query, vector, filter, given, field, shaping)
    offset, before = 0, ""
    if cursor is not None:
        (offset,), before = read_cursor(cursor, asked, 1)
    if offset > _DEEPEST:
        raise stale()
    hits, total, cut = ranking.first(offset + wanted)
    if cursor is not None and (len(hits) < offset or _ids_of(hits[:offset]) != before):
        raise stale()
    page = [hit for own in ranking.by_group(hits[offset:])[:wanted] for hit in own]
    answers.without_context(index, page)
    parts = _shown(page, offset, room, metadata)
    last = offset + len(parts)
    has_more = total is None or last < len(hits) or len(ranking.by_group(hits)) < total
    following = write_cursor(asked, (last,), _ids_of(hits[:last])) if has_more else None
    end = "; cursors lead no further, so ask for less" if has_more and last > _DEEPEST else ""
    parts_given = any(parts_asked[:4])
    analyzer = index.analyzer  # stop words alone find only texts that have nothing else
    has_no_words = (
        not parts
        and isinstance(question, str)
        and analyzer.stopped_stems.issuperset(analyzer.terms(question))
    )
    has = "all that is asked for" if parts_given else "a word of the query"
    answer = answers.make_answer(
        "hits",
        parts,
        total=total,
        returned=len(parts),
        unit=f"{'documents' if group is None else 'groups'} that match{end}",
        each="" if group is None else "documents",
        truncated=bool(end) or any("characters" in part.content for part in parts),
        cursor=following if parts and last <= _DEEPEST else None,
        at_least=len(ranking.by_group(hits)),
        nothing=(
            "No word of the query counts: stop words and signs do not; use other words."
            if has_no_words
            else f"No document that may be found has {has}."
        ),
    )
    if not cut:
        return answer
    content = answer.content | {"incomplete": _INCOMPLETE}
    return Answer(content, f"{_INCOMPLETE}\n\n{answer.text}")


class _Ranking(NamedTuple):
    """What was asked for, of an index that does not change."""

    searched: BM25Index
    query: str | Query | None
    vector: Vector | None
    filter: Filter | None
    shaping: Mapping[str, Any]
    options: Mapping[str, Any]
    beside: Beside | None

    def first(self, k: int) -> tuple[list[Hit], int | None, bool]:
        """Return the best k, documents or groups, and how many there are; perhaps ``None``.

        Hits of a group stand together, so that asking for more returns the same hits first. Last
        comes whether there was no time to look into all texts.
        """
        hits, batch = self._found(k)
        groups = self.by_group(hits)
        total: int | None = len(groups)
        if len(groups) >= k:
            if isinstance(self.query, Query) and (self.query.phrases or self.query.not_phrases):
                total = None  # all texts that have the words would have to be looked at
            elif batch is not None:
                total = int(batch.totals()[0])
        cut = batch is not None and bool(batch.cut)
        return [hit for own in groups[:k] for hit in own], total, cut

    def by_group(self, hits: Sequence[Hit]) -> list[list[Hit]]:
        """Return hits by their groups, in the order of the first of each."""
        group = {**self.shaping, **self.options}["group"]
        if group is None:
            return [[hit] for hit in hits]
        groups: dict[object, list[Hit]] = {}
        for hit in hits:
            key = group_key(group_value(hit, group))
            groups.setdefault((hit.id,) if key is None else key, []).append(hit)
        return [*groups.values()]

    def _found(self, k: int) -> tuple[list[Hit], BatchResult | None]:
        """Return at least the best k and their batch; or all hits, if there is no batch."""
        shaping: Any = self.shaping
        if self.beside is not None and self.query is not None:
            return self._with(self.beside, self.query), None
        if self.vector is None:
            one: list[QueryLike] = [self.query or ""]
            options: Any = {"threads": 1, **shaping, **self.options}
            batch = self.searched.search_batch(one, k, self.filter, **options)
        elif self.query is None:
            vectors = self.searched.vectors
            batch = vectors.search_batch([self.vector], k, self.filter, **shaping)
        else:  # the same ranking, however many are wanted of it
            options = {"fetch_k": _FUSED, **shaping}
            hits = self.searched.search_hybrid(
                self.query, self.vector, _FUSED, self.filter, **options
            )
            return hits, None
        (hits,) = batch.hits()
        return hits, batch

    def _with(self, beside: Beside, query: str | Query) -> list[Hit]:
        """Return all that are fused with what another retriever finds."""
        options: Any = {**self.shaping, **self.options}
        depth = max(MOST_HITS, options.get("fetch_k", 0))
        search = HybridSearch(self.searched, query, depth, self.filter, **options)
        text = query if isinstance(query, str) else query.as_text()
        while not search.take(beside(text, search.wanted)):
            pass
        return search.hits()


def _ids_of(hits: Sequence[Hit]) -> str:
    return digest([hit.id for hit in hits])


def _shown(hits: Sequence[Hit], offset: int, room: int, metadata: bool) -> list[Part]:
    """Return as many hits as there is room for, with so much of their texts."""
    ranked = list(enumerate(hits, offset + 1))
    described = room // 4 if metadata else -1
    bare = [_part(hit, rank, _NO_TEXT, described).cost for rank, hit in ranked]
    needs = [answers.size(hit.text[:room]) + 100 if hit.text else 0 for hit in hits]
    shown = least = 0
    for cost, need in zip(bare, needs, strict=True):
        least += cost + min(need, _LEAST_TEXT)
        if least > room and shown:
            break
        shown += 1
    shares = _shares(needs[:shown], room - sum(bare[:shown]))
    parts, left = [], _MOST_SEARCHED
    for (rank, hit), cost, share in zip(ranked, bare, shares, strict=False):
        left -= len(hit.text or "")
        text, start, spans = _NO_TEXT
        if share and hit.text:
            text, start, spans = (
                hit.snippet(share) if left >= 0 else Snippet(hit.text[:share], 0, [])
            )
        part = _part(hit, rank, Snippet(text, start, spans), described)
        while part.cost > cost + share and text:  # a character less is one at least
            text = text[: max(0, len(text) - (part.cost - cost - share))]
            spans = [span for span in spans if span.end <= len(text)]
            part = _part(hit, rank, Snippet(text, start, spans), described)
        parts.append(part)
    return parts


def _shares(needs: Sequence[int], room: int) -> list[int]:
    """Divide room so that small needs are met, and what is left is the same for all others."""
    shares = [0] * len(needs)
    left = len(needs)
    for place in sorted(range(left), key=needs.__getitem__):
        shares[place] = max(0, min(needs[place], room // left))
        room -= shares[place]
        left -= 1
    return shares


def _part(hit: Hit, rank: int, snippet: Snippet, described: int) -> Part:
    text, start, spans = snippet
    named = answers.naming(hit)
    content: dict[str, Any] = {**named, "score": hit.score}
    notes, whole = [f"score {hit.score:.4g}"], hit.text
    if (size := hit.group_size) is not None:
        content["group_size"] = size
        notes.append(f"{size} of its group match")
    end: list[str] = []
    if whole is None:
        content["text"], text = None, "(text not stored)"
    else:
        first = line_of(whole, start)
        lines = [first, line_of(whole, start + len(text))]
        content |= {"text": text, "lines": lines, "spans": [[one.start, one.end] for one in spans]}
        notes.insert(0, f"lines {lines[0]}-{lines[1]}" if lines[0] < lines[1] else f"line {first}")
        if start or len(text) < len(whole):
            content |= {"start": start, "characters": len(whole)}
            end = [f"[characters {start} to {start + len(text)} of {len(whole)}]"]
    shown = answers.metadata_of(hit, named, described) if described >= 0 else {}
    heading = f"{rank}. {answers.heading(named, *notes)}"
    written = [heading, *answers.metadata_text(shown), text, *end]
    return Part({**content, **shown}, "\n".join(written))


def read_question(
    query: Any,
    must: Any = (),
    must_not: Any = (),
    phrases: Any = (),
    not_phrases: Any = (),
    also: Any = (),
    field: Any = None,
) -> str | Query:
    """Return what is asked for; raise ``TypeError`` or ``ValueError`` if it is wrong."""
    if not isinstance(query, str):
        raise TypeError(f"query must be a string, got {type(query).__name__}")
    if len(query) > LONGEST_QUERY:
        message = f"query must have at most {LONGEST_QUERY:,} characters, got {len(query):,}"
        raise ValueError(message)
    wanted = {"must": must, "phrases": phrases, "also": also}
    given = {**wanted, "must_not": must_not, "not_phrases": not_phrases}
    parts: dict[str, Any] = {
        name: _parts(name, value) for name, value in given.items() if value is not None
    }
    if field is None and not any(parts.values()):
        return query
    return Query(query, field=field, timeout=_LOOKING, **parts)


def _parts(name: str, value: Any) -> list[str]:
    parts = list(check_sequence(name, value, "strings"))
    if not all(isinstance(part, str) for part in parts):
        raise TypeError(f"{name} must be a list of strings, got {value!r:.100}")
    if (length := sum(map(len, parts))) > LONGEST_QUERY:
        raise ValueError(
            f"the number of characters in {name} must be at most {LONGEST_QUERY:,}, got {length:,}"
        )
    return parts


def filter_within(filter: object, within: FilterSpec | None) -> Filter | None:
    """Return a filter of a model's and one of yours together; raise if the model's is wrong.

    Without yours, the model's is strict: to name a field that no document has is an error, which
    says what fields there are, or what may be meant. With yours, it would tell of documents that
    must not be seen, so it is not, even where the model asks for that.
    """
    if not isinstance(filter, dict | None):
        example = 'filter must be an object such as {"year": {"$gte": 2020}}'
        raise TypeError(f"{example}, got {type(filter).__name__}")
    asked = parse_filter(filter)
    own = None if within is None else parse_filter(within)
    if asked is None:
        return own
    if own is not None:
        return And((own, without_demands(asked)))
    names = {path: ".".join(map(escape_key, path)) for path in asked.paths}
    meant = (demand._replace(strict=True) for demand in asked.demands)
    return And((asked,), (*meant, *(Demand(path, name) for path, name in names.items())))

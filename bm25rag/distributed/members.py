"""The best documents of the best groups, which may be in any shard."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from bm25rag.distributed.asking import Answers
from bm25rag.distributed.operations import Found, Match, found_of
from bm25rag.distributed.results import Page
from bm25rag.filters import And, Condition, parse_filter
from bm25rag.filters.operators import In
from bm25rag.filters.parse import parse_path
from bm25rag.search.shaping import TEXT, group_key

if TYPE_CHECKING:
    from bm25rag.filters import FilterSpec


Search: TypeAlias = Callable[[list[Any], Page, "FilterSpec | None", float], tuple[Answers, Found]]
"""Finds the best matches of queries, as all shards have them, within some seconds."""


def find_members(
    search: Search, queries: list[Any], page: Page, filter: FilterSpec | None, deadline: float
) -> tuple[Answers, Found]:
    """Find the best groups and then, in the same commit, the best documents of each.

    In the first search, a shard leaves out its documents of a group if it has k groups that are
    better. Groups cannot be by text: no filter passes the documents of some texts.
    """
    if page.group is None or page.group == TEXT:
        raise ValueError(
            "a cluster finds only the best document of equal texts: per_group must be 1 with "
            f"the group '$text', got {page.per_group!r}"
        )
    path, parsed, end = (
        parse_path(page.group, "group"),
        parse_filter(filter),
        monotonic() + deadline,
    )
    while True:
        left = max(0.0, end - monotonic())
        answers, bests = search(queries, page._replace(per_group=1), parsed, left)
        commits, missing, cut = {answers.commit}, answers.missing, set(bests.cut)
        chosen: list[list[Match]] = []
        for number, query in enumerate(queries):
            best = bests.matches(number)[page.offset :]
            values = [match[3] for match in best if group_key(match[3]) is not None]
            # What has no value is the only one of its group.
            matches = [match for match in best if group_key(match[3]) is None]
            if values:
                of_groups = Condition(path, In(tuple(values)))
                among = of_groups if parsed is None else And((parsed, of_groups))
                groups = page._replace(k=len(values), offset=0)
                own, members = search([query], groups, among, max(0.0, end - monotonic()))
                commits.add(own.commit)
                missing = missing | own.missing
                cut.update([number] if members.cut else [])
                matches += members.matches(0)
            chosen.append(sorted(matches, key=lambda match: (-match[0], match[1])))
        if len(commits) == 1:
            return answers._replace(missing=missing), found_of(chosen, sorted(cut))

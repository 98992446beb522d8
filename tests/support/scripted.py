"""A model that follows a script: it searches, pages, mends a mistake, and quotes what it read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# What the tool of every framework searches in.
TEXTS = [f"Note {n}.\nA cat sleeps {n} hours. " + "Purring goes on. " * 40 for n in range(30)]
YEARS = [2000 + n for n in range(30)]
ABOUT = "Notes on how long cats sleep"


def calls(heard: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of calls; ``heard`` has what the tool answered to each before."""
    yield {"query": "cats", "filter": {"year": {"$bigger": 2020}}}
    assert heard[-1].startswith("Error: filter at year.$bigger: unknown operator")
    asked = {"query": "cats sleeping", "filter": {"year": {"$gte": 2020}}, "budget": 1500}
    yield asked
    pages = [heard[-1]]
    while (cursor := re.search(r'cursor="([^"]+)"', pages[-1])) is not None:
        yield asked | {"cursor": cursor[1]}
        pages.append(heard[-1])
    assert len(pages) > 1
    assert all(len(page) <= 1500 for page in pages)
    noise = re.compile(r"blob|null|None|__node__|embedding")
    assert not noise.search("".join(pages))
    ranks = [int(rank) for page in pages for rank in re.findall(r"^(\d+)\. ", page, re.MULTILINE)]
    assert ranks == list(range(1, 11))
    assert len(set(re.findall(r"A cat sleeps (\d+) hours", "".join(pages)))) == 10
    yield asked | {"query": "dogs", "cursor": cursor_of(pages[0])}
    assert heard[-1].startswith("Error: cursor belongs to other arguments")
    yield {"question": "cats"}
    assert heard[-1].startswith("Error: there is no argument 'question'; there are query, k")
    yield {"query": "zebra"}
    assert heard[-1] == "No document that may be found has a word of the query."


def cursor_of(page: str) -> str:
    (cursor,) = re.findall(r'cursor="([^"]+)"', page)
    return cursor


def check_schema(name: str, description: str, parameters: dict[str, Any]) -> None:
    """Check what a model is told of a tool."""
    assert name == "notes"
    assert description.startswith("Notes on how long cats sleep. Search documents by their words")
    assert list(parameters["properties"]) == [
        *("query", "k", "filter", "group", "decay", "must", "must_not", "phrases"),
        *("budget", "cursor"),
    ]
    assert parameters["required"] == ["query"]
    assert "year (number)" in parameters["properties"]["filter"]["description"]

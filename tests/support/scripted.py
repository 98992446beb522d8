"""A model that follows a script: it searches, pages, mends a mistake, and quotes what it read."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeAlias

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
    yield {"query": "cats", "filter": {"yaer": 2020}}
    assert heard[-1].startswith("Error: filter at yaer: no document has the field 'yaer', did you")
    every = {"must": ["sleeps"], "must_not": ["dog"], "phrases": ["goes on"], "group": "$text"}
    every |= {"not_phrases": ["on goes"], "per_group": 2}
    yield {"query": "cats", "k": 3, "decay": {"path": "year", "full": 2029}, **every}
    assert re.findall(r"A cat sleeps (\d+) hours", heard[-1]) == ["29", "28", "27"]
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
        *("query", "k", "filter", "group", "per_group", "decay", "also"),
        *("must", "must_not", "phrases", "not_phrases", "budget", "cursor"),
    ]
    assert parameters["required"] == ["query"]
    assert "year (number)" in parameters["properties"]["filter"]["description"]


def check_quoting(
    whole: dict[str, Callable[..., str]], only_2003: dict[str, Callable[..., str]]
) -> None:
    """Find a line by grep and quote it by read; ``only_2003`` are the tools of a restricted one."""
    assert [*whole] == [*only_2003] == ["search_notes", "grep_notes", "read_notes"]
    ids = {}
    for year in (2003, 2004):
        found = whole["grep_notes"](pattern=f"sleeps {year - 2000} hours", filter={"year": year})
        line = re.search(r"^(\d+): A cat sleeps \d hours", found, re.MULTILINE)
        assert line is not None, found
        ids[year] = re.split(r"[\s(]", found)[0]
        text = whole["read_notes"](id=ids[year], lines=line[1])
        assert f"{line[1]}: A cat sleeps {year - 2000} hours. Purring" in text
    assert ids[2003] in whole["search_notes"](query="cats", filter={"year": 2003}, also=["notes"])
    lines = only_2003["grep_notes"](pattern="A cat sleeps", filter={"year": {"$gte": 2000}})
    assert re.findall(r"A cat sleeps (\d+) hours", lines) == ["3"]
    assert "A cat sleeps 3" in only_2003["read_notes"](id=ids[2003])
    refused = {
        "there is no document with the id": only_2003["read_notes"](id=ids[2004]),
        "read needs either id or source": whole["read_notes"](),
        "pattern must be a str": whole["grep_notes"](),
        "there is no argument 'query'; there are pattern": whole["grep_notes"](query="cats"),
    }
    for said, heard in refused.items():
        assert heard.startswith("Error: "), heard
        assert said in heard


Step: TypeAlias = tuple[str, dict[str, Any]] | str
"""A tool to call, and with what; or the final answer."""


class Model:
    """A model that finds a note, pages, and quotes a line that it has read.

    ``next`` returns its next step, given what the last call was answered.
    """

    def __init__(self) -> None:
        self._script = _quoting()
        self._begun = False

    def next(self, heard: str | None) -> Step:
        """Return the next step."""
        step = self._script.send(heard if self._begun else None)
        self._begun = True
        return step


def _quoting() -> Generator[Step, str | None, None]:
    asked = {"query": "How long do cats sleep?", "filter": {"year": {"$gte": 2020}}, "k": 4}
    pages: list[str] = []
    cursor: dict[str, str] = {}
    while not pages or cursor:
        pages.append((yield "search_notes", {**asked, "budget": 1500, **cursor}) or "")
        found = re.search(r'cursor="([^"]+)"', pages[-1])
        cursor = {} if found is None else {"cursor": found[1]}
    shown = "\n".join(pages)
    ids = re.findall(r"^\d+\. (\S+) \(lines?", shown, re.MULTILINE)
    assert len(ids) == len(set(ids)) == 10, shown
    assert len(pages) >= 3
    found_by_grep = (yield "grep_notes", {"pattern": "cat sleeps 27", "context": 1}) or ""
    line = re.search(r"^(\d+): .*cat sleeps 27", found_by_grep, re.MULTILINE)
    assert line is not None, found_by_grep
    id = re.split(r"[\s(]", found_by_grep)[0]
    assert id in ids
    nothing = (yield "read_notes", {"id": id, "lines": "900"}) or ""
    assert nothing.startswith("There are no such lines"), nothing
    read = (yield "read_notes", {"id": id, "lines": line[1]}) or ""
    quoted = re.search(rf"^{line[1]}: (.*? hours\.)", read, re.MULTILINE)
    assert quoted is not None, read
    yield f'"{quoted[1]}" ({id}, line {line[1]})'


def check_quotation(answer: str, text_of: Callable[[str], str]) -> None:
    """Check that an answer quotes a line word for word, given the texts of documents."""
    found = re.fullmatch(r'"(.*)" \((\S+), line (\d+)\)', answer)
    assert found is not None, answer
    assert found[1] == "A cat sleeps 27 hours."
    assert found[1] in text_of(found[2]).split("\n")[int(found[3]) - 1]

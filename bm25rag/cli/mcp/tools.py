"""What ``bm25rag mcp`` offers to a language model: tools over one index, without the protocol."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple, get_args

from bm25rag import BM25Index, Document, Query
from bm25rag.cli.dropped import dropped_words
from bm25rag.cli.mcp.answers import Answer, part_of, plain, written
from bm25rag.common.checks import check_count, check_ids, check_sequence
from bm25rag.common.strings import TEXT
from bm25rag.documents import in_fields
from bm25rag.index import OnDuplicate

# A model's context is small: a call that asks for more is a mistake.
_MOST_HITS, _MOST_IDS = 100, 100
_MOST_SHOWN = 100_000
_LONGEST_QUERY = 10_000
# Characters of all hits of a call together in which the best parts are looked for.
_MOST_SEARCHED = 1_000_000
# Seconds that phrases are looked for in texts.
_LOOKING = 5.0
# Documents whose metadata are looked at for the names of fields, and how many are named.
_SAMPLE, _FIELDS = 100, 30
_PLAIN_NAME = re.compile(r"[\w.-]{1,40}")

# What is said where that time was over.
_INCOMPLETE = "There was no time to look into all texts: other documents may match, too."

_FILTER = """Only documents whose metadata pass. {"lang": "en", "year": {"$gte": 2020}}: all \
conditions must hold. Operators: $eq $ne $lt $lte $gt $gte $in $nin (lists), $contains (element \
of a list, or case-sensitive substring), $icontains, $startswith, $exists (true or false), $date \
({"day": {"$date": {"$gte": "2024-01-31"}}}), $not; {"$or": [filter, ...]}, {"$and": [...]}. A \
dot leads into nested fields; "$id" is the document's id. 1 and "1" differ."""


class Tool(NamedTuple):
    """A tool: what a model is told about it, and the function that does it.

    ``properties`` are the JSON schemas of its arguments; ``reads`` is False if it changes the
    index.
    """

    name: str
    description: str
    properties: dict[str, Any]
    run: Callable[..., Answer]
    reads: bool = True

    @property
    def required(self) -> list[str]:
        """The arguments without a default."""
        given = signature(self.run).parameters.values()
        return [one.name for one in given if one.default is one.empty]


class IndexTools:
    """The tools over one saved index; they may be called from several threads.

    Every call sees the last commit of the folder.

    Parameters
    ----------
    path
        The folder of the index, or its URL.
    untrusted
        As in ``BM25Index.open``; the names of metadata fields then are in no description.
    write
        Whether to offer ``add`` and ``delete``.
    about
        What the index holds, for the description of ``search``.
    patience
        How many seconds a write waits for another writer.
    """

    def __init__(
        self,
        path: Path | str,
        untrusted: bool = False,
        write: bool = False,
        about: str | None = None,
        patience: float = 5.0,
    ) -> None:
        self._path, self._untrusted, self._write = path, untrusted, write
        self._patience = patience
        self._about = f"{about.strip().rstrip('.')}. " if about else ""
        self._index = BM25Index.open(path, untrusted=untrusted)

    def __len__(self) -> int:
        """Return how many documents the index has."""
        return len(self._index)

    def tools(self) -> list[Tool]:
        """Return the tools, described for the index as it is at the moment."""
        return self._tools(self._described_fields())

    def _tools(self, fields: str) -> list[Tool]:
        documents = f"{len(self):,} document{'' if len(self) == 1 else 's'}"
        filter_ = {"type": "object", "description": f"{_FILTER}{fields}"}
        query = {"type": "string", "description": "Words to look for.", "maxLength": _LONGEST_QUERY}
        ids = _array({"type": "string"}, "Ids of documents, as search returns them.", _MOST_IDS)
        said = {
            "must": "Words or groups of words of which a document must have all.",
            "must_not": "Words or groups of words of which a document must not have all.",
            "phrases": "Words that a document must have in exactly this order, stop words too.",
        }
        parts = {name: _array({"type": "string"}, about, _MOST_IDS) for name, about in said.items()}
        reading = [
            Tool(
                "search",
                f"{self._about}Search {documents} by their words (BM25, {self._analysis()}) and"
                " return the best, best first, with id, score, text and metadata. A document is"
                " found only if it has a word of the query: use words that the answer would"
                " contain, and synonyms. Use must, must_not and phrases only where nothing else"
                " will do: they leave documents out.",
                {
                    "query": query,
                    "k": _integer("How many documents at most.", 10, _MOST_HITS),
                    "filter": filter_,
                    "max_characters": _integer(
                        "Of each text, the part of this length that matches best is shown.", 1000
                    ),
                    **parts,
                },
                self._search,
            ),
            Tool(
                "get",
                "Return documents by id with their text, from a place in it on. Unknown ids are"
                " listed as missing.",
                {
                    "ids": ids,
                    "start": _integer("The first character of each text to return.", 0, None),
                    "max_characters": _integer("How many to return of each text.", 10_000),
                },
                self._get,
            ),
            Tool(
                "explain",
                "Explain, term by term, why a document has its score for a query, or why it is not"
                " found; and which words of the query do not count.",
                {
                    "query": query,
                    "id": {"type": "string", "description": "The document's id."},
                    **parts,
                },
                self._explain,
            ),
            Tool(
                "count",
                "Count the documents, or those that pass a filter.",
                {"filter": filter_},
                self._count,
            ),
        ]
        return reading + (self._writing_tools(ids) if self._write else [])

    def _writing_tools(self, ids: dict[str, Any]) -> list[Tool]:
        document = {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "text": {"type": "string"},
                "metadata": {
                    "type": "object",
                    "description": f"Fields for filters; JSON values.{self._weighted()}",
                },
            },
            "required": ["id", "text"],
            "additionalProperties": False,
        }
        choices = {
            "type": "string",
            "enum": list(get_args(OnDuplicate)),
            "default": "error",
            "description": "If an id is there already: write nothing, keep the old, or replace it.",
        }
        return [
            Tool(
                "add",
                "Add documents to the index for good; all of them, or none if anything is wrong.",
                {
                    "documents": _array(document, "The documents.", None),
                    "on_duplicate": choices,
                },
                self._add,
                reads=False,
            ),
            Tool(
                "delete",
                "Delete documents from the index for good, by id. Unknown ids are ignored.",
                {"ids": ids},
                self._delete,
                reads=False,
            ),
        ]

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool with JSON values by name; nothing about them is taken for granted."""
        tools = {tool.name: tool for tool in self._tools("")}
        if name not in tools:
            message = f"there is no tool {name!r:.100}; there are {', '.join(tools)}"
            raise ValueError(message)
        tool = tools[name]
        for given in arguments:
            if given not in tool.properties:
                message = (
                    f"{name} has no argument {given!r:.100}; it has {', '.join(tool.properties)}"
                )
                raise ValueError(message)
        for needed in tool.required:
            if needed not in arguments:
                message = f"{name} needs the argument {needed!r}"
                raise ValueError(message)
        self._index.refresh()
        content, text = tool.run(**arguments)
        return Answer(plain(content), plain(text))

    # --- reading --------------------------------------------------------------------

    def _search(
        self,
        query: object,
        k: object = 10,
        filter: object = None,
        max_characters: object = 1000,
        must: object = (),
        must_not: object = (),
        phrases: object = (),
    ) -> Answer:
        question = _question(query, must, must_not, phrases)
        length = _limited("max_characters", max_characters, _MOST_SHOWN)
        limit, index = _limited("k", k, _MOST_HITS), self._index.snapshot()
        batch = index.search_batch([question], limit, _filter(filter), threads=1)
        (hits,) = batch.hits()
        cut = {"incomplete": _INCOMPLETE} if batch.cut else {}
        note = f"{_INCOMPLETE}\n\n" if batch.cut else ""
        shown, left = [], _MOST_SEARCHED
        for hit in hits:
            left -= len(hit.text or "")
            _, start, spans = hit.snippet(length) if left >= 0 else ("", 0, [])
            part = part_of(hit, start, length)
            shown.append({"id": hit.id, "score": hit.score, **part, "spans": spans})
        if not hits:
            has = "all that is asked for" if must or must_not or phrases else "a word of the query"
            text = f"{note}No document that may be found has {has}."
            return Answer({"hits": []} | cut, text)
        headings = (f"{rank}. {hit.id} (score {hit.score:.4g})" for rank, hit in enumerate(hits, 1))
        return Answer({"hits": shown} | cut, note + written(headings, shown))

    def _get(self, ids: object, start: object = 0, max_characters: object = 10_000) -> Answer:
        wanted, first = _ids(ids), check_count("start", start)
        length = _limited("max_characters", max_characters, _MOST_SHOWN)
        found = self._index.get(wanted)
        shown = [{"id": one.id, **part_of(one, first, length)} for one in found]
        present = {one.id for one in found}
        missing = [id for id in wanted if id not in present]
        text = written((one.id for one in found), shown)
        if missing:
            text = f"{text}\n\nNot in the index: {', '.join(missing)}".lstrip()
        return Answer({"documents": shown, "missing": missing}, text)

    def _explain(
        self,
        query: object,
        id: Any,
        must: object = (),
        must_not: object = (),
        phrases: object = (),
    ) -> Answer:
        question = _question(query, must, must_not, phrases)
        index = self._index.snapshot()
        explanation = index.explain(question, id)
        ignored = dropped_words(question.as_text(), index.analyzer, explanation)
        lines = [str(explanation)]
        lines += (f"{word!r} does not count: {reason}" for word, reason in ignored.items())
        return Answer({**asdict(explanation), "ignored": ignored}, "\n".join(lines))

    def _count(self, filter: object = None) -> Answer:
        count = self._index.count(_filter(filter))
        return Answer({"count": count}, f"{count}")

    # --- writing --------------------------------------------------------------------

    def _add(self, documents: object, on_duplicate: Any = "error") -> Answer:
        records = [
            _document(place, one)
            for place, one in enumerate(check_sequence("documents", documents, "documents"))
        ]
        with self._writer() as index:
            if (fields := index.fields) is not None:
                for one in records:
                    one.fields = in_fields(one.text or "", one.metadata, fields)
            ids = index.add_documents(records, on_duplicate=on_duplicate)
        return Answer({"added": ids}, f"Added {len(ids)} of {len(records)}.")

    def _delete(self, ids: object) -> Answer:
        wanted = _ids(ids)
        with self._writer() as index:
            deleted = index.delete(wanted)
        return Answer({"deleted": deleted}, f"Deleted {len(deleted)} of {len(wanted)}.")

    def _writer(self) -> BM25Index:
        """Open the index for one commit, so that others may write in between."""
        options: dict[str, Any] = {"untrusted": self._untrusted, "timeout": self._patience}
        return BM25Index.open(self._path, mode="w", **options)

    # --- what the index holds -------------------------------------------------------

    def _analysis(self) -> str:
        language = self._index.analyzer.language
        return f"{language}: forms of a word are one" if language else "words as they are"

    def _weighted(self) -> str:
        if self._untrusted:  # as below
            return ""
        names = [name for name in self._index.fields or () if name != TEXT]
        shown = ", ".join(filter(_PLAIN_NAME.fullmatch, names))
        return f" Searched like the text: {shown}." if shown else ""

    def _described_fields(self) -> str:
        if self._untrusted:  # a stranger's words should not pass for instructions
            return ""
        ids = self._index.ids()
        sample = self._index.get(ids[:: max(1, len(ids) // _SAMPLE)][:_SAMPLE])
        kinds: dict[str, set[str]] = {}
        for document in sample:
            for path, kind in _fields(document.metadata):
                kinds.setdefault(path, set()).add(kind)
        named = [
            f"{path} ({' or '.join(sorted(kinds[path]))})"
            for path in sorted(kinds)
            if _PLAIN_NAME.fullmatch(path)
        ]
        return f" Fields here: {', '.join(named[:_FIELDS])}." if named else ""


# --- arguments ----------------------------------------------------------------------


def _integer(description: str, default: int, most: int | None = _MOST_SHOWN) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "integer",
        "minimum": 0,
        "default": default,
        "description": description,
    }
    return schema if most is None else schema | {"maximum": most}


def _array(items: dict[str, Any], description: str, most: int | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": items, "description": description}
    return schema if most is None else schema | {"maxItems": most}


def _limited(name: str, value: object, most: int) -> int:
    count = check_count(name, value)
    if count > most:
        message = f"{name} must be at most {most:,}"
        raise ValueError(message)
    return count


def _query(value: object) -> str:
    if not isinstance(value, str):
        message = f"query must be a string, got {type(value).__name__}"
        raise TypeError(message)
    if len(value) > _LONGEST_QUERY:
        message = f"query must have at most {_LONGEST_QUERY:,} characters, got {len(value):,}"
        raise ValueError(message)
    return value


def _question(query: object, must: object, must_not: object, phrases: object) -> Query:
    given = {"must": must, "must_not": must_not, "phrases": phrases}
    parts: dict[str, Any] = {
        name: _parts(name, value) for name, value in given.items() if value is not None
    }
    return Query(_query(query), timeout=_LOOKING, **parts)


def _parts(name: str, value: Any) -> list[str]:
    parts = list(check_sequence(name, value, "strings"))
    if not all(isinstance(part, str) for part in parts):
        message = f"{name} must be a list of strings, got {value!r:.100}"
        raise TypeError(message)
    _limited(f"the number of characters in {name}", sum(map(len, parts)), _LONGEST_QUERY)
    return parts


def _filter(value: object) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        message = (
            'filter must be an object such as {"year": {"$gte": 2020}}, '
            f"got {type(value).__name__}"
        )
        raise TypeError(message)
    return value


def _ids(value: object) -> list[str]:
    ids = check_ids(value)  # type: ignore[arg-type]  # it checks the type
    _limited("the number of ids", len(ids), _MOST_IDS)
    return ids


def _document(place: int, given: object) -> Document:
    if (
        not isinstance(given, dict)
        or not {"id", "text"} <= set(given) <= {"id", "text", "metadata"}
        or not isinstance(given["text"], str)
    ):
        message = f"documents[{place}] must be an object with id, text (a string) and metadata"
        raise ValueError(message)
    metadata = given.get("metadata")
    return Document(given["id"], given["text"], {} if metadata is None else metadata)


# --- fields -------------------------------------------------------------------------


def _fields(metadata: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths of metadata, each with the kind of its value."""
    for key, value in metadata.items():
        path = f"{above}{key}"
        if isinstance(value, dict):
            yield from _fields(value, f"{path}.")
        elif value is not None and "." not in key:
            yield path, _kind(value)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    for type_, kind in ((str, "string"), (list, "list"), (dt.datetime, "datetime")):
        if isinstance(value, type_):
            return kind
    return "date" if isinstance(value, dt.date) else "number"

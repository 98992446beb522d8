"""What ``bm25rag mcp`` offers to a language model: tools over indexes, without the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from inspect import signature
from typing import Any, NamedTuple, get_args

from bm25rag import Document
from bm25rag.agents import Answer, answer_schemas, answers, grep, read, schemas, search
from bm25rag.agents.answers import Part, plain
from bm25rag.agents.searching import LONGEST_QUERY, filter_within, read_question
from bm25rag.asking import with_fields
from bm25rag.cli.dropped import dropped_words
from bm25rag.cli.mcp.served import Served, named
from bm25rag.common.checks import check_id, check_ids, check_sequence
from bm25rag.index import BM25Index, OnDuplicate

# A model's context is small: a call that asks for more is a mistake.
_MOST_IDS = 100
# Characters of an explanation that say what lowers the score.
_MULTIPLIER = 50


class Tool(NamedTuple):
    """A tool: what a model is told about it, and the function that does it.

    ``properties`` are the JSON schemas of its arguments, ``returns`` that of its answer. ``run``
    takes the index, or, if ``reads`` is False, what is served, and changes it.
    """

    name: str
    description: str
    properties: dict[str, Any]
    returns: dict[str, Any]
    run: Callable[..., Answer]
    reads: bool = True

    @property
    def required(self) -> list[str]:
        """The arguments without a default."""
        given = list(signature(self.run).parameters.values())[1:]  # the first is the index
        needed = [one.name for one in given if one.default is one.empty and one.kind < 4]
        return ["index", *needed] if "index" in self.properties else needed


class IndexTools:
    """The tools over saved indexes, at least one; they may be called from several threads.

    Every call sees the last commit of its index. If there are several, each tool has the argument
    ``index``. ``write`` says whether to offer ``add`` and ``delete``.
    """

    def __init__(self, served: Sequence[Served], write: bool = False) -> None:
        self._served = named(list(served))
        self._write = write

    def __len__(self) -> int:
        """Return how many documents the indexes have."""
        return sum(len(one.index) for one in self._served.values())

    @property
    def names(self) -> list[str]:
        """What the indexes are called."""
        return list(self._served)

    def describe(self) -> str:
        """Return what the indexes hold, for a model."""
        if len(self._served) == 1:
            return next(iter(self._served.values())).description
        return "; ".join(f"{name}: {one.description}" for name, one in self._served.items())

    def tools(self) -> list[Tool]:
        """Return the tools, described for the indexes as they are at the moment."""
        each = {name: one.fields() for name, one in self._served.items()}
        if len(each) == 1:
            return self._tools(*each.values())
        return self._tools("; ".join(f"in {name}: {own}" for name, own in each.items() if own))

    def _tools(self, fields: str = "") -> list[Tool]:
        """Return the tools; this is where all their arguments are."""
        query = schemas.string(schemas.QUERY, LONGEST_QUERY)
        parts = dict.fromkeys(part for one in self._served.values() for part in one.parts)
        searching = schemas.search_schema(fields, parts)
        if any(one.has_vectors for one in self._served.values()):
            vector = "A learned sparse vector, weights by term, of the index's own encoder."
            searching["vector"] = {"type": "object", "description": vector}
        holds = self.describe()
        search_for = f"{schemas.SEARCH} Here: {holds}."
        grepping = schemas.grep_schema(fields)
        tools = [
            Tool("search", search_for, searching, answer_schemas.SEARCH, search),
            Tool("grep", schemas.GREP, grepping, answer_schemas.GREP, grep),
            Tool("read", schemas.READ, schemas.read_schema(), answer_schemas.READ, read),
            Tool(
                "explain",
                "Explain, term by term, why a document has its score for a query, or why it is not"
                " found; and which words of the query do not count.",
                {
                    "query": query,
                    "id": schemas.string("The document's id."),
                    "decay": schemas.DECAY,
                    **schemas.parts_schema(parts),
                    "budget": schemas.PAGING["budget"],
                },
                answer_schemas.EXPLAIN,
                _explain,
            ),
            Tool(
                "count",
                "Count the documents, or those that pass a filter.",
                {"filter": schemas.filter_schema(fields)},
                answer_schemas.COUNT,
                _count,
            ),
            *(_writing_tools() if self._write else []),
        ]
        if len(self._served) > 1:
            which = {"type": "string", "enum": self.names, "description": f"Which: {holds}."}
            tools = [
                tool._replace(properties={"index": which, **tool.properties}) for tool in tools
            ]
        return tools

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool with JSON values by name; nothing about them is taken for granted."""
        tools = {tool.name: tool for tool in self._tools()}
        if name not in tools:
            raise ValueError(f"there is no tool {name!r:.100}; there are {', '.join(tools)}")
        tool, given = tools[name], dict(arguments)
        for argument in given:
            if argument not in tool.properties:
                raise ValueError(
                    f"{name} has no argument {argument!r:.100}; it has {', '.join(tool.properties)}"
                )
        required = tool.required
        for needed in required:
            if needed not in given:
                raise ValueError(f"{name} needs the argument {needed!r}")
        which = given.pop("index", self.names[0])
        if not isinstance(which, str) or which not in self._served:
            raise ValueError(f"index must be one of {', '.join(self.names)}, got {which!r:.100}")
        served = self._served[which]
        served.index.refresh()
        # What a model leaves open, some clients pass as null.
        given = {key: one for key, one in given.items() if one is not None or key in required}
        if "cursor" in tool.properties:
            given["scope"] = which
        content, text = tool.run(served.index if tool.reads else served, **given)
        return Answer(plain(content), plain(text))


# --- reading ------------------------------------------------------------------------


def _explain(
    reader: BM25Index,
    query: Any,
    id: Any,
    budget: Any = answers.BUDGET,
    decay: Any = None,
    **asked_for: Any,
) -> Answer:
    room = answers.check_budget(budget) - answers.FRAME
    question = read_question(query, **asked_for)
    index = reader.snapshot()
    explanation = index.explain(question, check_id("id", id), decay=decay)
    name = answers.shortened(explanation.id)
    room -= answers.size(name) + (0 if decay is None else _MULTIPLIER)
    values = asdict(explanation)
    if index.fields is None:
        for one in values["terms"]:
            del one["fields"]
    parts = [
        Part(
            one,
            f"{one['term']}: {one['contribution']:.6f} (in {one['document_frequency']:,} documents,"
            f" {one['tf']:g} times here{_by_field(one)}, idf {one['idf']:.4f}, counted "
            f"{one['count']:g} times)",
        )
        for one in values["terms"]
    ]
    parts += [Part({"part": str(one), "passed": one.passed}, str(one)) for one in explanation.parts]
    text = question if isinstance(question, str) else question.as_text()
    ignored = dropped_words(text, index.analyzer, explanation)
    parts += [
        Part({"word": word, "ignored": reason}, f"{word!r} does not count: {reason}")
        for word, reason in ignored.items()
    ]
    shown = 0
    for part in parts:
        room -= part.cost
        shown += room >= 0
    matched = "" if explanation.matched else " (no match)"
    shift = f", {explanation.shift:.6f} of it for absent terms" if explanation.shift else ""
    lowered = "" if decay is None else f", lowered by {explanation.multiplier:g}"
    content = {
        "id": name,
        "score": explanation.score,
        "matched": explanation.matched,
        "shift": explanation.shift,
        "parts": [part.content for part in parts[:shown]],
        "total": len(parts),
        "returned": shown,
        "truncated": shown < len(parts),
    }
    if decay is not None:
        content["multiplier"] = explanation.multiplier
    lines = [f"{explanation.score:.6f} = score of {name}{matched}{shift}{lowered}"]
    lines += [part.text for part in parts[:shown]]
    if shown < len(parts):
        lines.append(f"[{shown} of {len(parts)} parts]")
    return Answer(content, "\n".join(lines))


def _by_field(term: Mapping[str, Any]) -> str:
    counts = [f"{name} {count}" for name, count in (term.get("fields") or {}).items() if count]
    return f": {', '.join(counts)}" if counts else ""


def _count(index: BM25Index, filter: Any = None) -> Answer:
    count = index.count(filter_within(filter, None))
    return Answer({"count": count}, f"{count}")


# --- writing ------------------------------------------------------------------------


_METADATA = (
    "Fields for filters; JSON values. Of an index with weighted fields, those of their names are"
    " searched, too."
)


def _writing_tools() -> list[Tool]:
    text, metadata = {"type": "string"}, {"type": "object", "description": _METADATA}
    document = schemas.object_schema(
        {"id": text, "text": text, "metadata": metadata}, required=["id", "text"]
    )
    choices = {
        "type": "string",
        "enum": list(get_args(OnDuplicate)),
        "default": "error",
        "description": "If an id is there already: write nothing, keep the old, or replace it.",
    }
    ids = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Ids of documents, as search returns them.",
        "maxItems": _MOST_IDS,
    }
    documents = {"type": "array", "items": document, "description": "The documents."}
    return [
        Tool(
            "add",
            "Add documents to the index for good; all of them, or none if anything is wrong.",
            {"documents": documents, "on_duplicate": choices},
            answer_schemas.ADD,
            _add,
            reads=False,
        ),
        Tool(
            "delete",
            "Delete documents from the index for good, by id. Unknown ids are ignored.",
            {"ids": ids},
            answer_schemas.DELETE,
            _delete,
            reads=False,
        ),
    ]


def _add(served: Served, documents: object, on_duplicate: Any = "error") -> Answer:
    records = [
        _document(place, one)
        for place, one in enumerate(check_sequence("documents", documents, "documents"))
    ]
    with served.writer() as index:
        ids = index.add_documents(with_fields(index, records), on_duplicate=on_duplicate)
    return _written("added", ids, len(records))


def _delete(served: Served, ids: Any) -> Answer:
    wanted = check_ids(ids)
    if len(wanted) > _MOST_IDS:
        raise ValueError(f"the number of ids must be at most {_MOST_IDS}")
    with served.writer() as index:
        deleted = index.delete(wanted)
    return _written("deleted", deleted, len(wanted))


def _written(what: str, ids: list[str], asked: int) -> Answer:
    """Return which ids were written: as many as an answer has room for."""
    room = answers.BUDGET - answers.FRAME
    shown: list[str] = []
    for id in ids[:_MOST_IDS]:
        room -= answers.size(name := answers.shortened(id)) + 1
        if room < 0:
            break
        shown.append(name)
    content = {what: shown, "total": len(ids), "returned": len(shown)}
    return Answer(content, f"{what.capitalize()} {len(ids):,} of {asked:,}.")


def _document(place: int, given: object) -> Document:
    known = {"id", "text", "metadata"}
    if isinstance(given, dict) and {"id", "text"} <= given.keys() <= known:
        metadata = {} if given.get("metadata") is None else given["metadata"]
        if isinstance(given["text"], str) and isinstance(metadata, dict):
            return Document(given["id"], given["text"], metadata)
    raise ValueError(
        f"documents[{place}] must be an object with id, text (a string) and, if need be, metadata "
        "(an object)"
    )

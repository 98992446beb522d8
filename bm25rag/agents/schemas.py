"""JSON schemas of the tools' arguments, in words that models fill correctly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bm25rag.agents.answers import BUDGET, LARGEST_BUDGET, LEAST_BUDGET
from bm25rag.agents.grepping import MOST_CONTEXT
from bm25rag.agents.searching import LONGEST_QUERY, MOST_HITS, MOST_PER_GROUP
from bm25rag.grep import LONGEST_PATTERN, has_regular_expressions

_FILTER = """Only documents whose metadata pass. {"lang": "en", "year": {"$gte": 2020}}: all \
conditions must hold. Operators: $eq $ne $lt $lte $gt $gte $in $nin (lists), $contains (element \
of a list, or case-sensitive substring), $icontains, $startswith, $exists (true or false), $date \
({"day": {"$date": {"$gte": "2024-01-31"}}}), $not; {"$or": [filter, ...]}, {"$and": [...]}. A \
dot leads into nested fields; "$id" is the document's id. 1 and "1" differ."""


def object_schema(properties: Mapping[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    """Return the schema of an object with these values and no others."""
    values = {"type": "object", "properties": properties, "required": list(required)}
    return {**values, "additionalProperties": False}


def integer(description: str, default: int, minimum: int, maximum: int) -> dict[str, Any]:
    """Return the schema of a number."""
    limits = {"default": default, "minimum": minimum, "maximum": maximum}
    return {"type": "integer", "description": description, **limits}


def string(description: str, longest: int | None = None) -> dict[str, Any]:
    """Return the schema of a string."""
    schema: dict[str, Any] = {"type": "string", "description": description}
    return schema if longest is None else schema | {"maxLength": longest}


def flag(description: str) -> dict[str, Any]:
    """Return the schema of what is false unless given."""
    return {"type": "boolean", "description": description, "default": False}


def filter_schema(fields: str = "") -> dict[str, Any]:
    """Return the schema of a filter, given what is said of the fields there are."""
    here = f" Fields here: {fields}." if fields else ""
    return {"type": "object", "description": f"{_FILTER}{here}"}


_BUDGET = "Characters of the whole answer; what is left out is said, with a cursor to go on."
# The schemas of what all tools have that return text.
PAGING = {
    "budget": integer(_BUDGET, BUDGET, LEAST_BUDGET, LARGEST_BUDGET),
    "cursor": string("To go on: from the last answer, with the same arguments."),
}
QUERY = """Words to look for. Signs and quotes mean nothing here: phrases, must and must_not are \
arguments."""
_DECAY = """Lowers scores by age: {"path": "date", "half_life": "30d", "floor": 0.5} halves them \
every 30 days, to no less than half; or by a number: {"path": "stars", "full": 5, "floor": 0.5}."""
DECAY = {"type": "object", "description": _DECAY}


def search_schema(fields: str = "", parts: Collection[str] = ()) -> dict[str, Any]:
    """Return the schemas of the arguments of ``search``.

    ``fields`` is what is said of the metadata; ``parts`` are the fields of the documents, whose
    words count with weights, if they have any.
    """
    return {
        "query": string(QUERY, LONGEST_QUERY),
        "k": integer("How many documents at most.", 10, 1, MOST_HITS),
        "filter": filter_schema(fields),
        "group": string(
            "Group documents, and return the best of each: by a field of the metadata, or $text for"
            " equal texts. k then counts groups, and group_size how many of each match."
        ),
        "per_group": integer(
            "With group: how many of each group at most; they come together.", 1, 1, MOST_PER_GROUP
        ),
        "decay": DECAY,
        **parts_schema(parts),
        **PAGING,
    }


def parts_schema(parts: Collection[str] = ()) -> dict[str, Any]:
    """Return the schemas of other wordings, and of what documents must have, and must not."""
    said = {
        "also": "Other wordings of the query, with other words for it: all of them count together.",
        "must": "Words or groups of words of which a document must have all.",
        "must_not": "Words or groups of words of which a document must not have all.",
        "phrases": "Words that a document must have in exactly this order, stop words too.",
        "not_phrases": "Words that a document must not have in exactly this order.",
    }
    texts = {"type": "array", "items": {"type": "string"}, "maxItems": 100}
    lists = {name: texts | {"description": description} for name, description in said.items()}
    if not parts:
        return lists
    alone = "Look for all of this in one part of the documents alone; in any, unless given."
    return lists | {"field": {"type": "string", "enum": [*parts], "description": alone}}


def grep_schema(fields: str = "") -> dict[str, Any]:
    """Return the schemas of the arguments of ``grep``; ``regex`` only if there is an engine."""
    regex = {
        "regex": flag(
            "Whether the pattern is a regular expression (RE2: no look-around, no backreferences),"
            " matched within lines."
        )
    }
    return {
        "pattern": string("What stands in a line, character for character.", LONGEST_PATTERN),
        "filter": filter_schema(fields),
        **(regex if has_regular_expressions() else {}),
        "ignore_case": flag("Whether capitals and small letters are the same."),
        "context": integer("Lines to show before and after each.", 0, 0, MOST_CONTEXT),
        **PAGING,
    }


def read_schema() -> dict[str, Any]:
    """Return the schemas of the arguments of ``read``."""
    return {
        "id": string("The id of a document; give either id or source."),
        "source": string("The source of documents, such as a file, as search and grep name it."),
        "lines": string('"10-20", "10-" or "10": lines of the document, or of the source. All.'),
        **PAGING,
    }


SEARCH = (
    "Search documents by their words (BM25) and return the best, best first, with id, source, "
    "lines, score and the part of the text that matches best. A document is found only if it has a "
    "word of the query: use words that the answer would contain, and synonyms; one call takes "
    "several wordings, in also. Use must, must_not and phrases only where nothing else will do: "
    "they leave documents out."
)
GREP = (
    "Search texts for lines with exactly this string, in document order: for names, codes, error "
    "messages and quotations. Words are not stemmed; use search to find what is about a subject."
)
READ = (
    "Read a document by id, or what comes from a source such as a file, with numbered lines: the "
    "whole of what search and grep show parts of, to quote it exactly."
)

"""BM25Translator, which lets LangChain's SelfQueryRetriever filter a ``BM25VectorStore``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
    Visitor,
)

_MEMBERSHIPS = (Comparator.IN, Comparator.NIN)


class BM25Translator(Visitor):
    """Translates structured queries into bm25rag's filters.

    Dates and datetimes are compared as instants, however the metadata hold them (``$date``).
    ``contain`` is an element of a list, or a part of a string; with several values, any of them. A
    date in it is the date, or the text as it is written. What only looks like a date is a text.
    """

    allowed_operators: Sequence[Operator] | None = (Operator.AND, Operator.OR, Operator.NOT)
    allowed_comparators: Sequence[Comparator] | None = tuple(
        comparator for comparator in Comparator if comparator is not Comparator.LIKE
    )

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """Return ``$and`` or ``$or`` of the translated arguments, or ``$not``: that none holds."""
        self._validate_func(operation.operator)
        arguments = [argument.accept(self) for argument in operation.arguments]
        if operation.operator is Operator.NOT:
            return {"$not": arguments[0] if len(arguments) == 1 else {"$or": arguments}}
        return {f"${operation.operator.value}": arguments}

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """Return the condition on the attribute."""
        self._validate_func(comparison.comparator)
        attribute, comparator = comparison.attribute, comparison.comparator
        several = isinstance(comparison.value, (list, tuple))
        given = comparison.value if several else [comparison.value]
        if comparator is Comparator.CONTAIN:
            return _containing(attribute, [form for value in given for form in _forms(value)])
        values = [_plain(value) for value in given]
        name = f"${comparator.value}"
        if comparator in _MEMBERSHIPS:  # models write in("year", 2000), too
            return _membership(attribute, name, values)
        condition: dict[str, Any] = {name: values if several else values[0]}
        are_dates = values and all(isinstance(value, date) for value in values)
        return {attribute: {"$date": condition} if are_dates else condition}

    def visit_structured_query(
        self, structured_query: StructuredQuery
    ) -> tuple[str, dict[str, Any]]:
        """Return the query, and the arguments of the search: the filter, if there is one."""
        filter = structured_query.filter
        return structured_query.query, {} if filter is None else {"filter": filter.accept(self)}


def _containing(attribute: str, values: Sequence[Any]) -> dict[str, Any]:
    if not values:
        return {attribute: {"$containsAny": []}}
    # $containsAny looks into lists only.
    conditions = [{attribute: {"$contains": value}} for value in values]
    return conditions[0] if len(conditions) == 1 else {"$or": conditions}


def _membership(attribute: str, name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return ``$in`` or ``$nin`` of values, of which the dates are compared as instants.

    Otherwise one more value in a ``nin`` would let dates pass that were excluded without it.
    """
    dates = [value for value in values if isinstance(value, date)]
    others = [value for value in values if not isinstance(value, date)]
    conditions: list[dict[str, Any]] = [{attribute: {"$date": {name: dates}}}] if dates else []
    if others or not dates:
        conditions.append({attribute: {name: others}})
    if len(conditions) == 1:
        return conditions[0]
    return {"$or" if name == "$in" else "$and": conditions}


def _forms(value: Any) -> list[Any]:
    """Return a value; of a date also its text, because the parser takes any text like it for it."""
    plain = _plain(value)
    if plain is value or isinstance(plain, str):
        return [plain]
    return [value.get("date", value.get("datetime")), plain]


def _plain(value: Any) -> Any:
    """Return a value as metadata hold it; LangChain's parser wraps dates, and "2024-02-30"."""
    for name, kind in (("date", date), ("datetime", datetime)):
        if isinstance(value, Mapping) and name in value:
            try:
                return kind.fromisoformat(value[name])
            except ValueError:
                return value[name]
    return value

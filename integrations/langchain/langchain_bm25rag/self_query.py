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

# By whether there are several values.
_CONTAIN = {False: "$contains", True: "$containsAny"}


class BM25Translator(Visitor):
    """Translates structured queries into bm25rag's filters.

    Dates and datetimes are compared as instants, however the metadata hold them (``$date``).
    ``contain`` is an element of a list, or a part of a string; with several values, any of them.
    """

    allowed_operators: Sequence[Operator] | None = (Operator.AND, Operator.OR, Operator.NOT)
    allowed_comparators: Sequence[Comparator] | None = tuple(
        comparator for comparator in Comparator if comparator is not Comparator.LIKE
    )

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """Return ``$and``, ``$or`` or ``$not`` of the translated arguments."""
        self._validate_func(operation.operator)
        arguments = [argument.accept(self) for argument in operation.arguments]
        if operation.operator is Operator.NOT:
            return {"$not": arguments[0] if len(arguments) == 1 else {"$and": arguments}}
        return {f"${operation.operator.value}": arguments}

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """Return the condition on the attribute."""
        self._validate_func(comparison.comparator)
        several = isinstance(comparison.value, (list, tuple))
        values = [_plain(value) for value in (comparison.value if several else [comparison.value])]
        # Models write in("year", 2000), too.
        several |= comparison.comparator in (Comparator.IN, Comparator.NIN)
        name = f"${comparison.comparator.value}"
        if comparison.comparator is Comparator.CONTAIN:
            name = _CONTAIN[several]
        condition: dict[str, Any] = {name: values if several else values[0]}
        if values and all(isinstance(value, date) for value in values):
            condition = {"$date": condition}
        return {comparison.attribute: condition}

    def visit_structured_query(
        self, structured_query: StructuredQuery
    ) -> tuple[str, dict[str, Any]]:
        """Return the query, and the arguments of the search: the filter, if there is one."""
        filter = structured_query.filter
        return structured_query.query, {} if filter is None else {"filter": filter.accept(self)}


def _plain(value: Any) -> Any:
    """Return a value as metadata hold it; LangChain's parser wraps dates."""
    if isinstance(value, Mapping) and "date" in value:
        return date.fromisoformat(value["date"])
    if isinstance(value, Mapping) and "datetime" in value:
        return datetime.fromisoformat(value["datetime"])
    return value

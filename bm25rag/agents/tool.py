"""Search as a tool of a framework's agent: what its adapter wraps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bm25rag.agents import schemas
from bm25rag.agents.fields import described_fields
from bm25rag.agents.searching import search
from bm25rag.errors import BM25Error
from bm25rag.filters import FilterSpec
from bm25rag.index import BM25Index


class SearchTool:
    """A search that a model calls: a name, a description, a schema, and texts as answers.

    Parameters
    ----------
    current
        Returns the index to search now.
    name
        What the model calls it.
    about
        What the documents are, for the model.
    within
        Returns the filter that documents must pass in any case, given that index; ``None``: none.
    metadata
        Whether metadata are shown; not where texts begin with them.
    options
        More arguments for ``BM25Index.search``.
    """

    def __init__(
        self,
        current: Callable[[], BM25Index],
        name: str,
        about: str,
        *,
        within: Callable[[BM25Index], FilterSpec | None] | None = None,
        metadata: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._current, self._within, self._metadata = current, within, metadata
        self._options = dict(options or {})
        self.name = name
        self.description = f"{about.strip().rstrip('.')}. Search documents {schemas.SEARCH}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments, with the fields that documents have now."""
        return {
            "type": "object",
            "properties": schemas.search_schema(described_fields(self._current())),
            "required": ["query"],
            "additionalProperties": False,
        }

    def run(self, **arguments: Any) -> str:
        """Return the answer; or, beginning with "Error: ", what the model should change."""
        known = schemas.search_schema()
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            for name in given:
                if name not in known:
                    message = f"there is no argument {name!r:.100}; there are {', '.join(known)}"
                    raise ValueError(message)
            index = self._current().snapshot()
            within = None if self._within is None else self._within(index)
            options = {"within": within, "metadata": self._metadata, "options": self._options}
            return search(index, given.pop("query", None), **given, **options).text
        except (BM25Error, TypeError, ValueError) as error:
            return f"Error: {error!s:.1000}"

"""Search, grep and read as tools of a framework's agent: what its adapter wraps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from bm25rag.agents import schemas
from bm25rag.agents.answers import Answer
from bm25rag.agents.fields import described_fields
from bm25rag.agents.grepping import grep
from bm25rag.agents.reading import read
from bm25rag.agents.searching import Beside, search
from bm25rag.common.checks import check_choice
from bm25rag.errors import BM25Error
from bm25rag.filters import FilterSpec
from bm25rag.index import BM25Index

Doing: TypeAlias = Literal["search", "grep", "read"]
"""What a tool does."""

_DESCRIBED = {"search": schemas.SEARCH, "grep": schemas.GREP, "read": schemas.READ}
# The arguments that a call must have.
_NEEDED = {"search": ["query"], "grep": ["pattern"], "read": []}


def check_searched(
    given: object, name: str, kinds: Sequence[type], searches: Sequence[str], instead: str
) -> None:
    """Raise ``TypeError`` for what the tools of an adapter cannot search.

    They ask the index itself. So what a subclass makes of the methods ``searches``, such as a
    filter for a tenant, would not hold. ``instead`` says what to give; the first of the ``kinds``
    that ``given`` is an instance of counts.
    """
    kind = next((each for each in kinds if isinstance(given, each)), None)
    if kind is None:
        expected = " or ".join(each.__name__ for each in kinds)
        raise TypeError(f"{name} must be a {expected}, got {type(given).__name__}: {instead}")
    bases = type(given).__mro__
    for each in bases[: bases.index(kind)]:
        for method in searches:
            if method in vars(each):
                raise TypeError(
                    f"{name}: {each.__name__} overrides {method}, which a tool does not call, "
                    f"because it asks the index: {instead}"
                )


class IndexTool:
    """What a model calls to search, grep or read: a name, a description, a schema, and texts.

    Parameters
    ----------
    current
        Returns the index to look into now.
    name, about
        What the model calls it, and what the documents are, for the model.
    does
        What it does: ``"search"``, ``"grep"`` or ``"read"``.
    within
        Returns the filter that documents must pass in any case, given that index; ``None``: none.
    metadata
        Whether metadata are shown; not where texts begin with them.
    options, beside
        As in ``search``.
    """

    def __init__(
        self,
        current: Callable[[], BM25Index],
        name: str,
        about: str,
        does: Doing = "search",
        *,
        within: Callable[[BM25Index], FilterSpec | None] | None = None,
        metadata: bool = True,
        options: Mapping[str, Any] | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._current, self._within, self._metadata = current, within, metadata
        self._beside = beside
        self._does, self._options = check_choice("does", does, get_args(Doing)), dict(options or {})
        self.name = name
        self.description: str = f"{about.strip().rstrip('.')}. {_DESCRIBED[does]}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments, with the fields that documents have now."""
        index = self._current().snapshot()
        within = None if self._within is None else self._within(index)
        properties = self._schemas(index, described_fields(index, within))
        return schemas.object_schema(properties, _NEEDED[self._does])

    def run(self, **arguments: Any) -> str:
        """Return the answer; or, beginning with "Error: ", what the model should change."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            index = self._current().snapshot()
            known = self._schemas(index)
            for name in given:
                if name not in known:
                    message = f"there is no argument {name!r:.100}; there are {', '.join(known)}"
                    raise ValueError(message)
            given["within"] = None if self._within is None else self._within(index)
            return self._answer(index, given).text
        except (BM25Error, TypeError, ValueError) as error:
            return f"Error: {error!s:.1000}"
        except RecursionError:
            return "Error: the arguments are nested too deep"

    def _schemas(self, index: BM25Index, fields: str = "") -> dict[str, Any]:
        if self._does == "read":
            return schemas.read_schema()
        if self._does == "grep":
            return schemas.grep_schema(fields)
        return schemas.search_schema(fields, index.fields or ())

    def _answer(self, index: BM25Index, given: dict[str, Any]) -> Answer:
        if self._does == "grep":
            return grep(index, given.pop("pattern", None), **given)
        if self._does == "read":
            return read(index, metadata=self._metadata, **given)
        given |= {"metadata": self._metadata, "options": self._options, "beside": self._beside}
        return search(index, given.pop("query", None), **given)

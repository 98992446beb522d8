"""Analyzers in the dump of a pipeline: the settings that differ from their language's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haystack.core.errors import SerializationError
from haystack.utils import deserialize_callable, serialize_callable

from bm25rag import Analyzer


def analyzer_to_dict(analyzer: Analyzer) -> dict[str, Any]:
    """Return arguments of ``Analyzer`` that make an equal one; a tokenizer by its name."""
    also = [[analyzer_to_dict(own), weight] for own, weight in analyzer.also]
    further = {"also": also} if also else {}
    if (tokenizer := analyzer.tokenizer) is not None:
        try:
            return {"tokenizer": serialize_callable(tokenizer), **further}
        except (SerializationError, AttributeError) as error:
            message = f"the tokenizer {tokenizer!r} cannot be serialized ({error}): "
            raise SerializationError(message + "use a function of a module") from error
    # What these imply for others need not be said.
    first = ("token_pattern", "cjk", "ngrams")
    settings, usual = analyzer.to_dict(), Analyzer(analyzer.language).to_dict()
    chosen = {name: settings[name] for name in first if settings.get(name) != usual.get(name)}
    usual = Analyzer(analyzer.language, **chosen).to_dict() | {"also": settings.get("also")}
    others = {name: value for name, value in settings.items() if value != usual[name]}
    return {"language": analyzer.language, **chosen, **others, **further}


def analyzer_from_dict(settings: Mapping[str, Any]) -> Analyzer:
    """Make an analyzer from some of its arguments; Haystack decides which tokenizer it imports."""
    if isinstance(named := settings.get("tokenizer"), str):
        settings = {**settings, "tokenizer": deserialize_callable(named)}
    also = [(analyzer_from_dict(own), weight) for own, weight in settings.get("also", ())]
    return Analyzer(**{**settings, "also": also})

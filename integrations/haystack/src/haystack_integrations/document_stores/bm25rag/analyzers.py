"""Analyzers in the dump of a pipeline: the settings that differ from their language's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haystack.core.errors import SerializationError
from haystack.utils import deserialize_callable, serialize_callable

from bm25rag import Analyzer
from bm25rag.adapters import Tokenizer


def analyzer_to_dict(analyzer: Analyzer) -> dict[str, Any]:
    """Return arguments of ``Analyzer`` that make an equal analyzer.

    Raises
    ------
    SerializationError
        If the tokenizer is not a function that can be imported by name.
    """
    if analyzer.tokenizer is not None:
        return {"tokenizer": _name_of(analyzer.tokenizer)}
    usual = Analyzer(analyzer.language).to_dict()
    settings = analyzer.to_dict().items()
    changed = {name: value for name, value in settings if value != usual[name]}
    return {"language": analyzer.language, **changed}


def _name_of(tokenizer: Tokenizer) -> str:
    try:
        return serialize_callable(tokenizer)
    except (SerializationError, AttributeError) as error:
        message = f"the tokenizer {tokenizer!r} cannot be serialized ({error}): "
        raise SerializationError(message + "use a function of a module") from error


def analyzer_from_dict(settings: Mapping[str, Any]) -> Analyzer:
    """Make an analyzer from some of the arguments of ``Analyzer``.

    Haystack's own function imports a tokenizer by name, and decides whether that is allowed.

    Raises
    ------
    DeserializationError
        If Haystack does not allow importing the tokenizer, or does not find it.
    """
    if isinstance(named := settings.get("tokenizer"), str):
        return Analyzer(**{**settings, "tokenizer": deserialize_callable(named)})
    return Analyzer(**settings)

"""Packages of extras, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bm25rag.errors import MissingDependencyError


def load(module: str, need: str, extra: str) -> Any:
    """Import a module; without it, an error says what needs it, and which extra has it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as cause:
        raise MissingDependencyError(f"{need}: pip install 'bm25rag[{extra}]'") from cause

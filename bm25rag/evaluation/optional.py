"""Imports the packages of the extra ``eval``."""

from __future__ import annotations

import importlib
from types import ModuleType

from bm25rag.errors import MissingDependencyError


def load(module: str, package: str) -> ModuleType:
    """Import a module of an optional package, named as for pip, or say how it is installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as cause:
        message = f"evaluation needs {package}: pip install 'bm25rag[eval]'"
        raise MissingDependencyError(message) from cause

"""The one place that imports what the extra ``eval`` brings."""

from __future__ import annotations

import importlib
from types import ModuleType

from bm25rag.errors import MissingDependencyError

__all__ = ["load"]


def load(module: str, package: str) -> ModuleType:
    """Import a module of an optional package.

    Parameters
    ----------
    module
        Its name, as ``import`` has it.
    package
        The package that pip installs.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as cause:
        message = f"evaluation needs {package}: pip install 'bm25rag[eval]'"
        raise MissingDependencyError(message) from cause

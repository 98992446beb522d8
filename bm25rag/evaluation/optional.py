"""Imports the packages of the extra ``eval``."""

from __future__ import annotations

import importlib
from types import ModuleType

from bm25rag.errors import MissingDependencyError


def load(module: str, package: str) -> ModuleType:
    """Import a module of an optional package.

    Parameters
    ----------
    module
        Its name, as in ``import``.
    package
        The name of the package for pip.

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

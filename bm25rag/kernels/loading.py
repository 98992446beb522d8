"""Finds the kernels: as Python compiled them, or their sources where these are asked for."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ExtensionFileLoader, PathFinder
from types import ModuleType

from bm25rag.kernels.memory import INTERPRETED

# The kernels for writing, in this order: what another one imports comes first.
WRITING = ("building", "signs", "bigrams", "words", "scanning")
_FOLDER = os.path.dirname(__file__)


def load(name: str) -> ModuleType:
    """Import a kernel; those that it imports must have been loaded.

    Parameters
    ----------
    name
        Its module's name within this package.

    Raises
    ------
    ImportError
        If it was not compiled, or not for this Python or this machine.
    """
    full = f"{__package__}.{name}"
    if INTERPRETED:
        return sys.modules.get(full) or _interpret(full, os.path.join(_FOLDER, f"{name}.py"))
    find(name)
    return importlib.import_module(full)


def find(name: str) -> None:
    """Look for a kernel that ``load`` will import later; raise if there is none."""
    full = f"{__package__}.{name}"
    if INTERPRETED:
        return
    spec = PathFinder.find_spec(full, [_FOLDER])
    if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
        raise ImportError(_missing(name), name=full)


def _interpret(full: str, path: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(full, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module", name=full)
    module = sys.modules[full] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[full]
        raise
    return module


def _missing(name: str) -> str:
    others = sorted(
        file
        for file in os.listdir(_FOLDER)
        if file.startswith(f"{name}.") and file.endswith((".so", ".pyd"))
    )
    if others:
        return f"{', '.join(others)} in {_FOLDER} is for another Python"
    return f"{name} in {_FOLDER} was not compiled when bm25rag was built"

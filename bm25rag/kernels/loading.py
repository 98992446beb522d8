"""Finds the kernels: as Python compiled them, or their sources where these are asked for."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ExtensionFileLoader, PathFinder
from types import ModuleType

from bm25rag.kernels.memory import INTERPRETED

# The kernels for writing, in this order: what another one imports comes first.
WRITING = ("building", "signs", "bigrams", "word_table", "scanning", "packing")
_FOLDER = os.path.dirname(__file__)
_CHECKOUT = os.path.dirname(os.path.dirname(_FOLDER))
_NEEDED = (
    "which needs Python's headers (on Debian and Ubuntu in the package python3-dev) "
    "and, where CC is set, the compiler that it names"
)
# Files that are copied together differ by less, in seconds, in whatever order.
_TOGETHER = 1.0


def load(name: str) -> ModuleType:
    """Import a kernel by its module's name here; those that it imports must have been loaded.

    An ``ImportError`` says that it was not compiled, or not for this Python or this machine, or
    before its source changed.
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
    if changed := _changed_since(name, spec.loader.path):
        library = os.path.basename(spec.loader.path)
        raise ImportError(f"{library} in {_FOLDER} is older than {changed}{_remedy()}", name=full)


def _changed_since(name: str, library: str) -> str | None:
    """Return the source that has changed since it was compiled; only in a checkout may it."""
    if not _in_checkout():
        return None
    compiled = os.stat(library).st_mtime
    for file in (f"{name}.py", f"{name}.pxd"):
        try:
            changed = os.stat(os.path.join(_FOLDER, file)).st_mtime
        except FileNotFoundError:  # some declare nothing, and `shared` has no source
            continue
        if changed > compiled + _TOGETHER:
            return file
    return None


def _in_checkout() -> bool:
    return os.path.exists(os.path.join(_CHECKOUT, "setup.py"))


def _remedy() -> str:
    # Without -v, pip does not say why a compiler failed.
    again = f"; run 'pip install -v .' in {_CHECKOUT}, which says what fails"
    return again if _in_checkout() else ""


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
    if not os.path.isdir(_FOLDER):
        return (
            f"{_FOLDER} is no folder: an archive cannot hold compiled code, and a program that is "
            "made of bm25rag needs its files (PyInstaller: --collect-all bm25rag)"
        )
    others = sorted(
        file
        for file in os.listdir(_FOLDER)
        if file.startswith(f"{name}.") and file.endswith((".so", ".pyd"))
    )
    if others:
        return f"{', '.join(others)} in {_FOLDER} is for another Python{_remedy()}"
    if _in_checkout():
        return f"{name} in {_FOLDER} was never compiled, {_NEEDED}{_remedy()}"
    return (
        f"{name} in {_FOLDER} was not compiled when bm25rag was built, {_NEEDED}; "
        "install it again from where it came with pip's options "
        "'-v --no-binary bm25rag --force-reinstall', which says what fails"
    )

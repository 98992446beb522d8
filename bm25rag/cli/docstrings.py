"""The documentation that every Python carries, read from its source and never imported."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from bm25rag import Document

__all__ = ["read_docstrings", "standard_library"]

# Not documentation of the library: its tests, and what others installed.
_SKIPPED = frozenset({"dist-packages", "idle_test", "site-packages", "test", "tests"})

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def standard_library() -> Path:
    """Return the folder of the running Python's standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def read_docstrings(root: Path) -> Iterator[Document]:
    """Yield a document for each docstring of modules, classes and functions.

    Parameters
    ----------
    root
        A folder of Python source. Files that do not parse are passed over.

    Yields
    ------
    Document
        Its id is the dotted name, its text that name and the docstring, its
        metadata ``module``, ``kind``, ``path`` (below `root`) and ``line``.
        Where a name is defined twice, its id comes twice.
    """
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if not _SKIPPED.intersection(relative.parts):
            yield from _read_module(path, relative)


def _read_module(path: Path, relative: Path) -> Iterator[Document]:
    try:
        with warnings.catch_warnings():
            # Old modules have escapes that today's parser frowns upon.
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    parts = relative.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    for name, node in _documented(tree, module):
        docstring = ast.get_docstring(node)
        if docstring:
            metadata = {
                "module": module,
                "kind": _kind(node),
                "path": relative.as_posix(),
                "line": getattr(node, "lineno", 1),
            }
            text = f"{name}\n\n{docstring}"
            yield Document(id=name, text=text, metadata=metadata, payload=None)


def _documented(node: ast.AST, name: str) -> Iterator[tuple[str, _Documented]]:
    """Yield what can have a docstring, by dotted name, in the order of the source."""
    if isinstance(node, _Documented):
        yield name, node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(child, f"{name}.{child.name}")
        elif isinstance(child, ast.If | ast.Try | ast.ExceptHandler):
            yield from _documented(child, name)


def _kind(node: _Documented) -> str:
    if isinstance(node, ast.Module):
        return "module"
    return "class" if isinstance(node, ast.ClassDef) else "function"

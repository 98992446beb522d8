"""Docstrings of Python's standard library, read from its source without importing it."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from bm25rag import Document

# Not the library's documentation: its tests, and installed packages.
_SKIPPED = frozenset({"dist-packages", "idle_test", "site-packages", "test", "tests"})

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def standard_library() -> Path:
    """Return the folder of the running Python's standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def read_docstrings(root: Path) -> Iterator[Document]:
    """Yield a document for each docstring of a module, class or function.

    Its id is the dotted name, its text that name and the docstring, its metadata ``module``,
    ``kind``, ``path`` (below `root`) and ``line``. Where a name is defined twice, its id comes
    twice.
    """
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if not _SKIPPED.intersection(relative.parts):
            yield from _read_module(path, relative)


def _read_module(path: Path, relative: Path) -> Iterator[Document]:
    try:
        with warnings.catch_warnings():
            # Old modules have escapes that the parser warns of.
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
    """Yield the nodes that can have a docstring, with their dotted names, in order."""
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

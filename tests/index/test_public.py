"""What is public, what an import costs, and that the documentation names every parameter."""

from __future__ import annotations

import ast
import importlib
import inspect
import pydoc
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

import bm25rag
from bm25rag import adapters, agents, errors, filters, following, fusion, hybrid, vectors
from bm25rag.adapters import DeltaOn, Mode, OnDuplicate, VariantName
from bm25rag.scoring.variants import VARIANTS
from support.environment import ROOT

# What adapters may import, and no more: a name that leaves a list, or the package, breaks them.
DECLARED = {
    "bm25rag": set(bm25rag.__all__),
    "bm25rag.adapters": set(adapters.__all__),
    "bm25rag.agents": set(agents.__all__),
    "bm25rag.errors": set(errors.__all__),
    "bm25rag.filters": set(filters.__all__),
    "bm25rag.following": set(following.__all__),
    "bm25rag.fusion": set(fusion.__all__),
    "bm25rag.hybrid": set(hybrid.__all__),
    "bm25rag.vectors": set(vectors.__all__),
}
ADAPTERS = sorted(
    path
    for path in (ROOT / "integrations").rglob("*.py")
    if "tests" not in path.relative_to(ROOT).parts
)


def public_modules() -> Iterator[types.ModuleType]:
    folder = Path(bm25rag.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        if not path.stem.startswith("_") and re.search("^__all__ = ", text, re.MULTILINE):
            yield importlib.import_module(".".join(parts))


def ours(value: Any) -> bool:
    """Whether a method is defined in this library, in whatever class."""
    return str(getattr(value, "__module__", "")).startswith("bm25rag")


def public_callables() -> Iterator[tuple[str, Any]]:
    """Name functions, classes and their methods that a user can reach by public names."""
    for name in bm25rag.__all__:
        found = getattr(bm25rag, name)
        if not callable(found):
            continue
        yield name, found
        if inspect.isclass(found):
            for member, value in inspect.getmembers(found, callable):
                if not member.startswith("_") and ours(value):
                    yield f"{name}.{member}", value


CALLABLES = dict(public_callables())


def test_all_is_sorted_and_is_what_is_public() -> None:
    assert list(bm25rag.__all__) == sorted(bm25rag.__all__)
    modules = {name for name, value in vars(bm25rag).items() if isinstance(value, types.ModuleType)}
    public = {name for name in vars(bm25rag) if not name.startswith("_")}
    assert public - modules - {"annotations"} == set(bm25rag.__all__) - {"__version__"}


@pytest.mark.parametrize("module", list(public_modules()), ids=lambda module: module.__name__)
def test_every_modules_all_names_what_it_has(module: types.ModuleType) -> None:
    names = list(getattr(module, "__all__", []))
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []


def test_adapters_may_import_these_names() -> None:
    assert DECLARED["bm25rag"] == {
        "Analyzer",
        "BM25Index",
        "BatchResult",
        "Correction",
        "Decay",
        "Document",
        "Explanation",
        "Hit",
        "Prior",
        "Query",
    }
    lists = re.findall("^``.*", adapters.__doc__ or "", re.MULTILINE)
    assert set(re.findall("``(.*?)``", "".join(lists))) == DECLARED["bm25rag.adapters"]
    assert DECLARED["bm25rag.following"] == {"FollowedFolder", "SharedIndex", "follow", "share"}
    assert DECLARED["bm25rag.fusion"] == {"FusionMethod", "Ranking", "check_fusion", "fuse"}
    assert DECLARED["bm25rag.hybrid"] == {"HybridSearch", "OnUnknown", "with_parts"}
    assert DECLARED["bm25rag.vectors"] == {"Vector", "Vectors", "read_vector"}
    assert DECLARED["bm25rag.filters"] >= {
        "And",
        "CallableFilter",
        "Condition",
        "Filter",
        "FilterSpec",
        "IdCondition",
        "Not",
        "Operator",
        "Or",
        "escape_key",
        "parse_filter",
    }


def imported_names(source: str) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of whatever a source imports from the core."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ""
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield node.module or "", alias.name


def undeclared(source: str) -> list[str]:
    return [
        f"{module}.{name}" if name else module
        for module, name in imported_names(source)
        if module.partition(".")[0] == "bm25rag" and name not in DECLARED.get(module, ())
    ]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from bm25rag import BM25Index, Hit", []),
        ("from bm25rag.errors import LockedError", []),
        ("from langchain_bm25rag.filters import search", []),
        (
            "from bm25rag.common.codec import encode_metadata",
            ["bm25rag.common.codec.encode_metadata"],
        ),
        ("def late():\n    from bm25rag import index", ["bm25rag.index"]),
        ("import bm25rag.analysis", ["bm25rag.analysis"]),
        ("from bm25rag.filters import *", ["bm25rag.filters.*"]),
    ],
)
def test_imports_beyond_the_declared_names_are_found(source: str, found: list[str]) -> None:
    assert undeclared(source) == found


@pytest.mark.skipif(not ADAPTERS, reason="the adapters are in the checkout only")
def test_adapters_import_declared_names_only() -> None:
    assert {path.relative_to(ROOT).parts[1] for path in ADAPTERS} == {
        "haystack",
        "langchain",
        "llamaindex",
    }
    found = {path.name: undeclared(path.read_text(encoding="utf-8")) for path in ADAPTERS}
    assert {name: names for name, names in found.items() if names} == {}


def test_every_exception_is_in_the_tree() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.BM25Error | UserWarning)
        assert name in (errors.__doc__ or "")


def test_importing_the_library_imports_little() -> None:
    code = "import sys, bm25rag; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "bm25rag" in loaded
    late = {"cython", "scipy", "tqdm", "click", "rich", "logging", "concurrent.futures"}
    assert loaded & late == set()


def test_the_library_sets_nothing_global() -> None:
    code = (
        "import logging, numpy, os, warnings; before = (dict(os.environ), list(warnings.filters),"
        " logging.root.level, list(logging.root.handlers)); import bm25rag;"
        " bm25rag.BM25Index.from_texts(['red']).search('red');"
        " assert before == (dict(os.environ), list(warnings.filters), logging.root.level,"
        " list(logging.root.handlers))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def documented(found: Any) -> list[str]:
    """Return the parameter names of a docstring; a class documents those of its constructor."""
    if inspect.isclass(found):
        document = ClassDoc(found, config={"show_class_members": False})
    else:
        document = FunctionDoc(found)
    rows = [*document["Parameters"], *document["Other Parameters"]]
    return [part.strip().lstrip("*") for row in rows for part in row.name.split(",")]


@pytest.mark.parametrize("name", list(CALLABLES))
def test_documented_parameters_are_the_signatures(name: str) -> None:
    found = CALLABLES[name]
    signature = inspect.signature(found).parameters
    assert documented(found) == [
        parameter for parameter in signature if parameter != "self" and parameter[0] != "_"
    ]


@pytest.mark.parametrize("name", list(CALLABLES))
def test_every_public_callable_has_a_docstring_without_types(name: str) -> None:
    found = CALLABLES[name]
    assert inspect.getdoc(found)
    if not inspect.isclass(found):
        rows = FunctionDoc(found)["Parameters"]
        assert [row.name for row in rows if row.type] == []


@pytest.mark.parametrize("name", list(CALLABLES))
def test_every_public_callable_is_annotated(name: str) -> None:
    found = CALLABLES[name]
    signature = inspect.signature(found)
    for parameter in signature.parameters.values():
        if parameter.name != "self":
            assert parameter.annotation is not parameter.empty, parameter
    if not inspect.isclass(found):
        assert signature.return_annotation is not signature.empty


def test_nothing_numpy_comes_back_where_plain_python_is_promised() -> None:
    index = bm25rag.BM25Index.from_texts(["red boat", "red"])
    why = index.explain("red", "0")
    hit = index.search("red")[0]
    values = [why.score, why.shift, why.matched, hit.id, hit.score, hit.text, hit.payload]
    values += list(index.stats().values())
    for part in why.terms:
        values += [part.term, part.count, part.document_frequency, part.idf, part.tf, part.f]
    assert not [value for value in values if isinstance(value, np.generic)]


@pytest.mark.parametrize("name", list(CALLABLES))
def test_help_shows_no_addresses(name: str) -> None:
    assert " at 0x" not in pydoc.render_doc(CALLABLES[name])


def test_closed_sets_of_values_are_literals_that_editors_and_type_checkers_see() -> None:
    index = bm25rag.BM25Index
    assert get_args(VariantName) == tuple(VARIANTS)
    assert get_args(DeltaOn) == ("all", "matched")
    assert get_args(OnDuplicate) == ("error", "skip", "replace")
    assert get_args(Mode) == ("r", "w", "a")
    closed = {
        "variant": "VariantName",
        "delta_on": "DeltaOn",
        "on_duplicate": "OnDuplicate",
        "mode": "Mode",
    }
    found = set()
    for method in (index, index.tune, index.add, index.add_documents, index.from_texts, index.open):
        for name, parameter in inspect.signature(method).parameters.items():
            if name in closed:
                assert parameter.annotation.removesuffix(" | None") == closed[name]
                found.add(name)
    assert found == set(closed)

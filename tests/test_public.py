"""What is public, what an import costs, and that the documentation names every parameter."""

from __future__ import annotations

import importlib
import inspect
import pydoc
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
from bm25rag import errors
from bm25rag.saving import Mode
from bm25rag.variants import VARIANTS, DeltaOn, VariantName
from bm25rag.writer import OnDuplicate


def public_modules() -> Iterator[types.ModuleType]:
    """Find the modules that say what is public in them."""
    folder = Path(bm25rag.__file__).parent
    for path in sorted(folder.glob("*.py")):
        if not path.stem.startswith("_"):
            yield importlib.import_module(f"bm25rag.{path.stem}")


def ours(value: Any) -> bool:
    """Whether a method was written in the library, by whatever class it is inherited from."""
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


def test_the_names_that_users_were_promised_are_there() -> None:
    assert {"Analyzer", "BM25Index", "BatchResult", "Document", "Explanation", "Hit"} <= set(
        bm25rag.__all__
    )


@pytest.mark.parametrize("module", list(public_modules()), ids=lambda module: module.__name__)
def test_every_modules_all_names_what_it_has(module: types.ModuleType) -> None:
    names = list(getattr(module, "__all__", []))
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []


def test_every_exception_is_in_the_tree() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.BM25Error | UserWarning)
        assert name in (errors.__doc__ or "")


@pytest.mark.parametrize(
    "package", ["cython", "scipy", "tqdm", "click", "rich", "logging", "concurrent.futures"]
)
def test_importing_the_library_does_not_import(package: str) -> None:
    code = f"import sys, bm25rag; sys.exit({package!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
    """Parameter names of a docstring; a class documents its constructor's."""
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
    assert get_args(Mode) == ("r", "w")
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
                assert parameter.annotation == closed[name]
                found.add(name)
    assert found == set(closed)

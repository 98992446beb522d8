"""The suites are run whole: the tests collected are those that Haystack's modules hold."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from haystack.testing import document_store as suites
from haystack.testing import document_store_async as async_suites

CONTRACT = Path(__file__).with_name("test_haystack_contract.py")


def names_of(module: ModuleType) -> set[str]:
    """Name all tests of the classes that a module of Haystack's defines."""
    return {
        name
        for _, suite in inspect.getmembers(module, inspect.isclass)
        if suite.__module__ == module.__name__
        for name in dir(suite)
        if name.startswith("test_")
    }


@pytest.fixture(scope="module")
def collected() -> dict[str, Counter[str]]:
    """Collect the contract file with pytest, and count the tests of each class."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", str(CONTRACT)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    classes: dict[str, Counter[str]] = {}
    for line in output.splitlines():
        if line.count("::") == 2:
            _, name, test = line.split("::")
            classes.setdefault(name, Counter())[test] += 1
    return classes


@pytest.mark.parametrize("name", ["TestInMemory", "TestInFolder"])
def test_all_tests_of_haystack_are_collected(name: str, collected: dict[str, Counter[str]]) -> None:
    assert collected[name] == Counter(names_of(suites))


@pytest.mark.parametrize("name", ["TestAsyncInMemory", "TestAsyncInFolder"])
def test_all_asynchronous_tests_of_haystack_are_collected(
    name: str, collected: dict[str, Counter[str]]
) -> None:
    assert collected[name] == Counter(names_of(async_suites))


def test_nothing_is_overridden_but_what_the_suites_demand() -> None:
    source = CONTRACT.read_text(encoding="utf-8")
    defined = [line.split("(")[0].split()[-1] for line in source.splitlines() if " def " in line]
    assert sorted(set(defined)) == [
        "document_store",
        "test_write_documents",
        "test_write_documents_async",
    ]
    assert "xfail" not in source
    assert "skip" not in source

"""What is installed: namespaces that others share, types, and the public names."""

from __future__ import annotations

import importlib
from importlib.metadata import requires
from importlib.resources import files

import pytest

PACKAGES = {
    "haystack_integrations.document_stores.bm25rag": ["BM25DocumentStore"],
    "haystack_integrations.components.retrievers.bm25rag": [
        "BM25GrepTool",
        "BM25HybridRetriever",
        "BM25ReadTool",
        "BM25Retriever",
        "BM25SearchTool",
        "BM25SparseEmbeddingRetriever",
        "BM25SparseHybridRetriever",
    ],
}


@pytest.mark.parametrize(("package", "names"), PACKAGES.items())
def test_a_package_has_types_and_its_names_alone(package: str, names: list[str]) -> None:
    module = importlib.import_module(package)
    assert module.__all__ == names
    assert (files(package) / "py.typed").is_file()


@pytest.mark.parametrize(
    "shared",
    [
        "haystack_integrations",
        "haystack_integrations.components",
        "haystack_integrations.components.retrievers",
        "haystack_integrations.document_stores",
    ],
)
def test_shared_levels_are_namespaces_without_a_file(shared: str) -> None:
    importlib.import_module("haystack_integrations.components.retrievers.bm25rag")
    assert importlib.import_module(shared).__file__ is None


def test_it_asks_for_the_core_and_for_haystack() -> None:
    needed = [line for line in requires("bm25rag-haystack") or [] if "extra" not in line]
    assert sorted(needed) == ["bm25rag>=0.1", "haystack-ai>=3.4", "numpy>=1.26"]

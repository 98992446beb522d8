"""Where the tests run: paths of the checkout and of test collections, and the mode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COLLECTIONS = ROOT.parent / "shared" / "collections"
INTERPRETED = os.environ.get("BM25RAG_KERNELS") == "interpreted"


def collection(name: str) -> Path:
    """Return the folder of a test collection; skip the test where it is missing or too large."""
    if INTERPRETED:
        pytest.skip("the collections are too large for interpreted kernels")
    if not (COLLECTIONS / name).is_dir():
        # Of those here, BEIR has this one.
        get = "bm25rag download scifact ../shared/collections"
        how = f"; get it: {get}" if name == "scifact" else " (see CONTRIBUTING.md)"
        pytest.skip(f"no ../shared/collections/{name} on this machine{how}")
    return COLLECTIONS / name

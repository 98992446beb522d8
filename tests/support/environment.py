"""Where the tests run: paths of the checkout and of test collections, and the mode."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
COLLECTIONS = ROOT.parent / "shared" / "collections"
INTERPRETED = os.environ.get("BM25RAG_KERNELS") == "interpreted"

"""What the tests share."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

# Early releases of 0.14 download data of NLTK that they bring: say where those are, before they
# are imported.
_CORE = find_spec("llama_index.core")
if _CORE is not None and _CORE.origin is not None:
    os.environ.setdefault("NLTK_DATA", str(Path(_CORE.origin).parent / "_static" / "nltk_cache"))


@pytest.fixture
def nodes() -> list[TextNode]:
    from llamaindex_nodes import node

    return [
        node("cat", "A cat sat on the mat", "pets", year=2019, tags=["a", "b"]),
        node("dog", "Dogs chase cats", "pets", year=2021),
        node("cow", "A cow eats grass", "farm", year=2024),
        node("hen", "A hen lays eggs", "farm"),
    ]

"""The build backend: setuptools, and the wheel ``ziglang`` where no compiler was chosen.

That is a whole C compiler, so the kernels are compiled where there is none, and alike
everywhere. Who sets ``CC`` needs no such download, nor who sets ``BM25RAG_PURE=1``.
"""

from __future__ import annotations

import os
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_COMPILER = "ziglang>=0.13"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what setuptools asks for, and the compiler."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Return what setuptools asks for, and the compiler."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler()]


def _compiler() -> list[str]:
    pure = os.environ.get("BM25RAG_PURE") == "1"
    return [] if pure or os.environ.get("CC") else [_COMPILER]

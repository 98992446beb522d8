"""Models of Pydantic, made of what has been checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from bm25rag.kernels import backend

_Model = TypeVar("_Model")


def make_models(like: _Model, columns: Mapping[str, Sequence[object]]) -> list[_Model]:
    """Make models of the class of another one, from the values of some fields of each.

    Those fields count as set. The others have the values of ``like``; of its lists and dicts each
    has copies. ``model_construct`` takes ten times as long.
    """
    return backend.current().make_models(like, columns)

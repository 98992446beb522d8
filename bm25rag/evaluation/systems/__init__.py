"""Systems that a benchmark can run: bm25rag, other engines, and anything a factory makes.

Each runs in its own process (see ``worker``), takes raw texts, and returns ids, best first, with
scores if it has them.
"""

from bm25rag.evaluation.systems.base import CannotRunError
from bm25rag.evaluation.systems.registry import SYSTEMS, Made, make_system

__all__ = ["SYSTEMS", "CannotRunError", "Made", "make_system"]

"""Systems that a benchmark can run: bm25rag, other engines, and anything a factory makes.

Each runs in its own process (see ``worker``), takes raw texts, and returns ids, best first, with
scores if it has them.
"""

from bm25rag.evaluation.systems.base import CannotRunError, Found, System
from bm25rag.evaluation.systems.made import Made
from bm25rag.evaluation.systems.registry import SYSTEMS, make_system

__all__ = ["SYSTEMS", "CannotRunError", "Found", "Made", "System", "make_system"]

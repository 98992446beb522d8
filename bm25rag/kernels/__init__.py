"""The hot loops, compiled by Numba; ``kernels_numpy`` is their twin.

Nothing here checks bounds: whoever calls has validated every array. All functions
release the GIL and share nothing, so threads may call them at once.
"""

from bm25rag.kernels.building import count, fill, tally
from bm25rag.kernels.scanning import rehash, scan, translate
from bm25rag.kernels.searching import search

__all__ = ["count", "fill", "rehash", "scan", "search", "tally", "translate"]

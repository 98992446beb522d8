"""The hot loops, compiled by Numba; ``kernels_numpy`` is their twin.

Nothing here checks bounds: whoever calls has validated every array, and "What is checked" in
``docs/format.md`` lists what of files is relied on. All functions
release the GIL and share nothing, so threads may call them at once.
"""

from bm25rag.kernels.building import count, fill, tally
from bm25rag.kernels.scanning import find_peculiar, scan
from bm25rag.kernels.searching import search
from bm25rag.kernels.words import adopt, new_words

__all__ = ["adopt", "count", "fill", "find_peculiar", "new_words", "scan", "search", "tally"]

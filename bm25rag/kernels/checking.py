"""What must hold of the documents of a term before its postings may be searched."""

from __future__ import annotations

import cython

from bm25rag.kernels.memory import view


def find_wrong(documents, starts, block_size: cython.Py_ssize_t, size: cython.Py_ssize_t):
    """Say what is wrong with the documents of a term; see ``Backend.find_wrong``."""
    numbers: cython.const[cython.ushort][::1] = view(documents)
    edges: cython.const[cython.longlong][::1] = view(starts)
    first: cython.Py_ssize_t = edges[0]
    most: cython.Py_ssize_t = 0
    falls: cython.bint = False
    in_block: cython.Py_ssize_t
    block: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    with cython.nogil:
        for posting in range(numbers.shape[0]):
            most = max(most, numbers[posting])
        for block in range(edges.shape[0] - 1):
            in_block = size - block * block_size
            for posting in range(edges[block] - first + 1, edges[block + 1] - first):
                falls |= numbers[posting] <= numbers[posting - 1]
            if edges[block] < edges[block + 1]:
                falls |= numbers[edges[block + 1] - first - 1] >= in_block
    if most >= block_size:
        return "block"
    return "documents" if falls else None

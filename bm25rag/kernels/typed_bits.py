"""Those of ``fold_bits`` that Numba needs as unsigned numbers, to be used beside entries."""

from __future__ import annotations

import numpy as np

from bm25rag.kernels import fold_bits

SIZE, KIND, SIGN = map(np.uint64, (fold_bits.SIZE, fold_bits.KIND, fold_bits.SIGN))
LETTER, DIGIT = np.uint64(fold_bits.LETTER), np.uint64(fold_bits.DIGIT)
SINGLE, PECULIAR = np.uint64(fold_bits.SINGLE), np.uint64(fold_bits.PECULIAR)

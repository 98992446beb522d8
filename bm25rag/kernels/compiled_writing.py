"""What the compiled backend needs to write an index, and not to search one."""

from __future__ import annotations

from bm25rag.kernels.loading import WRITING, load
from bm25rag.kernels.scanner_interface import Scanner

building, _, _, _word_table, scanning, packing = map(load, WRITING)
SCANNER = Scanner(scanning, _word_table)

"""The bits of the fold table: written down twice, for Python and for C."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bm25rag.kernels import fold_bits


def test_c_has_the_same_numbers_as_python() -> None:
    declared = Path(fold_bits.__file__).with_suffix(".pxd")
    if not declared.exists():
        pytest.skip("an installed wheel has no .pxd files")
    text = declared.read_text(encoding="utf-8")
    in_c = {name: int(value) for name, value in re.findall(r"^ +([A-Z_]+) = (\d+)$", text, re.M)}
    in_python = {name: value for name, value in vars(fold_bits).items() if name.isupper()}
    assert in_c == in_python

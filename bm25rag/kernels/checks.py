"""What every record and call of the kernels is checked by; see ``boundary``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bm25rag.common.arrays import (
    Int64,
    UInt64,
)

if TYPE_CHECKING:
    from bm25rag.kernels.records import SearchPlan, SegmentArrays, TermArrays

# Values that Python looks through sooner than NumPy, of which the first call takes 30 us.
_FEW = 512


def require(holds: bool, message: str) -> None:
    """Raise ``ValueError`` with a message unless something holds."""
    if not holds:
        raise ValueError(f"{message}; please report this as a bug of bm25rag")


def check_array(
    name: str, array: np.ndarray[Any, Any], *types: type[np.generic], dimensions: int = 1
) -> None:
    """Check an array's type and dimensions, and that it is contiguous; raise ``TypeError``."""
    if array.dtype.type in types and array.ndim == dimensions and array.flags.c_contiguous:
        return
    expected = " or ".join(one.__name__ for one in types)
    raise TypeError(
        f"{name} must be a contiguous array of {expected} with {dimensions} dimensions,"
        f" got {array.dtype} {array.shape}; please report this as a bug of bm25rag"
    )


def check_search(segment: SegmentArrays, terms: TermArrays, plan: SearchPlan) -> None:
    """Check that terms and a plan are of a segment."""
    require(terms.blocks == segment.blocks, "starts are not of this segment")
    if plan.allowed is not None:
        require(plan.allowed.size == segment.size, "allowed is not of this segment")


def check_terms(lowest: int, highest: int, count: int) -> None:
    """Check the lowest and the highest number of a query's terms; -1 is one of no document."""
    require(highest < count, "a query's term has no postings")
    require(lowest >= -1, "a term has a negative number")


def check_rising(name: str, values: Int64 | UInt64, end: int) -> None:
    """Check that values ascend from 0 on, and do not exceed ``end``."""
    if len(values) < _FEW:
        few = values.tolist()
        rising = few == sorted(few)
    else:
        rising = bool((values[1:] >= values[:-1]).all())
    within = not len(values) or (values[0] >= 0 and values[-1] <= end)
    require(rising and bool(within), f"{name} do not ascend from 0 to {end}")


def lowest_and_highest(values: np.ndarray[Any, Any], empty: int) -> tuple[int, int]:
    """Return the lowest and the highest value; ``empty`` twice if there is none."""
    if len(values) < _FEW:
        few = values.tolist() or [empty]
        return min(few), max(few)
    return int(values.min()), int(values.max())

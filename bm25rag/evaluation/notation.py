"""Measures by name, in the notation of ir-measures: ``nDCG@10``, ``P(rel=2)@5``."""

from __future__ import annotations

import re
from typing import NamedTuple

_NOTATION = re.compile(r"(?P<name>\w+)(\(rel=(?P<rel>\d+)\))?(@(?P<cutoff>\d+))?", re.ASCII)


class _Kind(NamedTuple):
    """The names of a measure in trec_eval, with and without a cutoff, if it has them."""

    with_cutoff: str | None
    without_cutoff: str | None
    has_level: bool = True


_KINDS = {
    "nDCG": _Kind("ndcg_cut", "ndcg", has_level=False),
    "Success": _Kind("success", None),
    "RR": _Kind("recip_rank", "recip_rank"),
    "P": _Kind("P", None),
    "R": _Kind("recall", None),
    "F1": _Kind("F1", None),
    "AP": _Kind("map_cut", "map"),
    "Rprec": _Kind(None, "Rprec"),
}
_ALIASES = {
    "NDCG": "nDCG",
    "MRR": "RR",
    "Precision": "P",
    "Recall": "R",
    "MAP": "AP",
    "RPrec": "Rprec",
}
_EXAMPLES = "nDCG@10, Success@5, RR@10, P@5, R@100, F1@10, AP, AP@100, Rprec, P(rel=2)@5"


class Measure(NamedTuple):
    """A measure that trec_eval computes, or that follows from what it computes."""

    kind: str
    cutoff: int | None
    level: int

    @property
    def trec_name(self) -> str:
        """Its name in trec_eval; for RR, which has no cutoff there, the name without one."""
        kind = _KINDS[self.kind]
        if self.cutoff is None or self.kind == "RR":
            return kind.without_cutoff or ""
        return f"{kind.with_cutoff}_{self.cutoff}"


def parse_measure(name: str) -> Measure:
    """Parse a measure."""
    if not isinstance(name, str):
        raise TypeError(f"a measure must be a str such as 'nDCG@10', got {type(name).__name__}")
    match = _NOTATION.fullmatch(name.strip())
    kind = None if match is None else _ALIASES.get(match["name"], match["name"])
    if match is None or kind not in _KINDS:
        raise ValueError(f"unknown measure {name!r}; measures are such as {_EXAMPLES}")
    _check_parts(name, _KINDS[kind], match["cutoff"], match["rel"])
    cutoff = None if match["cutoff"] is None else int(match["cutoff"])
    return Measure(kind, cutoff, int(match["rel"] or 1))


def _check_parts(name: str, kind: _Kind, cutoff: str | None, level: str | None) -> None:
    if cutoff is None and kind.without_cutoff is None:
        raise ValueError(f"measure {name!r} needs a cutoff, as in '{name.strip()}@10'")
    if cutoff is not None and kind.with_cutoff is None:
        raise ValueError(f"measure {name!r} has no cutoff; write it without '@{cutoff}'")
    if cutoff is not None and not 1 <= int(cutoff) <= 1_000_000:
        raise ValueError(f"the cutoff of {name!r} must be from 1 to 1000000")
    if level is not None and not kind.has_level:
        raise ValueError(f"measure {name!r} uses all grades; write it without '(rel={level})'")
    if level is not None and int(level) < 1:
        raise ValueError(f"the relevance level of {name!r} must be at least 1")

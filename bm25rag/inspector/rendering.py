"""Pages from templates: everything that is not ours is escaped."""

from __future__ import annotations

import json
import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bm25rag.common import tables
from bm25rag.common.json_values import finite, iso_date
from bm25rag.common.visible import one_line
from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk

# How many characters of metadata are shown.
_SHOWN = 4_000
_SURROGATE = re.compile("[\ud800-\udfff]")


class Pages:
    """The templates of all views."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("bm25rag.inspector", "pages"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "amount": lambda value: f"{value:,}" if isinstance(value, int) else f"{value:,.4g}",
            "score": lambda value: "" if value is None else f"{value:.4f}",
            "seconds": _seconds,
            "values": _values,
            "short": _short,
            # For a field of a form.
            "json": lambda value: json.dumps(finite(value), ensure_ascii=False, default=iso_date),
        }
        names = self._environment.globals
        names["marked"] = lambda text, spans: Markup(tables.marked(text, spans))
        names["moved"] = _moved

    def render(
        self, page: str, view: str, asked: Asked, data: dict[str, Any], desk: Desk, notes: list[str]
    ) -> bytes:
        """Return a page in UTF-8; lone surrogates, which it lacks, become U+FFFD."""
        html = self._environment.get_template(f"{page}.html").render(
            view=view,
            asked=asked,
            data=data,
            notes=notes,
            name=desk.opened.name,
            can_judge=desk.judgements is not None,
        )
        return _SURROGATE.sub("\ufffd", html).encode()


def _moved(rank: int, before: int | None) -> str:
    """Return how a rank has moved, as a class of the style."""
    if before is None:
        return "new"
    return "up" if rank < before else "down" if rank > before else "same"


def _short(name: str, length: int = 200) -> str:
    """Return an id or a term to be read: invisible characters as codes, of a long one the start."""
    shown = one_line(name) if name.strip() else json.dumps(name)
    return shown if len(shown) <= length else f"{shown[:length]} …"


def _seconds(value: float) -> str:
    return f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"


def _values(metadata: object) -> str:
    """Return metadata as JSON for reading."""
    text = one_line(json.dumps(metadata, ensure_ascii=False, default=iso_date))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"

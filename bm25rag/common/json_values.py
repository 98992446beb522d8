"""Values that JSON lacks."""

from __future__ import annotations

import datetime as dt
import math


def finite(value: object) -> object:
    """Return JSON values with null in place of NaN and infinities, which no browser reads."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return value


def iso_date(value: object) -> str:
    """Return a date as an ISO string, for ``default`` of ``json.dumps``."""
    if isinstance(value, dt.date):
        return value.isoformat()
    raise TypeError(f"cannot write {type(value).__name__} as JSON")

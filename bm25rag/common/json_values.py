"""Values that JSON lacks."""

from __future__ import annotations

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

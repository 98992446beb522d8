"""The kinds of values, in the order of their codes.

Of the first four there is one value each. WHOLE is a number without a fraction that int64 holds,
REAL any other float. NAIVE is a datetime without a time zone, UTC one in UTC, ZONED one in another
time zone. SHAPE is a dict; OTHER an integer that int64 does not hold, or a list or dict inside a
list.
"""

from __future__ import annotations

NULL, FALSE, TRUE, LIST, WHOLE, REAL, DATE, NAIVE, UTC, STRING, ZONED, SHAPE, OTHER = range(13)
KINDS = 13
FLAGS = range(NULL, WHOLE)
NUMBERS = range(WHOLE, STRING)
STRINGS = range(STRING, KINDS)

"""A base class of immutable values that are compared, hashed and shown by their attributes.

Frozen dataclasses would do the same, but each adds half a millisecond to the import, and there
would be over twenty of them.
"""

from __future__ import annotations

from typing import Any


class Record:
    """Equal to others of its class by the attributes in ``__match_args__``.

    All attributes are in ``__slots__`` and can be set only once.
    """

    __slots__ = ()
    __match_args__ = ()

    def _values(self) -> tuple[Any, ...]:
        names: tuple[str, ...] = self.__match_args__
        return tuple([getattr(self, name) for name in names])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record) or type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        names: tuple[str, ...] = self.__match_args__
        pairs = zip(names, self._values(), strict=True)
        return f"{type(self).__qualname__}({', '.join(f'{name}={it!r}' for name, it in pairs)})"

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, name):
            raise AttributeError(f"{type(self).__name__} cannot be changed, nor its {name}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed, nor its {name}")

"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Value = TypeVar("_Value")


class lazy_property(Generic[_Value]):  # noqa: N801 - a decorator, named as functools names its own
    """Like ``functools.cached_property``, without the lock that this has in Python 3.11.

    All instances share that lock, and a child that is forked while another thread holds it
    would wait for it for ever. Here two threads may compute the same at the same time.
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        # Not by ``__set_name__``, in which Python 3.11 turns Ctrl-C into a ``RuntimeError``.
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy_property[_Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...

    def __get__(self, instance: object | None, owner: type) -> _Value | lazy_property[_Value]:
        if instance is None:
            return self
        value = self._compute(instance)
        # If two threads compute at the same time, each goes on with its own. Not by ``__dict__``:
        # in Python 3.11 and 3.12 all attributes of an object take three times as long from then on.
        object.__setattr__(instance, self._name, value)
        return value

"""A plugin for mypy that refuses to use an array at integers other than the platform's own.

NumPy 2.4 converts such an index in a buffer, and writes to where there is no memory if it gets none
for it: the process dies. ``values.take(as_index(places))`` and ``values[as_index(places)] = new``
raise ``MemoryError``. New values of another type are converted in the same way, which mypy seldom
sees: convert them before.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import MethodContext, Plugin
from mypy.types import Instance, Type, UnionType, get_proper_type

_ARRAY = "numpy.ndarray"
# Of ``signedinteger``; the platform's own may be of 64 bits, too.
_SHORT = ("_8Bit]", "_16Bit]", "signedinteger[numpy._typing._nbit_base._32Bit]")


class Indices(Plugin):
    """Looks at what arrays are read and written at."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Return what looks at a call of ``ndarray.__getitem__`` or ``ndarray.__setitem__``."""
        return _look if fullname in (f"{_ARRAY}.__getitem__", f"{_ARRAY}.__setitem__") else None


def _look(context: MethodContext) -> Type:
    if any(_is_converted(kind) for kind in context.arg_types[0]):
        context.api.fail("use it at as_index(...): see tools/mypy_indices.py", context.context)
    return context.default_return_type


def _is_converted(kind: Type) -> bool:
    """Whether this is an array of unsigned integers, or of short ones."""
    index = get_proper_type(kind)
    if isinstance(index, UnionType):
        return any(map(_is_converted, index.items))
    if not isinstance(index, Instance) or index.type.fullname != _ARRAY:
        return False
    shown = str(index.args[-1])
    return "unsignedinteger" in shown or any(bits in shown for bits in _SHORT)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin for a version of mypy."""
    return Indices

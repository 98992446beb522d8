"""A plugin for mypy that refuses to read an array at integers other than the platform's own.

NumPy 2.4 converts such an index in a buffer, and writes to where there is no memory if it gets none
for it: the process dies. ``values.take(as_index(places))`` raises ``MemoryError``. To write at such
places is right in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import MethodContext, Plugin
from mypy.types import Instance, Type, get_proper_type

_ARRAY = "numpy.ndarray"
# Of ``signedinteger``; the platform's own may be of 64 bits, too.
_SHORT = ("_8Bit]", "_16Bit]", "signedinteger[numpy._typing._nbit_base._32Bit]")


class Indices(Plugin):
    """Looks at what arrays are read at."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Return what looks at a call of ``ndarray.__getitem__``."""
        return _look if fullname == f"{_ARRAY}.__getitem__" else None


def _look(context: MethodContext) -> Type:
    if any(_is_converted(kind) for kinds in context.arg_types for kind in kinds):
        context.api.fail("read it at as_index(...): see tools/mypy_indices.py", context.context)
    return context.default_return_type


def _is_converted(kind: Type) -> bool:
    """Whether this is an array of unsigned integers, or of short ones."""
    index = get_proper_type(kind)
    if not isinstance(index, Instance) or index.type.fullname != _ARRAY:
        return False
    shown = str(index.args[-1])
    return "unsignedinteger" in shown or any(bits in shown for bits in _SHORT)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin for a version of mypy."""
    return Indices

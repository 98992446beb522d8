"""Paths as they are given: from one's home, or URLs."""

from __future__ import annotations

import os
from typing import TypeGuard

from bm25rag.common.patterns import late_pattern

# Of one character, it would be a drive of Windows.
_URL = late_pattern(r"[A-Za-z][A-Za-z0-9+.:-]+://")
# What pathlib makes of a URL.
_CUT = late_pattern(r"[A-Za-z][A-Za-z0-9+.-]+:[/\\][^/\\]")
# Who asks, in any of the URLs of a chain; a password may hold a slash, and digits before one are
# a port.
_USER = late_pattern(r"(:[/\\]+)[^/@:]*(?P<password>:(?!:|\d*/)[^@]*)?@")
_LOCAL = ("file://", "local://")


def is_url(path: object) -> TypeGuard[str]:
    """Whether a path is the URL of a remote folder; ``file://`` names a folder of this machine."""
    if not isinstance(path, str) or "://" not in path or path.startswith(_LOCAL):
        return False
    return _URL.match(path) is not None


def from_home(path: str | os.PathLike[str]) -> str:
    """Return a path in which ``~`` in front, alone or before a slash, is the user's home.

    ``~name`` is a name: editors give such to files. If no home is known it is a ``ValueError``: a
    folder ``~`` where the process runs would be taken for the home by whoever removes it.
    """
    name = os.fspath(path)
    if name[:1] == "~" and name[1:2] in ("", "/", os.sep):
        name = os.path.expanduser(name)
        if name[:1] == "~":
            raise ValueError(f"{name!r:.100} is in the user's home, which is not known here")
    return name


def local_path(path: str | os.PathLike[str]) -> str:
    """Return the real path of a folder of this machine, which may be a ``file://`` URL.

    It raises ``TypeError`` if it is no path, and ``ValueError`` if no folder can be called so, if
    it is another URL, was one before pathlib removed a slash, or as ``from_home``.
    """
    try:
        name: object = os.fspath(path)
    except TypeError:
        name = None
    if not isinstance(name, str):
        raise TypeError(f"the path of an index must be a str or a Path, got {path!r:.100}")
    if not _is_name(name):
        raise ValueError(
            "the path of an index must not be empty, nor hold a null character or a lone "
            f"surrogate, got {path!r:.100}"
        )
    name = from_home(name)
    if is_url(name):
        raise ValueError(f"this needs a folder of this machine, got the URL {shown_url(name)!r}")
    if name.startswith(_LOCAL):
        from urllib.parse import unquote

        host, slash, rest = name.partition("://")[2].partition("/")
        if host not in ("", "localhost") or not slash:
            raise ValueError(f"{name!r} names another machine; a local URL begins with file:///")
        name = unquote(rest if os.name == "nt" else f"/{rest}")
    elif ":" in name and _CUT.match(name) and not os.path.exists(f"{name.partition(':')[0]}:"):
        raise ValueError(f"{shown_url(name)!r} looks like a URL in a Path: pass the URL as a str")
    return os.path.realpath(name)


def _is_name(path: str) -> bool:
    """Whether the system could have a folder of this path; "" would be where the process runs."""
    try:
        return bool(path) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate
        return False


def holds_secret(url: str) -> bool:
    """Whether a URL holds a password, or a query, which may be one."""
    return "?" in url or any(match["password"] for match in _USER.finditer(url))


def shown_url(url: str) -> str:
    """Return a URL without what may be secret: user, password and query."""
    return _USER.sub(r"\1", url.partition("?")[0])

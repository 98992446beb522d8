"""Rewords the library's errors for the command line."""

from __future__ import annotations

import errno
import re

from bm25rag.errors import (
    ClusterError,
    DuplicateIdError,
    LockedError,
    MetadataError,
    NotAnIndexError,
    TokenizerRequiredError,
    UntrustedIndexError,
)

# The arguments that are options here. The library's messages begin with the argument's name.
_ARGUMENTS = (
    "variant|k1|b|delta|delta_on|fields|language|stopwords|stemmer|filter|min_score|threads"
    "|on_duplicate|keep|commit"
)
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_NAMED = re.compile(rf"^({_ARGUMENTS})(?=:? )|\b({_ARGUMENTS})=(?=\S)")


def describe(error: Exception) -> str:
    """Return the message of an error, with the options and remedies of the command line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in _FULL:
        return f"the output: {error.strerror}"  # all files that we write have names
    text = str(error)
    if isinstance(error, DuplicateIdError):
        problem = text.rpartition("; ")[0].replace("twice in ids", "twice in what was read")
        return (
            f"{problem}; --on-duplicate skip keeps the first, replace the last; "
            "two files of one name differ if you give the folder above both"
        )
    if isinstance(error, TokenizerRequiredError):
        problem, _, _ = text.rpartition("; ")
        return f"{problem}; open it from Python, since the command line imports no code"
    if isinstance(error, LockedError):
        return text.replace("close it first", "try again when it is done")
    if isinstance(error, NotAnIndexError) and "there is no" in text:
        return f"{text}; 'bm25rag index' makes one"
    if isinstance(error, MetadataError):
        return str(error.at(""))  # rows refer to arguments in Python
    if isinstance(error, ClusterError):
        return text.replace("partial=True", "--partial").replace(
            "ray.init(address=...)", "--address"
        )
    if isinstance(error, UntrustedIndexError):
        return text.replace("untrusted=True", "--untrusted")
    if isinstance(error, FileExistsError):
        problem = text.replace("BM25Index.open(folder, mode='w')", "'bm25rag add'")
        return problem.replace("overwrite=True", "--force")
    if "no text field" in text:
        return f"{text}; --text-field names another"
    text = text.replace("BM25Index.commits(folder)", "'bm25rag commits'")
    text = text.replace("restricted needs a filter", "--restrict needs a filter")
    return _NAMED.sub(_option, text)


def _option(match: re.Match[str]) -> str:
    option = f"--{match[1] or match[2]}".replace("_", "-").replace("--fields", "--field")
    return option if match[1] else f"{option} "


def describe_warning(warning: Warning | str) -> str:
    """Return the message of a warning."""
    return str(warning).replace("index.reanalyze()", "from Python, index.reanalyze()")

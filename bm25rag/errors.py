"""Every exception of bm25rag.

::

    BM25Error (Exception)
    ├── DuplicateIdError (ValueError)       an id is in the index already, or twice in one call
    ├── DocumentNotFoundError (KeyError)    no document with this id passes the filter
    ├── FilterError (ValueError)            a filter is malformed; the message says where
    ├── MetadataError (ValueError)          metadata that cannot be stored, by document and key
    ├── ReadOnlyError (RuntimeError)        a write to a view, a snapshot or a reader
    ├── TokenizerRequiredError (ValueError) the index needs the callable it was made with
    ├── MissingDependencyError (ImportError) an optional package is not installed
    ├── ClusterError (RuntimeError)         a cluster could not do what it was asked to
    │   └── ShardUnavailableError           no replica of a shard answered in time
    └── StorageError (OSError)
        ├── NotAnIndexError                 the folder holds no index
        ├── CommitNotFoundError             the folder does not hold this commit (any more)
        ├── FormatVersionError              the folder was written by a newer bm25rag
        ├── CorruptIndexError               a file is damaged or hostile; the message names it
        ├── UntrustedIndexError             untrusted=True refuses something in the folder
        ├── LockedError                     another writer has the index open
        └── RemoteError                     a remote store does not answer, or refuses

    AnalyzerChangedWarning (UserWarning)    stemmer or Unicode tables differ from the index's
    FilterWarning (UserWarning)             a filter can find nothing, and looks misspelt
    IncompleteWarning (UserWarning)         the timeout of a query was over, matches may be missing
    UncommittedWarning (UserWarning)        changes that were never committed are lost

Wrong types and values of arguments are plain ``TypeError`` and ``ValueError``
that name the argument, what was expected and what came.
"""

from __future__ import annotations

__all__ = [
    "AnalyzerChangedWarning",
    "BM25Error",
    "ClusterError",
    "CommitNotFoundError",
    "CorruptIndexError",
    "DocumentNotFoundError",
    "DuplicateIdError",
    "FilterError",
    "FilterWarning",
    "FormatVersionError",
    "IncompleteWarning",
    "LockedError",
    "MetadataError",
    "MissingDependencyError",
    "NotAnIndexError",
    "ReadOnlyError",
    "RemoteError",
    "ShardUnavailableError",
    "StorageError",
    "TokenizerRequiredError",
    "UncommittedWarning",
    "UntrustedIndexError",
]


class BM25Error(Exception):
    """Base of every exception that is bm25rag's own."""


class DuplicateIdError(BM25Error, ValueError):
    """An id is in the index already, or occurs twice in one call."""


class DocumentNotFoundError(BM25Error, KeyError):
    """No document with this id passes the filter."""

    def __str__(self) -> str:
        # KeyError would show the repr of the message.
        return str(self.args[0]) if self.args else ""


class FilterError(BM25Error, ValueError):
    """A filter is malformed; the message says where."""


class MetadataError(BM25Error, ValueError):
    """Metadata cannot be stored; the message names row, document and key.

    Parameters
    ----------
    document
        The id of the document; empty where the caller gave none, and the row has to do.
    key
        The keys that lead to the value, joined by dots; empty for the metadata as a whole.
    problem
        What is wrong, what was expected, and what to do.
    row
        The element of the argument that has it, such as ``documents[7]``.
    """

    def __init__(self, document: str, key: str, problem: str, row: str = "") -> None:
        super().__init__(document, key, problem, row)
        self.document = document
        self.key = key
        self.problem = problem
        self.row = row

    def __str__(self) -> str:
        where = f"{self.row}: " if self.row else ""
        whose = f" of document {self.document!r}" if self.document else ""
        place = f" at {self.key!r}" if self.key else ""
        return f"{where}metadata{whose}{place}: {self.problem}"

    def at(self, row: str) -> MetadataError:
        """Return the same error, with the row that caused it."""
        return MetadataError(self.document, self.key, self.problem, row)


class ReadOnlyError(BM25Error, RuntimeError):
    """A view, a snapshot or a reader was asked to write."""


class TokenizerRequiredError(BM25Error, ValueError):
    """The index was built with a callable tokenizer, which must be given again."""


class MissingDependencyError(BM25Error, ImportError):
    """An optional package is not installed; the message has the pip line."""


class ClusterError(BM25Error, RuntimeError):
    """A cluster could not do what it was asked to; the message says what it lacks."""


class ShardUnavailableError(ClusterError):
    """No replica of some shards, which are its ``shards``, answered within the deadline."""

    def __init__(self, message: str, shards: tuple[int, ...] = ()) -> None:
        super().__init__(message, shards)
        self.shards = shards

    def __str__(self) -> str:
        return str(self.args[0])


class StorageError(BM25Error, OSError):
    """A saved index cannot be read or written."""


class NotAnIndexError(StorageError):
    """The folder holds no bm25rag index."""


class CommitNotFoundError(StorageError):
    """The folder does not hold the commit of this id, or holds it no more."""


class FormatVersionError(StorageError):
    """The folder was written in a newer format than this version reads."""


class CorruptIndexError(StorageError):
    """A file of the index is damaged, truncated or hostile; the message names it."""


class UntrustedIndexError(StorageError):
    """The folder, opened with ``untrusted=True``, holds something that a stranger could misuse."""


class LockedError(StorageError):
    """Another writer has the index open."""


class RemoteError(StorageError):
    """A remote store does not answer, or refuses: credentials, bucket, network, time limit."""


class AnalyzerChangedWarning(UserWarning):
    """The installed stemmer or Unicode tables give other terms than those in the index."""


class FilterWarning(UserWarning):
    """A filter has something like an operator where it can only be a field's name or a value."""


class IncompleteWarning(UserWarning):
    """The timeout of a query was over before all texts that could match were looked at."""


class UncommittedWarning(UserWarning):
    """A writer was closed, deleted or left open at exit; what it had not committed is lost."""

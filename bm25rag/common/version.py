"""The version of the package, which ``bm25rag`` exports, and which a folder says it is from."""

__version__ = "0.1.0"

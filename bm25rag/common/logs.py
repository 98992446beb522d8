"""What is told to ``logging``: INFO messages of the loggers ``bm25rag.commits`` and the like."""

from __future__ import annotations

import sys


def tell(subject: str, message: str, *arguments: object) -> None:
    """Log to ``bm25rag.<subject>``.

    A program that listens has imported ``logging``; for others, that would take 7 ms.
    """
    logging = sys.modules.get("logging")
    if logging is not None and hasattr(logging, "getLogger"):  # not while it is being imported
        logging.getLogger(f"bm25rag.{subject}").info(message, *arguments)

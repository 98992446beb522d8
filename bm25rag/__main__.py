"""``python -m bm25rag`` is the command ``bm25rag``."""

from bm25rag.cli import main

if __name__ == "__main__":
    try:
        main()
    finally:
        # If Ctrl-C came while a string was executed, as defining a dataclass does, ``python -m``
        # would end by SIGINT, not with our exit code, until a string has been executed to its end.
        exec("")

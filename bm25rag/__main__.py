"""``python -m bm25rag`` is the command ``bm25rag``."""

from bm25rag.cli import main

if __name__ == "__main__":
    main()

"""A program: reads a PDF file from standard input, and writes the texts of its pages as JSON.

It imports nothing of bm25rag, which would take longer than most files. What it writes is a list of
texts, or a text: what is wrong.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys

# Bytes of memory, and characters of all pages together.
_MOST_MEMORY, _MOST_TEXT = 2 << 30, 64 << 20


def _limit() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))


def _read(raw: bytes) -> list[str] | str:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            return "encrypted with a password"
        texts, length = [], 0
        for page in reader.pages:
            texts.append(page.extract_text())
            length += len(texts[-1])
            if length > _MOST_TEXT:
                return f"more than {_MOST_TEXT >> 20} MB of text"
    except DependencyError:
        return "encrypted"
    except MemoryError:
        return "it takes too much memory"
    except (PyPdfError, Exception) as error:  # damaged files raise almost anything
        return f"{type(error).__name__}: {error}"[:200]
    return texts


if __name__ == "__main__":
    _limit()
    logging.disable()  # pypdf tells of every repair
    pages_or_problem: list[str] | str = _read(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(pages_or_problem))

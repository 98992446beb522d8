"""Running the command line, and an index to run it on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from bm25rag import BM25Index
from bm25rag.cli.app import commands

CORPUS = [
    {"_id": "boat", "title": "Boats", "text": "A red boat sails on the sea.", "year": 2020},
    {"_id": "car", "title": "Cars", "text": "A red car drives on the road.", "year": 2021},
    {"_id": "sea", "title": "", "text": "The sea is deep, the sea is blue.", "year": 2022},
    {"_id": "bird", "title": "Birds", "text": "A bird flies in the sky.", "year": 2023},
]

# How a client of MCP begins.
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def run(*arguments: object, input: str | bytes | None = None) -> Result:
    """Run a command as a user would, but let our own bugs surface."""
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(commands, words, input=input, catch_exceptions=False)


def ok(*arguments: object, input: str | bytes | None = None) -> Result:
    result = run(*arguments, input=input)
    assert result.exit_code == 0, result.output
    return result


def fails(code: int, complaint: str, *arguments: object, input: str | None = None) -> None:
    """Check that the command fails with one message and no traceback."""
    result = run(*arguments, input=input)
    assert result.exit_code == code, result.output
    assert complaint in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def write_jsonl(path: Path, records: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def write(name: str, content: str | bytes) -> Path:
    """Write a file below the current folder, creating its parent folders."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def save_corpus() -> Path:
    """Make the index that most tests query, with the command line itself."""
    ok("index", write_jsonl(Path("corpus.jsonl"), CORPUS), "--output", "saved")
    return Path("saved")


def ids(path: str = "saved") -> list[str]:
    return BM25Index.open(path).ids()


def indexes(
    code: int, kept: list[str], *arguments: object, input: str | bytes | None = None
) -> Result:
    """Check how ``index -o saved`` ends, and which ids it keeps."""
    result = run("index", *arguments, "-o", "saved", input=input)
    assert (result.exit_code, ids()) == (code, kept), result.output
    return result

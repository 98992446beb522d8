"""The distribution: a namespace package, typed; its examples and documentation run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from pathlib import Path

import llama_index
import llama_index.retrievers
import llama_index.vector_stores
import pytest
from llama_index.retrievers import bm25rag
from llama_index.vector_stores import bm25rag as vector_stores

HERE = Path(__file__).parents[1]
ROOT = HERE.parent.parent
PAGES = [HERE / "README.md", ROOT / "docs" / "migrate-llamaindex.md"]
EXAMPLES = sorted((ROOT / "examples").glob("llamaindex_*.py"))


def test_nothing_is_put_at_the_shared_levels() -> None:
    for shared in (llama_index, llama_index.retrievers, llama_index.vector_stores):
        assert getattr(shared, "__file__", None) is None
    for ours in (bm25rag, vector_stores):
        assert ours.__file__ is not None
        package = Path(ours.__file__).parent
        assert not (package.parent / "__init__.py").exists()
        assert not (package.parent.parent / "__init__.py").exists()


def test_it_is_typed_and_small() -> None:
    assert files(bm25rag).joinpath("py.typed").is_file()
    assert bm25rag.__all__ == ["BM25Retriever", "SyncResult"]
    assert bm25rag.__all__ == sorted(bm25rag.__all__)
    assert files(vector_stores).joinpath("py.typed").is_file()
    assert vector_stores.__all__ == ["BM25VectorStore", "DenseStoreError", "NoEmbedding"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_documentation_runs(page: Path) -> None:
    if not page.exists():
        pytest.skip("the documentation is in the repository alone")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page.name, "exec"), {})


def test_the_projects_readme_shows_what_the_adapter_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = ROOT / "README.md"
    if not page.exists():
        pytest.skip("the project's README is in the repository alone")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (one for one in blocks if "llama_index.retrievers.bm25rag" in one)
    exec(block, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", block, re.MULTILINE)


def run(example: Path, *arguments: str, **settings: str) -> str:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
    done = subprocess.run(
        [sys.executable, str(example), *arguments],
        env={**quiet, **settings},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def example(name: str) -> Path:
    found = ROOT / "examples" / name
    if not found.exists():
        pytest.skip("the examples are in the repository alone")
    return found


def test_the_reader_without_a_model_says_what_it_is_and_quotes() -> None:
    out = run(example("llamaindex_retrieve_then_read.py"))
    assert "extractive reader: no model, no network" in out
    assert "the empty set passes nothing" in out
    assert "Source:   filters.md" in out


def test_the_hybrid_example_fuses() -> None:
    out = run(example("llamaindex_hybrid.py"), "How are dates compared?")
    assert len(re.findall(r"^fused +0\.0\d+  \S+\.md: ", out, re.MULTILINE)) == 5


def test_the_ingestion_example_keeps_the_index_in_step() -> None:
    first, unchanged, changed, *answers = run(example("llamaindex_ingestion.py")).splitlines()
    assert re.fullmatch(r"[1-9]\d+ nodes added, 0 updated, 0 deleted", first)
    assert unchanged == "0 nodes added, 0 updated, 0 deleted"
    # All nodes of the document that has changed, and of no other.
    counts = re.fullmatch(r"(\d+) nodes added, 0 updated, (\d+) deleted", changed)
    assert counts is not None
    added, deleted = map(int, counts.groups())
    assert 0 < deleted <= added < int(first.split()[0])
    assert "filters.md" in answers[1]
    assert "README.md" in answers[answers.index("Question: Where is the zebra?") + 1]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


class Endpoint(BaseHTTPRequestHandler):
    """Answers every chat with one sentence, as an OpenAI-compatible endpoint does."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "So says the model."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "small"}
        body = json.dumps({**answer, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_reader_asks_a_model_if_one_is_named(endpoint: str) -> None:
    if importlib.util.find_spec("llama_index.llms") is None:
        pytest.skip("llama-index-llms-openai-like is not installed")
    pytest.importorskip("llama_index.llms.openai_like")
    reader = example("llamaindex_retrieve_then_read.py")
    out = run(reader, "What?", "OPENAI", OPENAI_BASE_URL=endpoint, OPENAI_MODEL="small")
    assert "Reader:   small\nAnswer:   So says the model." in out

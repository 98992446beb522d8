"""The examples run unchanged, alone and against an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distributions
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
OWN_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "EMBEDDINGS")

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="the examples are in the repository, not in the distribution"
)


def run(name: str, *arguments: str, **variables: str) -> str:
    """Run an example, and return what it prints."""
    environment = {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(
        command, env=environment | variables, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Endpoint(BaseHTTPRequestHandler):
    """Answers chats with what it was asked, and embeds by counting letters."""

    def do_POST(self) -> None:
        """Answer one request."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.embeddings(asked) if "input" in asked else self.chat(asked)
        body = json.dumps(answer | {"model": asked["model"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def chat(self, asked: dict) -> dict:
        """Repeat the prompt's last line."""
        content = asked["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        message = {"role": "assistant", "content": "You asked: " + text.splitlines()[-1]}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "choices": [choice],
            "usage": usage,
        }

    def embeddings(self, asked: dict) -> dict:
        """Count some letters."""
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        data = [
            {"object": "embedding", "index": n, "embedding": [text.count(c) + 0.5 for c in "aeiou"]}
            for n, text in enumerate(texts)
        ]
        return {"object": "list", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[dict[str, str]]:
    """Serve an endpoint, and return the variables that name it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        yield {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "echo"}
        server.shutdown()


def test_retrieve_then_read_quotes_and_names_its_sources() -> None:
    printed = run("haystack_retrieve_then_read.py", "How are dates compared in a filter?")
    assert "extractive reader, no language model" in printed
    assert "date" in printed.split("(extractive")[0].split("\n\n", 1)[1].lower()
    assert "filters.md" in printed.split("Sources:")[1]


def test_retrieve_then_read_asks_a_model(endpoint: dict[str, str]) -> None:
    question = "How are dates compared in a filter?"
    printed = run("haystack_retrieve_then_read.py", question, **endpoint)
    assert f"You asked: Question: {question}" in printed
    assert "(echo)" in printed
    assert "filters.md" in printed.split("Sources:")[1]


def test_an_indexing_pipeline_with_overlap_fills_a_folder_that_a_loaded_pipeline_asks(
    tmp_path: Path,
) -> None:
    question = "How are dates compared in a filter?"
    arguments = ["haystack_indexing_pipeline.py", question, str(tmp_path / "index")]
    first, second = run(*arguments), run(*arguments)
    assert "passages of" in first
    assert "passages of" not in second  # they are there already
    for printed in (first, second):
        assert "the same prompt comes from the pipeline's YAML" in printed
        assert re.search(r"^ +\d\.\d{3}  [\w-]+\.md \d+$", printed, re.MULTILINE)
        assert printed.rstrip().endswith(f"Question: {question}")
        assert "date" in printed.partition("passages alone.")[2].lower()


@pytest.mark.parametrize("model", ["", "counter"])
def test_hybrid_fuses_documents_of_both_by_id(model: str, endpoint: dict[str, str]) -> None:
    variables = endpoint | {"EMBEDDINGS": model} if model else {}
    printed = run("haystack_hybrid.py", "Which filter finds a missing field?", **variables)
    assert (model or "latent semantic analysis") in printed
    _, words, vectors, fused = (part.split("\n\n")[0] for part in _parts(printed))
    found = [part.splitlines()[1:] for part in (words, vectors, fused)]
    assert all(len(set(part)) == 5 for part in found)
    assert found[2][0] in found[0] + found[1]


@pytest.mark.skipif(
    not {"langchain-bm25rag", "llama-index-retrievers-bm25rag"}
    <= {distribution.name for distribution in distributions()},
    reason="needs the three adapters in one environment, as `make together` has them",
)
def test_all_frameworks_give_the_same_answer() -> None:
    printed = run("frameworks.py", "How are dates compared in a filter?")
    assert [name in printed for name in ("LangChain", "LlamaIndex", "Haystack")] == [True] * 3
    assert printed.count("filters.md#") >= 3
    assert "ids and scores are equal" in printed


def _parts(printed: str) -> list[str]:
    parts = [""]
    for line in printed.splitlines():
        if line in ("BM25", "dense", "hybrid"):
            parts.append("")
        parts[-1] += line + "\n"
    return parts

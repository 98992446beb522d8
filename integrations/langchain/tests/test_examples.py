"""The examples and the documentation's code run as they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "examples"
PAGES = [ROOT / "integrations/langchain/README.md", ROOT / "docs/migrate-langchain.md"]
MODELS = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "EMBEDDINGS", "OPENAI_API_BASE")


def run(name: str, *args: str, **settings: str) -> str:
    """Run an example as a user would, and return what it prints."""
    environment = {key: value for key, value in os.environ.items() if key not in MODELS}
    environment |= {"PYTHONIOENCODING": "utf-8", **settings}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *args],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("langchain_*.py")), ids=lambda path: path.name
)
def test_an_example_is_short(path: Path) -> None:
    """Under eighty lines."""
    assert len(path.read_text("utf-8").splitlines()) < 80


def test_retrieve_then_read_answers_without_a_model_and_says_so() -> None:
    """It quotes sentences of the documentation, and names its sources."""
    printed = run("langchain_retrieve_then_read.py", "How are dates compared in a filter?")
    quoted = printed.split("\n\n")[1]
    pages = [path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")]
    assert all(any(line in page for page in pages) for line in quoted.splitlines())
    assert "extractive reader, no language model" in printed
    sources = printed.split("Sources:\n")[1].splitlines()
    assert all(re.fullmatch(r" +\d+\.\d{3}  \S+\.md#\d+", source) for source in sources)
    assert any("filters.md#" in source for source in sources)


class Model(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint that answers with the length of what it was asked."""

    def do_POST(self) -> None:
        """Answer."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = f"{asked['model']} read {len(asked['messages'][0]['content']) > 500}"
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": content},
        }
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"]}
        body = json.dumps(answer | {"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Be quiet."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """Serve the model on this machine."""
    with HTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_retrieve_then_read_asks_any_compatible_endpoint(endpoint: str) -> None:
    """Named by environment variables, without a key."""
    pytest.importorskip("langchain_openai")
    printed = run("langchain_retrieve_then_read.py", OPENAI_BASE_URL=endpoint, OPENAI_MODEL="tiny")
    assert "tiny read True" in printed
    assert "extractive" not in printed


def test_several_questions_come_from_any_compatible_endpoint(endpoint: str) -> None:
    """Beside the original one, which is asked too."""
    pytest.importorskip("langchain_openai")
    printed = run("langchain_multi_query.py", OPENAI_BASE_URL=endpoint, OPENAI_MODEL="tiny")
    assert "(tiny)" in printed
    one, several = (set(part.splitlines()[1:]) for part in printed.split("\n\n")[1:])
    assert one <= several


def test_hybrid_fuses_both_without_a_download() -> None:
    """What both find is on top of the fusion, and a filter holds for both."""
    printed = run("langchain_hybrid.py", "How do I filter by a date?")
    assert "latent semantic analysis, no download" in printed
    lists = re.split(r"\n(?:BM25|dense|hybrid|hybrid, of one page)\n", printed)[1:]
    lexical, dense, hybrid, of_one_page = (
        [line.strip() for line in found.split("\n") if line] for found in lists
    )
    assert len(lexical) == len(dense) == len(hybrid) == len(of_one_page) == 5
    assert hybrid[0] in lexical
    assert hybrid[0] in dense
    assert all(passage.startswith("filters.md#") for passage in of_one_page)


def test_several_questions_find_more_and_nothing_twice() -> None:
    """From loader and splitter to MultiQueryRetriever; what one question finds is among it."""
    printed = run("langchain_multi_query.py", "Which filter finds a missing field, or a date?")
    assert "no language model: parts of the question" in printed
    one, several = (
        [line.strip() for line in part.splitlines()[1:] if line]
        for part in printed.split("\n\n")[1:]
    )
    assert len(one) == 3
    assert all(re.fullmatch(r"(docs/)?[\w-]+\.md from \d+", line) for line in several)
    assert len(several) == len(set(several)) > 3
    assert set(one) <= set(several)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks of a page, in order; ``assert`` in them holds."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert blocks
    source = "\n".join(blocks)
    assert "assert" in source
    exec(compile(source, page.name, "exec"), {"__name__": page.stem})


def test_the_projects_readme_shows_what_the_adapter_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its lines of code print what the comments behind them say."""
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (block,) = (one for one in blocks if "langchain_bm25rag" in one)
    exec(block, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", block, re.MULTILINE)

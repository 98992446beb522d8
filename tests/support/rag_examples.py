"""What ``examples/*_rag.py`` promise, whatever the framework; the adapters' tests call these."""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
STAND_IN = "offline stand-in, no model"
MODELS = ("OPENAI_MODEL", "OPENAI_EMBEDDING_MODEL", "RERANKER")
ENDPOINT = ("OPENAI_BASE_URL", "OPENAI_API_KEY")
QUESTION = "How long does a cat sleep?"


class Example:
    """An example, its folder of files and its index."""

    def __init__(
        self,
        name: str,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.path, self.folder, self.index = EXAMPLES / name, folder / "files", folder / "index"
        self.monkeypatch, self.capsys = monkeypatch, capsys
        (self.folder / "more").mkdir(parents=True)
        self.write("cats.md", "# Cats\n\nA cat sleeps sixteen hours a day. It hunts at dusk.\n")
        self.write("more/dogs.txt", "Dogs bark at strangers.\n\nThey sleep at night.\n")
        self.write("zebras.rst", "A zebra sleeps standing.\n")
        self.write("picture.png", "not a text")
        self.write("empty.md", "")
        (self.folder / "latin.txt").write_bytes("Ein Café für Hunde.".encode("latin-1"))
        monkeypatch.syspath_prepend(EXAMPLES)
        for variable in (*MODELS, *ENDPOINT):
            monkeypatch.delenv(variable, raising=False)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def ask(self, question: str) -> str:
        """Run it in this process, as by ``python EXAMPLE FOLDER QUESTION INDEX``."""
        arguments = [str(self.path), str(self.folder), question, str(self.index)]
        self.monkeypatch.setattr(sys, "argv", arguments)
        self.capsys.readouterr()
        runpy.run_path(str(self.path), run_name="__main__")
        return self.capsys.readouterr().out


def parts(printed: str) -> tuple[int, str, list[str], str]:
    """Return how much was added and deleted, the answer, the sources and the models."""
    counts, answer, sources, models = printed.strip().split("\n\n")
    work = sum(map(int, re.findall(r"(\d+) (?:added|deleted|nodes|passages)", counts)))
    return work, answer.partition("\n")[2], re.findall(r"^  ([\w.]+): ", sources, re.M), models


def check_answers_and_updates(example: Example) -> None:
    """Check that it quotes a file, says that no model did, and indexes what has changed alone."""
    assert len(example.path.read_text(encoding="utf-8").splitlines()) < 80
    work, answer, sources, models = parts(example.ask(QUESTION))
    assert work > 0
    assert answer == '"A cat sleeps sixteen hours a day."'
    assert sources[0] == "cats.md"
    assert "picture.png" not in sources
    assert models.count(STAND_IN) == 3

    assert parts(example.ask(QUESTION)) == (0, answer, sources, models)

    example.write("cats.md", "# Cats\n\nA cat sleeps twelve hours a day. It hunts at dusk.\n")
    (example.folder / "zebras.rst").unlink()
    printed = example.ask(QUESTION)
    assert "sixteen" not in printed
    work, answer, sources, _ = parts(printed)
    assert work > 0
    assert answer == '"A cat sleeps twelve hours a day."'
    assert "zebras.rst" not in sources


def check_missing_folder(example: Example) -> None:
    """Check that a wrong path is a line of usage, and leaves the index as it is."""
    example.ask(QUESTION)
    moved = example.folder.rename(example.folder.with_name("moved"))
    with pytest.raises(SystemExit, match="2"):
        example.ask(QUESTION)
    assert re.search(r"usage: .*\n.*files is no folder$", example.capsys.readouterr().err.strip())
    example.monkeypatch.setattr(sys, "argv", [str(example.path)])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(example.path), run_name="__main__")
    assert "required: folder, question" in example.capsys.readouterr().err
    moved.rename(example.folder)
    assert parts(example.ask(QUESTION))[0] == 0


def check_odd_files(example: Example) -> None:
    """Check that links, pipes and what is no text are left out, and Latin-1 is read."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no named pipes here")
    (example.folder / "away.md").symlink_to(example.folder / "nowhere.md")
    outside = example.folder.parent / "secret.md"
    outside.write_text("A cat sleeps in secret.", encoding="utf-8")
    (example.folder / "out.md").symlink_to(outside)
    os.mkfifo(example.folder / "pipe.txt")
    (example.folder / "binary.txt").write_bytes(b"A\0cat\0sleeps")
    assert parts(example.ask(QUESTION))[1] == '"A cat sleeps sixteen hours a day."'
    assert "A cat sleeps in secret" not in example.ask("What sleeps in secret?")
    assert "Ein Café für Hunde." in example.ask("Wo ist ein Café für Hunde?")


OFFLINE = (check_answers_and_updates, check_missing_folder, check_odd_files)


def check_models(example: Example) -> None:
    """Check that any compatible endpoint embeds and answers, and embeds nothing twice."""
    with serve() as (url, embedded, broken):
        example.monkeypatch.setenv("OPENAI_BASE_URL", url)
        example.monkeypatch.setenv("OPENAI_MODEL", "echo")
        example.monkeypatch.setenv("OPENAI_EMBEDDING_MODEL", "vowels")
        broken.set()
        with pytest.raises(Exception, match="400"):
            example.ask(QUESTION)
        broken.clear()
        _, answer, sources, models = parts(example.ask(QUESTION))
        assert answer == f"You asked: Question: {QUESTION}"
        assert "cats.md" in sources
        assert "embeddings: vowels" in models
        assert "reader: echo" in models
        assert models.count(STAND_IN) == 1
        assert len(embedded) > 1
        embedded.clear()
        example.ask(QUESTION)
        assert embedded == [QUESTION]


def check_cross_encoder(example: Example) -> None:
    """Check that the cross-encoder that is named decides which passage comes first."""
    fake = ModuleType("sentence_transformers")
    fake.CrossEncoder = Encoder  # type: ignore[attr-defined]
    example.monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    example.monkeypatch.setenv("RERANKER", "zebras-first")
    _, _, sources, models = parts(example.ask(QUESTION))
    assert sources[0] == "zebras.rst"
    assert "re-ranker: zebras-first" in models


class Encoder:
    """Stands for a cross-encoder of sentence-transformers."""

    def __init__(self, name: str, **options: object) -> None:
        assert name == "zebras-first"

    def predict(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        assert {question for question, _ in pairs} == {QUESTION}
        return np.array([float("zebra" in passage) for _, passage in pairs])


@contextmanager
def serve() -> Iterator[tuple[str, list[str], threading.Event]]:
    """Serve an OpenAI-compatible endpoint.

    Yield its address, what it has embedded, and what is set to make it refuse everything.
    """
    embedded: list[str] = []
    broken = threading.Event()

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if broken.is_set():
                self.send_error(400)
                return
            answer = self.embed(asked["input"]) if "input" in asked else self.chat(asked)
            body = json.dumps(answer | {"model": asked["model"]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def chat(self, asked: dict) -> dict:
            content = asked["messages"][-1]["content"]
            text = content if isinstance(content, str) else content[0]["text"]
            message = {"role": "assistant", "content": f"You asked: {text.splitlines()[-1]}"}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            chat = {"id": "1", "object": "chat.completion", "created": 1}
            return {**chat, "choices": [choice], "usage": usage}

        def embed(self, given: str | list[str]) -> dict:
            texts = [given] if isinstance(given, str) else given
            embedded.extend(texts)
            vectors = [[text.count(letter) + 0.5 for letter in "aeiou"] for text in texts]
            data = [
                {"object": "embedding", "index": number, "embedding": vector}
                for number, vector in enumerate(vectors)
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            return {"object": "list", "data": data, "usage": usage}

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", embedded, broken
        finally:
            server.shutdown()
            thread.join()

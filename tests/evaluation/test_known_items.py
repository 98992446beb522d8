"""Queries made from documents, and what a model at an endpoint is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index, Document
from bm25rag.evaluation import evaluate, run_of, tune
from bm25rag.evaluation.known_items import ask_model, from_first_sentence, from_heading, known_items
from bm25rag.readers import read_passages
from support.commands import fails, ok
from support.environment import ROOT
from support.timing import takes_linear_time


def test_headings_titles_and_first_sentences_become_queries() -> None:
    assert from_heading(Document("1", "x", {"title": "Red apples"})) == "Red apples"
    assert from_heading(Document("1", "intro\n## How to install ##\ntext")) == "How to install"
    assert from_heading(Document("1", "no heading", {"title": 7})) is None
    assert from_first_sentence(Document("1", "# Title\n\nIt rains. It pours.")) == "It rains."
    assert from_first_sentence(Document("1", "今日は雨です。明日も。")) == "今日は雨です。明日も。"
    long = " ".join(f"w{n}" for n in range(90))
    assert len((from_first_sentence(Document("1", long)) or "").split()) == 25
    assert from_first_sentence(Document("1", None)) is None


def test_each_query_asks_for_its_own_document() -> None:
    documents = [Document(f"d{n}", f"# Chapter about topic{n}\n\nBody {n}.") for n in range(30)]
    made = known_items(documents, count=10)
    assert len(made.queries) == 10
    assert made.qrels == {id: {id: 1} for id in made.queries}
    assert all(
        made.queries[f"d{n}"] == f"Chapter about topic{n}"
        for n in range(30)
        if f"d{n}" in made.queries
    )
    assert known_items(documents, count=10) == made, "the same seed draws the same documents"
    assert known_items(documents, count=10, seed=1) != made
    assert "headings and first sentences: " in made.source
    assert "to compare settings, not systems" in made.source


def test_a_query_that_names_several_documents_is_left_out() -> None:
    documents = [Document("a", "The same start. A"), Document("b", "The same start. B")]
    documents.append(Document("c", "Another start. C"))
    assert known_items(documents).queries == {"c": "Another start."}
    with pytest.raises(ValueError, match="no document gives a query"):
        known_items([Document("a", "word"), Document("b", None)])


def test_a_maker_is_asked_no_more_than_needed() -> None:
    texts = ["one start", "the same", "one start", "the same", "a third", "a fourth", "a fifth"]
    asked: list[str] = []

    def make(document: Document) -> str | None:
        asked.append(document.text or "")
        return document.text

    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    made = known_items(documents, 2, make)
    assert len(made.queries) == 2
    single = [text for text in asked if asked.count(text) == 1]
    assert sorted(made.queries.values()) == sorted(single)
    assert asked[-1] in single

    def many(size: int) -> None:
        documents = [Document(str(number), f"the number {number}") for number in range(size)]
        known_items(documents, size, lambda document: document.text)

    assert takes_linear_time(many, 2_000)


def test_a_folder_of_markdown_is_evaluated_and_tuned_on_day_one() -> None:
    pytest.importorskip("pytrec_eval")
    docs = ROOT / "docs"
    documents = [one for path in sorted(docs.glob("*.md")) for one in read_passages(path)]
    index = BM25Index()
    index.add_documents(documents)
    made = known_items(index.get(index.ids()), count=40)
    found = evaluate(run_of(index, made.queries), made.qrels, "RR@10")
    assert found.mean["RR@10"] > 0.5
    tuned = tune(index, made.queries, made.qrels, "RR@10", variants=["lucene"], k1=[1.2], b=[0, 1])
    assert len(tuned.points) == 3


def test_the_command_writes_what_evaluate_and_tune_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pytrec_eval")
    monkeypatch.chdir(tmp_path)
    index = BM25Index()
    index.add_documents(Document(f"d{n}", f"# Chapter on topic{n}\n\nBody {n}.") for n in range(9))
    index.save("docs")
    result = ok("make-queries", "docs", "--output", "made", "--count", 5)
    assert "5 queries in made. Note: headings and first sentences: " in result.stderr
    judged = ("docs", "--queries", "made/queries.jsonl", "--qrels", "made/qrels.tsv", "-m", "RR@10")
    assert json.loads(ok("evaluate", *judged, "--json").stdout)["mean"] == {"RR@10": 1.0}
    assert "not significant" in ok("tune", *judged, "--variant", "lucene").stdout
    fails(
        2, "--url and --model go together", "make-queries", "docs", "-o", "x", "--url", "http://x"
    )
    dead = ("--url", "http://127.0.0.1:9/v1", "--model", "small")
    fails(3, "/v1: the model cannot be asked: ", "make-queries", "docs", "-o", "x", *dead)


def test_ids_with_spaces_have_queries_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pytrec_eval")
    monkeypatch.chdir(tmp_path)
    texts = ["My boats sail. They sail.", "My cars drive. They drive."]
    BM25Index.from_texts(texts, ids=["My notes/boats.md#1", "My notes/cars.md#1"]).save("docs")
    ok("make-queries", "docs", "--output", "made")
    judged = ("docs", "--queries", "made/queries.jsonl", "--qrels", "made/qrels.tsv", "-m", "RR@10")
    assert json.loads(ok("evaluate", *judged, "--json").stdout)["mean"] == {"RR@10": 1.0}


class _Model(BaseHTTPRequestHandler):
    """Answers as an OpenAI-compatible server does, with the first word of the text."""

    asked: list[tuple[str, str | None, dict[str, Any]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, self.headers["Authorization"], body))
        text = body["messages"][0]["content"].rpartition("\n\n")[2]
        answer: dict[str, Any] = {"error": "no such model"}
        if body["model"] == "small":
            answer = {"choices": [{"message": {"content": f" What is {text.split()[0]}?\n"}}]}
        data = json.dumps(answer).encode()
        self.send_response(404 if body["model"] == "absent" else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    _Model.asked = []
    server = HTTPServer(("127.0.0.1", 0), _Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_model_is_asked_for_as_many_queries_as_are_wanted(endpoint: str) -> None:
    documents = [Document(f"d{n}", f"topic{n} is explained here") for n in range(20)]
    made = known_items(documents, count=3, maker=ask_model(endpoint, "small", key="secret"))
    assert all(query == f"What is topic{id[1:]}?" for id, query in made.queries.items())
    assert len(made.queries) == len(_Model.asked) == 3
    path, key, body = _Model.asked[0]
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer secret", "small")


def test_an_endpoint_that_answers_otherwise_is_told(endpoint: str) -> None:
    with pytest.raises(ValueError, match=r"not an answer of a chat model: .*no such model"):
        known_items([Document("a", "some text")], maker=ask_model(endpoint, "large"))


def test_an_endpoint_that_refuses_is_told_with_what_it_said(endpoint: str) -> None:
    with pytest.raises(ConnectionError, match=r"v1/: the model's server answered 404: .*no such"):
        known_items([Document("a", "some text")], maker=ask_model(endpoint, "absent"))

"""What a client may send to ``bm25rag mcp``: every request is answered, and the server lives on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from bm25rag import BM25Index
from support.commands import HELLO

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from bm25rag.cli.mcp.wire import LONGEST_LINE, _id_in


def request(id: Any, method: str, **parameters: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}
    return json.dumps(message).encode()


def search(id: bytes, arguments: bytes) -> bytes:
    params = b'{"name":"search","arguments":' + arguments + b"}"
    return b'{"jsonrpc":"2.0","id":' + id + b',"method":"tools/call","params":' + params + b"}"


HELLO_LINE = request(0, "initialize", **HELLO)


def serving(saved: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bm25rag", "mcp", str(saved)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes)


def answers(saved: Path, *lines: bytes, wait: bool = True) -> list[Any]:
    """Send lines and return the answers, one for each; without ``wait``, all until it ends."""
    with serving(saved) as process:
        process.stdin.write(b"".join(line + b"\n" for line in (HELLO_LINE, *lines)))
        process.stdin.flush()
        found = [process.stdout.readline() for _ in range(1 + len(lines))] if wait else []
        out, err = process.communicate(timeout=300)
    assert (process.returncode, err.count(b"\n")) == (0, 1), err
    read = map(json.loads, [*found, *out.splitlines()])
    return [answer for answer in read if answer["id"] != 0]


@pytest.mark.slow
def test_what_cannot_be_read_is_answered_with_an_error_and_the_next_request_as_ever(
    saved: Path,
) -> None:
    with BM25Index.open(saved, mode="w") as index:
        metadata = {"\ud800": ["\ud800", float("nan")]}
        index.add(["odd \ud800 text"], ids=["x\ud800"], metadata=[metadata])
    nested = b'{"$not":' * 300 + b"{}" + b"}" * 300
    lines = {
        b"2": search(b"2", b'{"query":"\\ud800"}'),
        b"3": search(b"3", b'{"query":"red","filter":' + nested + b"}"),
        b"4": search(b"4", b'{"query":"red","k":' + b"1" * 10_000 + b"}"),
        b'"five"': search(b'"five"', b'{"query":"\\ud800"}'),
        b"6": b'{"jsonrpc":"2.0","id":6,"method":"x","params":{"id":1,"a":' + b"[" * 200_000,
        b"7": search(b"7", b'{"query":"' + b"x" * LONGEST_LINE + b'"}'),
        b"8": b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[1]}',
        b"9": b'{"jsonrpc":"2.0","id":9,"method":5}',
    }
    refused = {
        20: search(b"20", b'{"query":"' + b"red " * 50_000 + b'"}'),
        21: search(b"21", b'{"query":"red","k":1' + b"0" * 400 + b"}"),
        22: search(b"22", b'{"query":"red","k":"' + b"x" * 9999 + b'"}'),
    }
    wrong = [search(b"30", b'["red"]'), request(31, "nope")]
    right = search(b"10", b'{"query":"odd"}')
    found = answers(saved, *lines.values(), *refused.values(), *wrong, right)
    by_id = {answer["id"]: answer for answer in found}
    assert set(by_id) == {2, 3, 4, "five", 6, 7, 8, 9, 10, *refused, 30, 31}
    # Results with lone surrogates can be said.
    assert by_id.pop(10)["result"]["structuredContent"]["hits"][0]["text"] == "odd ? text"
    for number in refused:
        result = by_id.pop(number)["result"]
        assert result["isError"]
        assert len(result["content"][0]["text"]) <= 1000
    assert "error" in by_id.pop(30)
    assert "error" in by_id.pop(31)
    assert all(answer["error"]["code"] in (-32700, -32600) for answer in by_id.values())


@pytest.mark.slow
def test_where_no_id_can_be_known_the_error_has_none(saved: Path) -> None:
    lines = {
        b"hello": -32700,
        b"\xff\xfe\x00": -32700,
        b"[]": -32600,
        b"[" + request(1, "ping") + b"]": -32600,
        b"5": -32600,
        b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}': -32600,
        b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}': -32600,
        b'{"jsonrpc":"2.0","id":[1],"method":"tools/list"}': -32600,
        b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"tools/list"}': -32700,
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list"}': -32700,
    }
    found = answers(saved, *lines, request(1, "ping"))
    ping = next(answer for answer in found if answer["id"] is not None)
    assert ping["result"] == {}
    codes = [answer["error"]["code"] for answer in found if answer["id"] is None]
    assert codes == list(lines.values())


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ('{"id": 1, "params": {"id": 2}}', 1),
        ('{"params": [{"id": 2}, "id"], "method": "id", "id" : "a\\"b"', None),
        ('{"params": [{"id": 2}, "id"], "method": "id", "id" : "a\\"b"}', 'a"b'),
        ('{"a": "}{\\"", "id": -7, "b": "never closed', -7),
        ('{"id": "never closed', None),
        ('{"id": 1e3}', None),
        ('[{"id": 1}]', None),
        ("[" * 300_000 + '{"id": 1}', None),
        ('{"' * 300_000, None),
        ('{"id": "' + '\\"' * 300_000, None),
    ],
)
def test_the_id_is_that_of_the_message_itself(line: str, id: Any) -> None:
    assert _id_in(line) == (id if not line.endswith('b"') else 'a"b')


@pytest.mark.slow
def test_all_that_was_asked_before_the_end_of_input_is_answered(saved: Path) -> None:
    with BM25Index.open(saved, mode="w") as index:
        index.add(["slow " * 100_000] * 20)
    slow = [search(b"%d" % number, b'{"query":"slow","k":20}') for number in range(1, 30)]
    asked = [
        (b'{"query":"red","k":1}', b'{"query":"red","k":"1"}')[number % 4 == 0]
        for number in range(30, 2_030)
    ]
    calls = [search(b"%d" % number, arguments) for number, arguments in enumerate(asked, 30)]
    found = answers(saved, *slow, *calls, *[request(1, "ping")] * 100, wait=False)
    counts = Counter(answer["id"] for answer in found)
    assert counts.pop(1) == 101
    assert counts == dict.fromkeys(range(2, 2_030), 1)
    assert all("error" not in answer for answer in found)
    for answer in found:
        if answer["id"] >= 30:
            wrong = answer["id"] % 4 == 0
            assert answer["result"]["isError"] is wrong, answer
            assert wrong or len(answer["result"]["structuredContent"]["hits"]) == 1


def test_a_cancellation_of_what_can_be_no_request_ends_nothing(saved: Path) -> None:
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}'
    ids = [cancel % id for id in (b"[1]", b"{}", b"null", b"1.5", b"true", b'"x"')]
    assert answers(saved, *ids, request(2, "ping"), wait=False)[-1]["id"] == 2


@pytest.mark.slow
def test_a_cancelled_request_is_not_waited_for(saved: Path) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with BM25Index.open(saved, mode="w") as index:
        index.add(["slow " * 100_000] * 8)
    call = search(b"1", b'{"query":"slow","k":20}')
    found = answers(saved, call, json.dumps(cancel).encode(), request(2, "ping"), wait=False)
    assert [answer["id"] for answer in found][-1] == 2


@pytest.mark.slow
def test_the_server_stops_soon_after_its_client_has_gone_although_calls_are_waiting(
    saved: Path,
) -> None:
    with BM25Index.open(saved, mode="w") as index:
        index.add(["word " * 40_000] * 20)
    start = monotonic()
    answers(saved, search(b"1", b'{"query":"red"}'))
    once = monotonic() - start
    calls = [search(b"%d" % number, b'{"query":"word","k":100}') for number in range(1, 2_000)]
    start = monotonic()
    with serving(saved) as process:
        process.stdin.write(b"".join(line + b"\n" for line in (HELLO_LINE, *calls)))
        process.stdin.close()
        process.stdout.close()
        process.wait(300)
    assert monotonic() - start < 60 + 3 * once  # all of them take several minutes

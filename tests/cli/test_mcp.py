"""``bm25rag mcp`` as a process, asked by the protocol's own client and by bad ones."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.cli.mcp.command import _server
from bm25rag.cli.mcp.tools import IndexTools
from support.commands import HELLO, fails, ok
from support.environment import ROOT

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp import Client, StdioServerParameters, stdio_client


def connect(*words: str, **options: Any) -> Client:
    arguments = ["-m", "bm25rag", "mcp", "saved", *words]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    return Client(stdio_client(server), **options)


# --- the protocol's own client -------------------------------------------------------


# The protocol before 2026, and since.
@pytest.mark.parametrize("era", [pytest.param("legacy", marks=pytest.mark.slow), "auto"])
def test_a_client_lists_the_tools_and_calls_them(saved: Path, era: Any) -> None:
    async def use() -> None:
        async with connect("--about", "Where things go", mode=era) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == ["search", "get", "explain", "count"]
            assert tools["search"].description.startswith("Where things go. Search 4 documents")
            assert all(tool.annotations.read_only_hint for tool in tools.values())
            assert tools["search"].input_schema["required"] == ["query"]
            assert "year (number)" in str(tools["search"].input_schema)

            found = await client.call_tool("search", {"query": "red", "filter": {"year": 2021}})
            (hit,) = found.structured_content["hits"]
            expected = BM25Index.open(saved).search("red", filter={"year": 2021})[0]
            assert (hit["id"], hit["score"], hit["text"]) == ("car", expected.score, expected.text)
            assert expected.text in found.content[0].text

            for arguments, complaint in (
                ({"query": "red", "k": -1}, "k must be an integer >= 0, got -1"),
                ({"query": "red", "filter": {"a": {"$b": 1}}}, "filter at a.$b: unknown operator"),
                ({"query": 7}, "query must be a string, got int"),
                ({}, "search needs the argument 'query'"),
            ):
                refused = await client.call_tool("search", arguments)
                assert refused.is_error
                assert refused.content[0].text.startswith(complaint)
            assert (await client.call_tool("delete", {"ids": ["car"]})).is_error

            with BM25Index.open(saved, mode="w") as index:
                index.delete(["car"])
            assert (await client.call_tool("count")).structured_content == {"count": 3}

    asyncio.run(use())


def test_with_write_a_client_adds_and_deletes(saved: Path) -> None:
    async def use() -> None:
        async with Client(_server(IndexTools(saved, write=True))) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools][4:] == ["add", "delete"]
            plane = {"id": "plane", "text": "a red plane", "metadata": {"year": 2024}}
            await client.call_tool("add", {"documents": [plane]})
            assert BM25Index.open(saved).get(["plane"])[0].metadata == {"year": 2024}
            found = await client.call_tool("search", {"query": "plane"})
            assert found.structured_content["hits"][0]["id"] == "plane"
            await client.call_tool("delete", {"ids": ["plane"]})
            assert "plane" not in BM25Index.open(saved)

    asyncio.run(use())


def test_the_settings_that_the_page_shows_are_understood(saved: Path) -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    command, path, *options = json.loads(block)["mcpServers"]["notes"]["args"]
    assert path.endswith("notes.bm25")
    result = ok(command, saved, *options, input="")
    assert (result.stdout, result.stderr) == ("", "Serving 4 documents of saved (MCP)\n")


# --- other clients -------------------------------------------------------------------

Start = Callable[..., subprocess.Popen[bytes]]


def send(process: subprocess.Popen[bytes], *lines: bytes) -> None:
    process.stdin.write(b"".join(line + b"\n" for line in lines))
    process.stdin.flush()


def request(number: int, method: str, **parameters: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
    return json.dumps(message).encode()


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole groups of processes")
def test_ctrl_c_ends_it_although_the_client_still_holds_the_pipes(
    saved: Path, start: Start
) -> None:
    process = start("mcp", saved)
    send(process, request(1, "initialize", **HELLO))
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert process.stderr.read() == b"Serving 4 documents of saved (MCP)\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="closes streams as a POSIX shell does")
def test_a_client_that_reads_no_answers_is_no_bug(saved: Path, start: Start) -> None:
    process = start("mcp", saved)
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(request(1, "initialize", **HELLO) + b"\n", timeout=60)
    assert (err, process.returncode) == (b"Serving 4 documents of saved (MCP)\n", 141)


@pytest.mark.skipif(os.name == "nt", reason="closes streams as a POSIX shell does")
def test_without_an_input_it_says_who_starts_it(saved: Path) -> None:
    line = f"{sys.executable} -m bm25rag mcp saved <&-"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 3)
    assert done.stderr.startswith("Error: standard input is closed; an MCP client starts")


# --- indexes that cannot be served ---------------------------------------------------


def test_an_index_that_cannot_be_opened_ends_it_with_a_message(saved: Path) -> None:
    fails(3, "gone holds no bm25rag index", "mcp", "gone")
    (saved / "manifest.json").write_text("{", encoding="utf-8")
    fails(3, "manifest.json", "mcp", saved)


def test_without_the_extra_the_message_has_the_pip_line(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] in ("mcp", "mcp_types")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    fails(3, "bm25rag mcp needs mcp: pip install 'bm25rag[mcp]'", "mcp", saved)

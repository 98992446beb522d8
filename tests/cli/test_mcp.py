"""``bm25rag mcp`` as a process, asked by the protocol's own client and by bad ones."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.cli.mcp.protocol import make_server
from bm25rag.cli.mcp.served import Served
from bm25rag.cli.mcp.tools import IndexTools
from support.commands import HELLO, fails, ok
from support.environment import ROOT

pytest.importorskip("mcp", reason="the extra mcp is not installed")
import jsonschema
from mcp import Client, MCPError, StdioServerParameters, stdio_client


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
            assert list(tools) == ["search", "grep", "read", "explain", "count"]
            assert "Here: Where things go. 4 documents" in tools["search"].description
            assert all(tool.annotations.read_only_hint for tool in tools.values())
            assert tools["search"].input_schema["required"] == ["query"]
            assert "year (number)" in str(tools["search"].input_schema)

            found = await client.call_tool("search", {"query": "red", "filter": {"year": 2021}})
            (hit,) = found.structured_content["hits"]
            expected = BM25Index.open(saved).search("red", filter={"year": 2021})[0]
            assert (hit["id"], hit["score"], hit["text"]) == ("car", expected.score, expected.text)
            assert expected.text in found.content[0].text

            for arguments, complaint in (
                ({"query": "red", "k": -1}, "k must be an integer >= 1, got -1"),
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
        async with Client(make_server(IndexTools([Served(saved)], write=True))) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools][5:] == ["add", "delete"]
            schemas = {tool.name: tool.output_schema for tool in tools}

            async def called(name: str, **arguments: Any) -> Any:
                """Call a tool, whose answer the client checks by the schema if there is one."""
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, answer.content
                jsonschema.validate(answer.structured_content, schemas[name])
                return answer

            plane = {"id": "plane", "text": "a red plane", "metadata": {"year": 2024}}
            await called("add", documents=[plane])
            assert BM25Index.open(saved).get(["plane"])[0].metadata == {"year": 2024}
            found = await called("search", query="plane", also=["red"])
            for name, arguments in (
                ("grep", {"pattern": "red", "context": 1}),
                ("read", {"id": "plane"}),
                ("explain", {"query": "plane the zebra", "id": "plane", "must": ["plane"]}),
                ("count", {}),
            ):
                await called(name, **arguments)
            assert found.structured_content["hits"][0]["id"] == "plane"
            await called("delete", ids=["plane"])
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


# --- by HTTP -------------------------------------------------------------------------

TOKEN = "a-token-of-the-tests"


@pytest.fixture
def address(
    saved: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> tuple[subprocess.Popen[bytes], str]:
    monkeypatch.setenv("BM25RAG_MCP_TOKEN", TOKEN)
    process = start("mcp", saved, "--http", "--port", 0)
    said = process.stderr.readline().decode()
    assert said.startswith("Serving 4 documents of saved (MCP) at http://127.0.0.1:")
    return process, said.split(" at ")[1].strip()


def test_by_http_only_those_with_the_token_are_served(
    address: tuple[subprocess.Popen[bytes], str],
) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    process, url = address
    hello = json.loads(request(1, "initialize", **HELLO))
    accepts = {"accept": "application/json, text/event-stream"}
    for given in ({}, {"authorization": "Bearer no"}, {"authorization": TOKEN}):
        answer = httpx2.post(url, json=hello, headers={**accepts, **given})
        assert (answer.status_code, answer.content) == (401, b"the token is missing, or wrong\n")
    known = {**accepts, "authorization": f"bearer {TOKEN}"}  # schemes are of any case
    elsewhere = {**known, "host": "evil.example"}
    assert httpx2.post(url, json=hello, headers=elsewhere).status_code == 421
    large = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (17 << 20) + b'"}'
    typed = {**known, "content-type": "application/json"}
    assert httpx2.post(url, content=large, headers=typed).status_code == 413

    async def use() -> None:
        async with (
            httpx2.AsyncClient(headers=known) as session,
            Client(streamable_http_client(url, http_client=session)) as client,
        ):
            calls = [client.call_tool("search", {"query": "red"}) for _ in range(50)]
            for found in await asyncio.gather(*calls):
                assert len(found.structured_content["hits"]) == 2

    asyncio.run(use())
    if os.name != "nt":
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


def ask_by_http(url: str, name: str, *, leave: bool = False, **arguments: Any) -> bytes:
    """Call a tool; ``leave`` goes away without an answer."""
    body = request(1, "tools/call", name=name, arguments=arguments)
    host, port = url.split("/")[2].split(":")
    lines = [
        "POST /mcp HTTP/1.1",
        f"host: {host}:{port}",
        f"authorization: Bearer {TOKEN}",
        "accept: application/json, text/event-stream",
        "content-type: application/json",
        "connection: close",
        f"content-length: {len(body)}",
        "\r\n",
    ]
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall("\r\n".join(lines).encode() + body)
        return b"" if leave else b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.slow
def test_by_http_nobody_waits_for_calls_of_clients_that_have_gone(
    saved: Path, address: tuple[subprocess.Popen[bytes], str]
) -> None:
    pytest.importorskip("re2", reason="the extra grep is not installed")
    process, url = address
    with BM25Index.open(saved, mode="w") as index:
        index.add(["lorem ipsum dolor " * 5000] * 6)
    slow = {"pattern": "(.{0,30}){30}zz", "regex": True}  # three seconds
    for _ in range(40):
        ask_by_http(url, "grep", leave=True, **slow)
    start = monotonic()
    assert b'"structuredContent":{"count":10}' in ask_by_http(url, "count")
    assert monotonic() - start < 15
    process.terminate()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("token", ["", "short", "ünsichere Zeichen überall"])
def test_by_http_a_token_is_needed(
    saved: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BM25RAG_MCP_TOKEN", token)
    fails(3, "--http needs a token of at least 16 ASCII characters", "mcp", saved, "--http")


def test_by_http_a_port_in_use_is_named(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BM25RAG_MCP_TOKEN", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        fails(3, f"port {port} of 127.0.0.1 is in use", "mcp", saved, "--http", "--port", port)


# --- resources and prompts -----------------------------------------------------------


def test_documents_are_resources_and_a_prompt_asks_for_quotations(saved: Path) -> None:
    async def use() -> None:
        async with Client(make_server(IndexTools([Served(saved)]))) as client:
            (template,) = (await client.list_resource_templates()).resource_templates
            assert template.uri_template == "bm25rag://{index}/{id}"
            (content,) = (await client.read_resource("bm25rag://saved/bo%61t")).contents
            assert content.text.endswith("A red boat sails on the sea.")
            other = "bm25rag://other/boat"  # of an index that this server does not have
            for wrong in ("bm25rag://saved/x", "bm25rag://saved", "file:///etc/passwd", other):
                with pytest.raises(MCPError, match=r"no document|a resource is|index must be"):
                    await client.read_resource(wrong)
            (prompt,) = (await client.list_prompts()).prompts
            assert [argument.name for argument in prompt.arguments] == ["question"]
            filled = await client.get_prompt("answer", {"question": "Where are boats?"})
            assert "Where are boats?" in filled.messages[0].content.text
            with pytest.raises(MCPError, match="there is one prompt"):
                await client.get_prompt("other", {})

    asyncio.run(use())

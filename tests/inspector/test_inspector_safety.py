"""What the inspector refuses, escapes, and never writes."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import unquote

import pytest

from bm25rag import BM25Index
from bm25rag.common.listening import _listening
from bm25rag.errors import UntrustedIndexError
from bm25rag.inspector.guard import is_ours
from bm25rag.inspector.opened import OpenedIndex
from bm25rag.inspector.views import VIEWS as VIEW_FUNCTIONS
from support.cases import first
from support.environment import ROOT
from support.inspected import (
    HOSTILE,
    VIEWS,
    Elements,
    Inspected,
    address,
    asking_for,
    save_hostile,
    save_kind,
    small,
)
from support.waiting import wait_until

timed_http = pytest.importorskip("bm25rag.common.timed_http")

Start = Callable[..., Inspected]


@pytest.fixture
def hostile(tmp_path: Path, start: Start) -> Inspected:
    save_hostile(tmp_path / "hostile")
    return start(tmp_path / "hostile", qrels=tmp_path / "judged.tsv")


@pytest.mark.parametrize("view", first(3, VIEWS))
def test_nothing_of_a_document_becomes_an_element_or_an_attribute(
    view: str, hostile: Inspected
) -> None:
    for own in HOSTILE:
        page = Elements(hostile.page(view, **asking_for(own)))
        assert page.all("script") == [{"src": "/static/inspector.js", "defer": ""}]
        assert [one["src"] for one in page.all("img")] == ["/static/logo.svg"]
        for tag, attributes in page.found:
            assert tag not in ("style", "iframe", "object", "embed", "base", "raw")
            assert not any(name.startswith("on") or name == "style" for name in attributes)
            for name in ("href", "src", "action"):
                assert attributes.get(name, "/")[:1] == "/" or tag == "form"
        assert "62615533" not in page.text


def test_every_document_can_be_reached_by_its_link(hostile: Inspected) -> None:
    page = Elements(hostile.page("search", q="evil", size=50))
    links = [one["href"] for one in page.all("a", **{"class": "id"})]
    assert len(links) == len(HOSTILE) + 1
    for link in links:
        data = json.loads(hostile.ask(link.replace("/document?", "/document.json?")).body)
        assert data["found"]
        assert unquote(link.rsplit("id=", 1)[1], errors="surrogatepass") == data["id"]


def test_every_term_can_be_reached_by_its_link(hostile: Inspected) -> None:
    page = Elements(hostile.page("terms", size=50))
    links = {one["href"] for one in page.all("a") if one["href"].startswith("/term?")}
    assert len(links) > len(HOSTILE)
    for link in links:
        assert json.loads(hostile.ask(link.replace("/term?", "/term.json?")).body)["known"]


def test_every_hostile_value_of_the_metadata_is_a_filter_that_finds_its_document(
    hostile: Inspected,
) -> None:
    facets = hostile.json("search", q="evil", size=50)["facets"]
    tried = 0
    for facet in facets:
        for one in facet["values"]:
            given = json.dumps(one["filter"])
            assert hostile.json("search", q="evil", filter=given)["total"] == one["count"]
            tried += 1
    assert tried > 2 * len(HOSTILE)


def test_every_answer_has_a_policy_that_allows_no_foreign_script_and_no_style_within(
    inspected: Inspected,
) -> None:
    paths = ["/", "/search?q=red", "/search.json", "/nothing", "/static/inspector.js", "/a/b/c"]
    answers = [inspected.ask(path) for path in paths]
    answers.append(inspected.ask("/", Host="evil.example"))
    answers.append(inspected.ask("/judge", "POST"))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("127.0.0.1:{port}", True),
        ("localhost:{port}", True),
        ("[::1]:{port}", True),
        ("evil.example", False),
        ("evil.example:{port}", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_only_this_machine_s_own_names_are_answered(
    host: str, answered: bool, inspected: Inspected
) -> None:
    answer = inspected.ask("/search?q=red", Host=host.format(port=inspected.port))
    assert answer.status == (200 if answered else 421)
    assert answered or b"boat" not in answer.body


def test_the_name_that_it_listens_at_is_answered() -> None:
    assert is_ours("box.example:8777", "box.example")
    assert not is_ours("other.example:8777", "box.example")


@pytest.mark.parametrize("path", ["judge", "baseline"])
def test_a_form_of_another_page_changes_nothing(
    path: str, inspected: Inspected, tmp_path: Path
) -> None:
    where = address(path, q="red", id="boat")
    origins = ["http://evil.example", "null", f"https://{inspected.host}", "http://127.0.0.1:1"]
    for origin in origins:
        assert inspected.ask(where, "POST", "grade=1", Origin=origin).status == 403
    assert inspected.ask(where, "POST", "grade=1").status == 403
    assert not (tmp_path / "judged.tsv").exists()
    assert inspected.desk.baseline is None


@pytest.mark.parametrize("path", ["judge", "baseline"])
def test_a_link_changes_nothing(path: str, inspected: Inspected, tmp_path: Path) -> None:
    assert inspected.ask(address(path, q="red", id="boat", grade=1)).status in (404, 405)
    assert not (tmp_path / "judged.tsv").exists()


def test_other_methods_are_refused(inspected: Inspected) -> None:
    for method in ("PUT", "DELETE", "POST", "PATCH"):
        assert inspected.ask("/search", method, Origin=inspected.base).status == 405


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("/search?q=red&filter=%7B", "not JSON"),
        ("/search?q=red&filter=%5B1%5D", "must be a JSON object"),
        ("/search?q=red&filter=%7B%22a%22%3ANaN%7D", "NaN is not JSON"),
        ("/search?q=red&filter=%7B%22%24wrong%22%3A1%7D", "$wrong"),
        (
            "/search?q=red&filter=" + "%7B%22a%22%3A" * 3000 + "1" + "%7D" * 3000,
            "levels of nesting",
        ),
        ("/search?q=red&k1=abc", "k1 must be a number"),
        ("/search?q=red&k1=nan", "k1 must be a number"),
        ("/search?q=red&k1=-1", "k1"),
        ("/search?q=red&b=7", "b"),
        ("/search?q=red&variant=best", "variant"),
        ("/search?q=red&page=0x1", "page must be a whole number"),
        ("/search?q=red&size=-5", "size must be a whole number"),
        ("/search?q=red&w.title=2", "field"),
        ("/search?q=red&syntax=1&q=%2B", ""),
        ("/search?q=%FF", "not UTF-8"),
        ("/search?q=red&commit=..%2F..%2Fetc", "commit"),
        ("/compare?q=red&b_variant=best", "variant"),
        ("/search?" + "a=1&" * 300, "fields"),
        ("/document?q=red&id=" + "x" * 40_000, "no document"),
    ],
)
def test_a_wrong_address_is_explained_on_a_page_and_in_json(
    path: str, complaint: str, inspected: Inspected
) -> None:
    for where in (path, path.replace("?", ".json?", 1)):
        answer = inspected.ask(where)
        assert answer.status in (200, 400, 404)
        assert "This is a bug" not in answer.text
        assert complaint in answer.text.replace("&#39;", "'").replace("\\u2026", "…")
    assert inspected.page("search", q="red")


def test_the_picture_of_the_pages_is_that_of_the_project(inspected: Inspected) -> None:
    logo = (ROOT / "docs" / "logo.svg").read_bytes()
    assert inspected.ask("/static/logo.svg").body == logo


def test_an_unknown_view_is_named(inspected: Inspected) -> None:
    assert "no view" in inspected.page("nothing", 404)
    assert "no view" in inspected.json("nothing", 404)["error"]
    assert inspected.ask("/static/..%2Fapp.py").status == 404
    assert inspected.ask("/static/app.py").status == 404


def test_looking_writes_nothing_to_the_folder(
    folder: Path, inspected: Inspected, tmp_path: Path
) -> None:
    before = contents(tmp_path)
    for view in VIEWS:
        inspected.page(view, q="red sea", id="boat", t="red", k1=0.4, b_variant="bm25+")
    inspected.post("baseline", q="red")
    assert contents(tmp_path) == before
    inspected.judge(1, q="red", id="boat")
    changed = {path for path in contents(tmp_path) if path not in before}
    assert changed == {"judged.tsv"}
    assert inspected.desk.opened.at().read_only


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_an_index_of_a_stranger_is_refused_where_it_could_hang_the_search(tmp_path: Path) -> None:
    from bm25rag import Analyzer

    small(analyzer=Analyzer(token_pattern=r"\w+")).save(tmp_path / "index")
    with pytest.raises(UntrustedIndexError):
        OpenedIndex(tmp_path / "index", untrusted=True)


def test_an_index_is_followed_while_it_is_changed_and_compacted(
    folder: Path, inspected: Inspected
) -> None:
    for round in range(5):
        with BM25Index.open(folder, mode="w") as index:
            index.add([f"red round {round}"], ids=[f"new{round}"])
            if round % 2:
                index.delete([f"new{round - 1}"])
                index.compact()
        ids = [hit["id"] for hit in inspected.json("search", q=f"round {round}")["hits"]]
        assert ids[0] == f"new{round}"
        for view in VIEWS:
            inspected.page(view, q="red round", id="boat", t="red")


@pytest.mark.skipif(os.name == "nt", reason="a folder with open files cannot be renamed there")
def test_a_folder_that_goes_away_is_shown_as_it_was(folder: Path, inspected: Inspected) -> None:
    inspected.page("search", q="red")
    folder.rename(folder.with_name("gone"))
    data = inspected.json("search", q="red")
    assert data["total"] == 3
    assert "cannot be read any more" in data["notes"][0]
    assert "cannot be read any more" in inspected.page("health")
    folder.with_name("gone").rename(folder)
    assert inspected.json("search", q="red")["notes"] == []


def test_a_damaged_commit_does_not_end_the_inspector(tmp_path: Path, start: Start) -> None:
    save_kind("plain", tmp_path / "index")
    inspected = start(tmp_path / "index")
    inspected.page("search", q="red")
    for path in (tmp_path / "index").iterdir():
        if path.suffix == ".json" or "manifest" in path.name:
            path.write_bytes(b"damaged")
    data = inspected.json("search", q="red")
    assert data["total"] == 3
    assert len(data["notes"]) == 1


def test_texts_terms_ids_and_questions_of_any_length_are_shown_in_a_page_of_bounded_size(
    tmp_path: Path, start: Start
) -> None:
    long = "x" * 300_000
    index = BM25Index.from_texts(
        [f"red {long} " + "sea boat " * 200_000], ids=["i" * 30_000], metadata=[{long: long}]
    )
    index.add([["red", long]], ids=["terms"])
    index.save(tmp_path / "index")
    inspected = start(tmp_path / "index")
    many = "red " + " ".join(f"word{n}" for n in range(2_000))
    for view in VIEWS:
        for q in ("red sea", many):
            assert len(inspected.page(view, q=q, id="i" * 30_000, t="red")) < 2_000_000
    assert "at most 20,000 are taken" in inspected.page("search", 400, q="x " * 15_000)


def test_an_id_cannot_change_the_order_in_which_it_is_read(hostile: Inspected) -> None:
    page = hostile.page("search", q="evil", size=50)
    assert "<bdi>\\u202egnp.exe</bdi>" in page
    assert "<bdi>\u202e" not in page
    assert "<bdi>lone \\ud800 surrogate</bdi>" in page
    assert "<bdi>nul\\x00 and escape\\x1b[31m</bdi>" in page
    for view, name in (("search", "q"), ("document", "id"), ("term", "t")):
        page = hostile.page(view, **{name: "\u202egnp.exe"})
        assert "<title>\\u202egnp.exe · " in page


def test_a_page_elsewhere_may_lead_here_by_a_link_and_no_more(inspected: Inspected) -> None:
    def status(site: str, mode: str) -> int:
        given = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": mode}
        return inspected.ask("/search.json?q=red", **given).status

    assert status("cross-site", "navigate") == 200
    assert status("same-origin", "cors") == 200
    assert status("none", "navigate") == 200
    assert status("cross-site", "no-cors") == 403
    assert status("same-site", "cors") == 403


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"POST /judge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n",
        b"GET /static/logo.svg HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nX-Slow: ",
    ],
    ids=["nothing", "headers", "body", "next"],
)
def test_a_client_that_sends_a_byte_now_and_then_is_not_waited_for(
    begun: bytes, inspected: Inspected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_http, "SECONDS", 1.0)
    began = monotonic()
    with (
        socket.create_connection(("127.0.0.1", inspected.port), timeout=0.05) as slow,
        suppress(ConnectionError),
    ):
        slow.sendall(begun)
        ended = False
        while not ended and monotonic() - began < 10:
            with suppress(TimeoutError):
                ended = not slow.recv(1 << 16)
            slow.sendall(b"x")
    assert 0.9 < monotonic() - began < 10


def test_an_answer_may_take_longer_than_a_request(
    inspected: Inspected, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = VIEW_FUNCTIONS["search"]
    monkeypatch.setattr(timed_http, "SECONDS", 0.3)
    monkeypatch.setitem(VIEW_FUNCTIONS, "search", lambda *given: sleep(1) or search(*given))
    assert "sails" in inspected.page("search", q="boat")


@pytest.mark.parametrize(
    ("asked", "times"),
    [
        (b"GET /terms.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 1),
        (b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n" * 500, 400),
    ],
    ids=["a long answer", "many refusals"],
)
def test_a_client_that_takes_no_answer_is_not_waited_for(
    asked: bytes, times: int, inspected: Inspected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_http, "SECONDS", 1.0)
    monkeypatch.setitem(VIEW_FUNCTIONS, "terms", lambda *_: {"text": "x" * (1 << 24)})
    connections = inspected.server.server_state.connections
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(0.05)
        deaf.connect(("127.0.0.1", inspected.port))
        with suppress(TimeoutError):
            for _ in range(times):
                deaf.sendall(asked)
        wait_until(lambda: connections, 10)
        wait_until(lambda: not connections, 10)


def test_the_body_of_an_answer_does_not_wait_for_the_client() -> None:
    """By Nagle's algorithm it would wait until the headers, sent before it, are confirmed."""
    with _listening("127.0.0.1", 0) as listening:
        address = listening.getsockname()
        with socket.create_connection(address), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

"""The client's pages and its checks of fields, with hosts that are called in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index, Document, Query
from bm25rag.distributed.asking import Answers
from bm25rag.distributed.client import RayIndex
from bm25rag.distributed.host import Host
from bm25rag.errors import FilterError, FilterWarning, IncompleteWarning


class Local(RayIndex):
    """A client of hosts that are not actors."""

    def __init__(self, folder: Path) -> None:
        super().__init__("local", [[], []])
        self._hosts = [Host(str(folder), part, 2, 1, True, None, False) for part in range(2)]

    def _ask(self, operation: str, arguments: tuple[Any, ...], *_: object) -> Answers:
        found = [host.answer(operation, arguments, 0) for host in self._hosts]
        return Answers(found[0].commit, found[0].shards, found, {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Build four shards, each field in documents of some shards only."""
    documents = [
        Document(
            str(n), f"red {'sea ' * (n % 3)}", {f"only{n % 10}": n, "n": n}, None, {"red": 1.0}
        )
        for n in range(20)
    ]
    BM25Index.build(documents, tmp_path / "it", shards=4)
    return tmp_path / "it"


@pytest.mark.parametrize("offset", [0, 3, 15, 30])
@pytest.mark.parametrize("filter", [None, {"n": {"$gt": 4}}])
def test_pages_are_those_of_the_whole_index(folder: Path, filter: Any, offset: int) -> None:
    client, index = Local(folder), BM25Index.open(folder)
    options: dict[str, Any] = {"k": 4, "filter": filter, "offset": offset}
    assert client.search("red sea", **options) == index.search("red sea", **options)
    found, expected = (one.search_batch(["red", "sea"], **options) for one in (client, index))
    assert found.hits() == expected.hits()
    for name in ("rows", "scores", "counts"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    vector = {"red": 2.0}
    assert client.vectors.search(vector, **options) == index.vectors.search(vector, **options)
    both = index.search_hybrid("sea", vector, **options)
    assert client.search_hybrid("sea", vector, **options) == both


@pytest.mark.parametrize("k", [1, 4, 30])
@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("group", [None, "tens", "only1", "$text"])
@pytest.mark.parametrize("decay", [None, {"path": "n", "full": 19}])
def test_groups_and_decays_are_those_of_the_whole_index(
    tmp_path: Path, k: int, offset: int, group: Any, decay: Any
) -> None:
    documents = [
        Document(str(n), f"red {'sea ' * (n % 3)}", {"tens": n % 5, f"only{n % 4}": n // 8, "n": n})
        for n in range(20)
    ]
    BM25Index.build(documents, tmp_path / "it", shards=4)
    client, index = Local(tmp_path / "it"), BM25Index.open(tmp_path / "it")
    options: dict[str, Any] = {"k": k, "offset": offset, "group": group, "decay": decay}
    assert client.search("red sea", **options) == index.search("red sea", **options)
    for contents in (True, False):
        found = client.search_batch(["red", "sea"], contents=contents, **options)
        expected = index.search_batch(["red", "sea"], **options)
        assert found.ids() == expected.ids()
        assert found.counts.tolist() == expected.counts.tolist()
        for number, count in enumerate(expected.counts.tolist()):
            for name in ("rows", "scores"):
                one, other = getattr(found, name)[number], getattr(expected, name)[number]
                assert one[:count].tolist() == other[:count].tolist()
    assert client.explain("red", "3", decay=decay) == index.explain("red", "3", decay=decay)


def test_parts_of_queries_hold_in_all_shards(folder: Path) -> None:
    client, index = Local(folder), BM25Index.open(folder)
    queries = [
        Query("red", must=["sea"]),
        Query("red", must_not=["sea"]),
        Query("sea", phrases=["sea sea"]),
        Query("red", not_phrases=["red sea"]),
        Query.parse('"red sea" -missing'),
    ]
    assert client.search_batch(queries, 9).hits() == index.search_batch(queries, 9).hits()
    for query in queries:
        found = client.search_hybrid(query, {"red": 1.0}, 5)
        assert found == index.search_hybrid(query, {"red": 1.0}, 5)
        assert client.explain(query, "7") == index.explain(query, "7")
    with pytest.warns(IncompleteWarning):
        cut = client.search_batch(["red", Query("red", phrases=["sea red"], timeout=1e-9)])
    assert cut.cut == [1]


def test_a_field_is_known_if_any_shard_has_it(folder: Path) -> None:
    client = Local(folder)
    strict = {"$strict": {"only2": {"$exists": True}}}
    assert {hit.id for hit in client.search("red", filter=strict)} == {"2", "12"}
    assert client.count(strict) == 2
    with pytest.raises(FilterError, match="did you mean 'only2'"):
        client.search("red", filter={"$strict": {"olny2": 1}})
    with pytest.warns(FilterWarning, match=r"\{'n': \{'\$gte': 3\}\}"):
        client.count({"n": {"gte": 3}})

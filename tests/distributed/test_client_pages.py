"""The client's pages and its checks of fields, with hosts that are called in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index, Document, Query
from bm25rag.distributed.asking import Answers
from bm25rag.distributed.client import RayIndex
from bm25rag.distributed.host import Host
from bm25rag.errors import DocumentNotFoundError, FilterError, FilterWarning, IncompleteWarning
from support.cases import first


class Local(RayIndex):
    """A client of hosts that are not actors."""

    def __init__(self, folder: Path) -> None:
        super().__init__("local", [[], []])
        self._hosts = [Host(str(folder), part, 2, 1, True, None, False) for part in range(2)]

    def _ask(self, operation: str, arguments: tuple[Any, ...], *_: object) -> Answers:
        found = [host.answer(operation, arguments, within=self._within) for host in self._hosts]
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
    asked: list[Any] = ["red", Query("sea", also={"ships": 0.5})]
    fused = index.search_fused(asked, weights=[2, 1], **options)
    found_each = client.search_fused(asked, weights=[2, 1], **options)
    assert found_each == fused
    # The words of all queries, whichever of them found it.
    assert [hit.spans for hit in found_each] == [hit.spans for hit in fused]


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Local, BM25Index]:
    """Return an index of four shards, each of which has documents of each group."""
    folder = tmp_path_factory.mktemp("grouped") / "it"
    documents = [
        Document(
            str(n),
            f"red {'sea ' * (n % 3)}",
            {"tens": n % 5, f"only{n % 4}": n // 8, "n": n, "list": [n // 6, float(n % 2)]},
            None,
            {"red": 1.0 + n % 4, "sea": -0.5},
        )
        for n in range(20)
    ]
    BM25Index.build(documents, folder, shards=4)
    return Local(folder), BM25Index.open(folder)


@pytest.mark.parametrize("k", first(2, [4, 30, 0, 1]))
@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize(
    ("group", "per_group"),
    [(None, 1), ("tens", 1), ("tens", 3), ("only1", 2), ("list", 2), ("$text", 1)],
)
@pytest.mark.parametrize("decay", [None, {"path": "n", "full": 19}])
def test_groups_and_decays_are_those_of_the_whole_index(
    grouped: tuple[Local, BM25Index], k: int, offset: int, group: Any, per_group: int, decay: Any
) -> None:
    client, index = grouped
    options: dict[str, Any] = {"k": k, "offset": offset, "group": group, "decay": decay}
    options["per_group"] = per_group
    for filter in (None, {"n": {"$gt": 3}}, lambda metadata: metadata["n"] % 3 < 2):
        limits = options | {"filter": filter}
        assert client.search("red sea", **limits) == index.search("red sea", **limits)
    vector = {"red": 2.0, "sea": 1.0}
    assert client.vectors.search(vector, **options) == index.vectors.search(vector, **options)
    both = index.search_hybrid("sea", vector, fetch_k=9, **options)
    assert client.search_hybrid("sea", vector, fetch_k=9, **options) == both
    fused = index.search_fused(["red", "sea"], fetch_k=7, **options)
    assert client.search_fused(["red", "sea"], fetch_k=7, **options) == fused
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


@pytest.mark.parametrize(
    "restriction", [{"tens": {"$ne": 1}}, {"n": {"$gt": 17}}, {"3", "9"}, lambda m: m["n"] % 3]
)
@pytest.mark.parametrize("filter", [None, {"n": {"$lt": 15}}, {"0", "3", "6"}])
def test_a_restricted_view_is_that_of_the_whole_index(
    grouped: tuple[Local, BM25Index], restriction: Any, filter: Any
) -> None:
    client, index = (one.restricted(restriction) for one in grouped)
    expected = index.search_batch(["red sea", "sea", "none"], 6, filter)
    found = client.search_batch(["red sea", "sea", "none"], 6, filter)
    assert (found.hits(), found.counts.tolist()) == (expected.hits(), expected.counts.tolist())
    for number, count in enumerate(expected.counts.tolist()):
        for name in ("rows", "scores"):
            one, other = getattr(found, name)[number], getattr(expected, name)[number]
            assert one[:count].tolist() == other[:count].tolist()
    options: dict[str, Any] = {"k": 3, "filter": filter, "group": "tens", "per_group": 2}
    vector = {"red": 2.0, "sea": 1.0}
    assert client.search("red", **options) == index.search("red", **options)
    assert client.vectors.search(vector, **options) == index.vectors.search(vector, **options)
    both = index.search_hybrid("sea", vector, **options)
    assert client.search_hybrid("sea", vector, **options) == both
    ids = [str(n) for n in range(20)]
    assert client.get(ids, filter) == index.get(ids, filter)
    assert (len(client), client.count(filter)) == (len(index), index.count(filter))
    for id in ids:
        if id in index:
            assert client.explain("red sea", id) == index.explain("red sea", id)
        else:
            with pytest.raises(DocumentNotFoundError, match=f"^there is no document .* '{id}'$"):
                client.explain("red sea", id)


def test_nothing_tells_a_restricted_view_of_other_documents(
    grouped: tuple[Local, BM25Index],
) -> None:
    view = grouped[0].restricted(lambda metadata: metadata["n"] % 4 == 1)
    asked: set[int] = set()
    view.search("red sea", 50, lambda metadata: asked.add(metadata["n"]) is None)
    assert view.count({"$or": [{"n": 0}, {"n": 1}, {"$not": {"n": 5}}]}) == 4
    assert asked == {1, 5, 9, 13, 17}
    assert len(view.restricted({"n": {"$lt": 6}})) == 2
    assert view.get(["0", "1"])[0].id == "1"
    with pytest.raises(FilterError, match="did you mean 'only1'"):
        view.search("red", filter={"$strict": {"only2": 1}})
    assert view.count({"$strict": {"only1": 0}}) == 2


def test_a_restriction_is_refused_as_by_an_index(grouped: tuple[Local, BM25Index]) -> None:
    for index in grouped:
        with pytest.raises(ValueError, match=r"needs a filter that rejects something, got \{\}"):
            index.restricted({})
        with pytest.raises(TypeError, match="needs a filter that rejects something, got None"):
            index.restricted(None)  # type: ignore[arg-type]
        with pytest.raises(FilterError, match="olny1"):
            index.restricted({"$strict": {"olny1": 1}})


def test_groups_that_cannot_be_are_refused(grouped: tuple[Local, BM25Index]) -> None:
    client, _ = grouped
    with pytest.raises(ValueError, match=r"per_group must be 1 with the group '\$text', got 2"):
        client.search("red", group="$text", per_group=2)
    for search in (client.search, lambda *_, **options: client.search_hybrid("red", {}, **options)):
        with pytest.raises(ValueError, match="per_group is for searches with group"):
            search("red", per_group=2)
        with pytest.raises(ValueError, match="per_group must be an integer >= 1"):
            search("red", group="tens", per_group=0)


def test_all_of_a_search_of_groups_is_of_one_commit(tmp_path: Path) -> None:
    documents = [Document(str(n), "red", {"tens": n % 2}) for n in range(8)]
    BM25Index.build(documents, tmp_path / "it", shards=4)

    class Behind(Local):
        """A client whose first answer is of the commit before."""

        def _ask(self, operation: str, arguments: tuple[Any, ...], *rest: object) -> Answers:
            answers = super()._ask(operation, arguments, *rest)
            if answers.commit[0] == 1:
                with BM25Index.open(tmp_path / "it", mode="w") as writer:
                    writer.delete(["0"])
                for host in self._hosts:
                    host.refresh()
            return answers

    found = Behind(tmp_path / "it").search_batch(["red"], 1, group="tens", per_group=9)
    assert (found.ids(), found.commit) == ([["1", "3", "5", "7"]], 2)


@pytest.mark.parametrize("fields", [None, {"title": 2.0, "text": 1.0}])
def test_fields_are_those_of_the_whole_index(tmp_path: Path, fields: Any) -> None:
    BM25Index.build(["a", "b"], tmp_path / "it", shards=2, fields=fields)
    client = Local(tmp_path / "it")
    assert client.fields == fields
    assert client.analyzer == BM25Index.open(tmp_path / "it").analyzer


def test_parts_of_queries_hold_in_all_shards(folder: Path) -> None:
    client, index = Local(folder), BM25Index.open(folder)
    queries = [
        Query("red", must=["sea"]),
        Query("red", must_not=["sea"]),
        Query("sea", phrases=["sea sea"]),
        Query("red", not_phrases=["red sea"]),
        Query.parse('"red sea" -missing'),
        Query("red", also=["sea sea"]),
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
    with pytest.warns(FilterWarning, match="no document has a list in the field 'only2'"):
        assert client.count({"only2": [1]}) == 0
    with pytest.warns(FilterWarning, match=r"\{'n': \{'\$gte': 3\}\}"):
        client.count({"n": {"gte": 3}})

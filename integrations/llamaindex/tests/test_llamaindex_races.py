"""What others write between two steps of a call neither leaks through filters nor is deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever, base, changes, filters
from llamaindex_nodes import node

Write = Callable[[], object]


def where(key: str, value: Any, operator: Any = "==") -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def write_after_translating(monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
    """Let another thread write after filters were translated, and before they are used."""

    def translate(*args: Any, **kwargs: Any) -> Any:
        spec = filters.translate(*args, **kwargs)
        write()
        return spec

    for module in (base, changes):
        monkeypatch.setattr(module, "translate", translate)


# --- reading ------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["search", "get_nodes"])
def test_dates_written_while_a_filter_is_translated_do_not_leak(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    retriever = BM25Retriever([node("1", "cat", when="2024-01-01")])
    day = {"when": date(2024, 1, 1)}
    write_after_translating(monkeypatch, lambda: retriever.bm25.update_metadata(["1"], [day]))
    other_days = where("when", "2024-01-01", "!=")
    if way == "search":
        assert retriever.search("cat", filters=other_days) == []
    else:
        assert retriever.get_nodes(filters=other_days) == []
    assert retriever.bm25.get(["1"])[0].metadata == day


@pytest.mark.parametrize("way", ["search", "get_nodes"])
def test_a_node_of_another_source_does_not_leak_while_a_filter_is_translated(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    retriever = BM25Retriever([node("1", "cat", "A")])
    retriever.bm25.update_metadata(["1"], [{"year": 1}])
    write_after_translating(monkeypatch, lambda: retriever.add_nodes([node("1", "cat", "B")]))
    nodes: list[Any]
    if way == "search":
        nodes = [one.node for one in retriever.search("cat", filters=where("ref_doc_id", "A"))]
    else:
        nodes = list(retriever.get_nodes(filters=where("ref_doc_id", "A")))
    assert [one.ref_doc_id for one in nodes] == ["A"], "the node as it was when asked"
    assert retriever.get_nodes()[0].ref_doc_id == "B"


# --- deleting -----------------------------------------------------------------------------


def write_before_deleting(retriever: BM25Retriever, write: Write) -> None:
    """Let another thread write before the core deletes what has been looked up."""
    delete = retriever.bm25.delete

    def late(*args: Any, **kwargs: Any) -> Any:
        write()
        return delete(*args, **kwargs)

    retriever.bm25.delete = late  # type: ignore[method-assign]  # the moment of another thread


@pytest.mark.parametrize("given", [None, ["1", "2"]])
def test_deleting_by_filters_spares_a_node_that_was_replaced_meanwhile(
    given: list[str] | None,
) -> None:
    retriever = BM25Retriever([node(id, "cat", team="red") for id in "12"])
    blue = node("1", "cat", team="blue")
    write_before_deleting(retriever, lambda: retriever.add_nodes([blue]))
    assert retriever.delete_nodes(given, where("team", "red")) == ["2"]
    assert retriever.get_nodes() == [blue]


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("way", ["ref_doc", "filters"])
def test_deleting_a_source_spares_a_node_that_was_replaced_meanwhile(
    way: str, written: bool
) -> None:
    retriever = BM25Retriever([node(id, "cat", "A") for id in "12"])
    if written:  # through the core, so that only the payloads name the source
        retriever.bm25.update_metadata(["1", "2"], [{}, {}])
    other = node("1", "cat", "B")
    write_before_deleting(retriever, lambda: retriever.add_nodes([other]))
    if way == "ref_doc":
        assert retriever.delete_ref_doc("A") == ["2"]
    else:
        assert retriever.delete_nodes(filters=where("doc_id", "A")) == ["2"]
    assert retriever.get_nodes() == [other]


@pytest.mark.parametrize(
    ("unlike", "metadata"),
    [(("when", "2024-01-01"), {"when": date(2024, 1, 1)}), (("doc_id", "A"), {})],
)
def test_deleting_all_but_some_spares_what_the_core_wrote_meanwhile(
    unlike: tuple[str, str], metadata: dict[str, Any]
) -> None:
    retriever = BM25Retriever([node("1", "cat", "B", when="2025")])

    def write() -> None:
        retriever.add_nodes([node("1", "cat", "A")])
        retriever.bm25.update_metadata(["1"], [metadata])

    write_before_deleting(retriever, write)
    assert retriever.delete_nodes(filters=where(*unlike, "!=")) == []
    assert len(retriever) == 1


@pytest.mark.parametrize("value", ["A", "B"])
def test_documents_of_the_core_have_no_source(value: str) -> None:
    # Of different texts: LlamaIndex 0.14.0 returns one of two nodes that say the same.
    nodes = [node("1", "one cat", "A"), node("2", "two cats", "A")]
    retriever = BM25Retriever(nodes, similarity_top_k=9)
    retriever.bm25.update_metadata(["2"], [{}])
    retriever.bm25.add(["a bare cat"], ids=["bare"])
    of_others = {"bare"} if value == "A" else {"1", "2", "bare"}
    unlike = where("doc_id", value, "!=")
    assert {one.node_id for one in retriever.search("cat", filters=unlike)} == of_others
    assert set(retriever.delete_nodes(filters=unlike)) == of_others

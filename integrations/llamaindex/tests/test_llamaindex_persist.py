"""What is saved is loaded unchanged, and what cannot be saved is refused."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import Stemmer
from llama_index.core.schema import IndexNode, MetadataMode, TextNode
from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever
from llamaindex_nodes import NODES, Paragraph, node

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError, NotAnIndexError, ReadOnlyError, TokenizerRequiredError

FILTERS = MetadataFilters(
    filters=[
        MetadataFilters(filters=[MetadataFilter(key="year", value=[2019, 2021], operator="in")]),
        MetadataFilter(key="f", value=1.0, operator="!="),
        MetadataFilter(key="s", value="1", operator="!="),
    ],
    condition=FilterCondition.AND,
)


def saved(retriever: BM25Retriever, folder: Path, **more: Any) -> BM25Retriever:
    retriever.persist(folder)
    return BM25Retriever.from_persist_dir(folder, **more)


def test_results_are_the_same_after_a_reload(nodes: list[TextNode], tmp_path: Path) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=3, filters=FILTERS)
    again = saved(retriever, tmp_path / "new" / "folder")
    assert again.retrieve("cats grass") == retriever.retrieve("cats grass")
    assert len(again.retrieve("cats grass")) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"language": "de"},
        {"language": None},
        {"language": "fr", "skip_stemming": True},
        {"stemmer": Stemmer.Stemmer("spanish")},
        {"token_pattern": r"\w+"},
    ],
    ids=repr,
)
def test_the_analysis_is_restored(settings: dict[str, Any], tmp_path: Path) -> None:
    retriever = BM25Retriever.from_defaults(nodes=[node("a", "Die Katzen")], **settings)
    assert saved(retriever, tmp_path).bm25.analyzer == retriever.bm25.analyzer


def test_the_settings_are_restored(nodes: list[TextNode], tmp_path: Path) -> None:
    retriever = BM25Retriever(
        nodes,
        similarity_top_k=7,
        filters=FILTERS,
        metadata_mode=MetadataMode.NONE,
        verbose=True,
        existing_bm25=BM25Index(variant="bm25+", k1=0.9, b=0.4),
    )
    again = saved(retriever, tmp_path)
    assert (again.similarity_top_k, again.filters, again.metadata_mode, again._verbose) == (
        7,
        FILTERS,
        MetadataMode.NONE,
        True,
    )
    assert (again.bm25.variant, again.bm25.k1, again.bm25.b) == ("bm25+", 0.9, 0.4)
    assert type(again.filters.filters[1].value) is float


def test_every_kind_of_node_is_restored(tmp_path: Path) -> None:
    retriever = BM25Retriever(NODES.values(), language=None, similarity_top_k=100)
    again = saved(retriever, tmp_path)
    nodes = retriever.retrieve("find")
    assert again.retrieve("find") == nodes
    assert {type(each.node) for each in nodes} >= {TextNode, Paragraph, IndexNode}


def test_a_loaded_retriever_can_be_changed_and_saved_again(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    again = saved(BM25Retriever.from_defaults(nodes=nodes), tmp_path)
    again.add_nodes([node("ox", "an ox and a cow", year=2000)])
    again.delete_ref_doc("pets")
    assert [each.node.node_id for each in saved(again, tmp_path).retrieve("cow ox")] == [
        "ox",
        "cow",
    ]


def test_a_retriever_can_be_pickled_and_copied(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=3, filters=FILTERS)
    expected = retriever.retrieve("cats grass")
    for other in (pickle.loads(pickle.dumps(retriever)), copy.deepcopy(retriever)):
        assert other.retrieve("cats grass") == expected
        other.delete_nodes(["dog", "cat"])
        assert other.retrieve("cats grass") == []
    assert retriever.retrieve("cats grass") == expected


def test_an_empty_retriever_is_restored(tmp_path: Path) -> None:
    assert saved(BM25Retriever([], language="de"), tmp_path).retrieve("x") == []


def test_a_stemmer_like_no_algorithm_cannot_be_saved(tmp_path: Path) -> None:
    retriever = BM25Retriever([node("a", "cats")], stemmer=lambda word: word[:3])
    with pytest.raises(ValueError, match="stemmer cannot be saved"):
        retriever.persist(tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_tokenizer_must_be_given_again(tmp_path: Path) -> None:
    retriever = BM25Retriever([node("a", "x-y")], tokenizer=str.split)
    assert len(saved(retriever, tmp_path, tokenizer=str.split).retrieve("x-y")) == 1
    with pytest.raises(TokenizerRequiredError, match="tokenizer="):
        BM25Retriever.from_persist_dir(tmp_path)


def test_objects_must_be_given_again(nodes: list[TextNode], tmp_path: Path) -> None:
    inner = BM25Retriever.from_defaults(nodes=nodes)
    about = IndexNode(index_id="animals", text="cats", obj=inner)
    outer = BM25Retriever.from_defaults(nodes=[about])
    for more in ({"objects": [about]}, {"object_map": {"animals": inner}}):
        assert saved(outer, tmp_path, **more).retrieve("cats") == inner.retrieve("cats")
    with pytest.raises(ValueError, match=r"index nodes \['animals'\] were not saved"):
        BM25Retriever.from_persist_dir(tmp_path)


# --- folders of others -----------------------------------------------------------------


def test_a_folder_of_the_existing_package_is_recognised(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    existing = pytest.importorskip("llama_index.retrievers.bm25")
    existing.BM25Retriever.from_defaults(nodes=nodes).persist(str(tmp_path))
    check_folder_of_the_existing_package(tmp_path, nodes)


def test_its_files_are_recognised_without_it(nodes: list[TextNode], tmp_path: Path) -> None:
    for name in (
        "corpus.jsonl",
        "corpus.mmindex.json",
        "data.csc.index.npy",
        "indices.csc.index.npy",
        "indptr.csc.index.npy",
        "params.index.json",
        "vocab.index.json",
    ):
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / "retriever.json").write_text('{"similarity_top_k": 2, "verbose": false}')
    check_folder_of_the_existing_package(tmp_path, nodes)


def check_folder_of_the_existing_package(folder: Path, nodes: list[TextNode]) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(NotAnIndexError, match="written by llama-index-retrievers-bm25, which"):
        BM25Retriever.from_persist_dir(folder)
    with pytest.raises(NotAnIndexError, match="not empty"):
        BM25Retriever(nodes).persist(folder)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("name", ["nothing", "empty", "file"])
def test_a_folder_without_a_retriever_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotAnIndexError, match=f"{name} holds no bm25rag index"):
        BM25Retriever.from_persist_dir(tmp_path / name)


def test_an_index_of_the_core_is_told_from_a_retriever(tmp_path: Path) -> None:
    BM25Index.from_texts(["a cat"]).save(tmp_path)
    with pytest.raises(NotAnIndexError, match=r"not written by persist\(\).*existing_bm25="):
        BM25Retriever.from_persist_dir(tmp_path)
    retriever = BM25Retriever(existing_bm25=BM25Index.open(tmp_path))
    assert [each.node.text for each in retriever.retrieve("cats")] == ["a cat"]
    with pytest.raises(ReadOnlyError):
        retriever.add_nodes([node("a", "x")])


@pytest.mark.parametrize("settings", ["", [], {}, {"similarity_top_k": "x"}], ids=repr)
def test_wrong_settings_are_named(nodes: list[TextNode], tmp_path: Path, settings: Any) -> None:
    BM25Retriever(nodes).persist(tmp_path)
    BM25Index.open(tmp_path).save(tmp_path, extra={"llama_index": settings})
    with pytest.raises(CorruptIndexError, match=r"wrong settings at llama_index"):
        BM25Retriever.from_persist_dir(tmp_path)


def test_index_and_settings_are_one_commit(nodes: list[TextNode], tmp_path: Path) -> None:
    """A reader never sees the settings of one save with the nodes of another."""
    retriever = BM25Retriever(nodes, similarity_top_k=3)
    retriever.persist(tmp_path)
    retriever.similarity_top_k = 5
    retriever._verbose = object()  # type: ignore[assignment]  # cannot be saved
    retriever.delete_nodes(["cat"])
    with pytest.raises(ValueError, match="verbose"):
        retriever.persist(tmp_path)
    again = BM25Retriever.from_persist_dir(tmp_path)
    assert (again.similarity_top_k, len(again.bm25)) == (3, len(nodes))


def test_what_others_keep_with_the_index_stays(nodes: list[TextNode], tmp_path: Path) -> None:
    BM25Index().save(tmp_path, extra={"mine": [1]})
    retriever = BM25Retriever(nodes, existing_bm25=copy.copy(BM25Index.open(tmp_path)))
    retriever.persist(tmp_path)
    assert BM25Index.open(tmp_path).extra["mine"] == [1]
    saved(retriever, tmp_path).persist(tmp_path)
    assert BM25Index.open(tmp_path).extra["mine"] == [1]


def test_nothing_but_an_index_is_written(nodes: list[TextNode], tmp_path: Path) -> None:
    """No file of this adapter's own."""
    BM25Index.from_texts(["a cat"]).save(tmp_path / "core")
    saved(BM25Retriever(nodes), tmp_path / "ours").persist(tmp_path / "ours")
    kinds = [
        sorted(path.suffix or path.name for path in (tmp_path / name).iterdir())
        for name in ("core", "ours")
    ]
    assert kinds[0] == kinds[1]


# --- saving again -------------------------------------------------------------------------


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Return name, size and time of writing of the files that hold documents."""
    stats = {path.name: path.stat() for path in folder.glob("*.bin")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def test_persist_after_one_more_node_writes_only_what_is_new(tmp_path: Path) -> None:
    many = [node(str(n), f"word{n} " + "filler " * 700) for n in range(1000)]
    retriever = BM25Retriever(many)
    retriever.persist(tmp_path)
    for name in ("one", "two"):  # in the process that made it, and in one that has loaded it
        before = files(tmp_path)
        retriever.add_nodes([node(name, f"a cat named {name}")])
        retriever.persist(tmp_path)
        new = files(tmp_path).items() - before.items()
        assert 0 < sum(size for _, (size, _) in new) < 20_000
        retriever = BM25Retriever.from_persist_dir(tmp_path)
        assert retriever.retrieve(f"cat {name}")[0].node_id == name
        assert len(retriever) == len(many) + (1 if name == "one" else 2)


def test_a_url_is_persisted_to_and_loaded(
    nodes: list[TextNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BM25RAG_CACHE", str(tmp_path))
    url = "memory://llamaindex/saved"
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=3)
    retriever.persist(url)
    again = BM25Retriever.from_persist_dir(url)
    assert again.retrieve("cats grass") == retriever.retrieve("cats grass")
    again.persist(url)
    with pytest.raises(NotAnIndexError, match="memory://llamaindex/nothing holds no bm25rag index"):
        BM25Retriever.from_persist_dir("memory://llamaindex/nothing")


def test_a_folder_of_shards_is_loaded_and_written_like_any_other(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    retriever = BM25Retriever(nodes)
    retriever.persist(tmp_path / "plain")
    saved = BM25Index.open(tmp_path / "plain")
    stored = saved.get(saved.ids())
    BM25Index.build(stored, tmp_path / "it", shards=3, analyzer=saved.analyzer, extra=saved.extra)
    loaded = BM25Retriever.from_persist_dir(tmp_path / "it")
    assert loaded.retrieve("cats") == retriever.retrieve("cats")
    loaded.add_nodes([node("more", "Another cat.")])  # in memory
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        BM25Retriever(existing_bm25=writer).add_nodes([node("zebra", "A zebra.")])
    reader = BM25Retriever(existing_bm25=BM25Index.open(tmp_path / "it"))
    assert [scored.node_id for scored in reader.retrieve("zebra")] == ["zebra"]

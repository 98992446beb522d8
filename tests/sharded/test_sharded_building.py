"""A build reads any iterable once, refuses what is wrong, and goes on where it was killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.errors import NotAnIndexError, StorageError, TokenizerRequiredError
from bm25rag.live.index import LiveIndex
from bm25rag.open_shard import open_shard
from bm25rag.storage.manifest import read_sharded
from support.building import documents, documents_of_shards
from support.cases import first
from support.folders import no_leftovers
from support.killing import Killed

pytestmark = pytest.mark.usefixtures("small_parts")


def test_shards_hold_consecutive_documents_as_many_each_or_one_more(tmp_path: Path) -> None:
    index = BM25Index.build(documents(), tmp_path / "it", shards=7)
    assert documents_of_shards(tmp_path / "it") == [5, 6, 6, 5, 6, 6, 6]
    assert index.ids() == [f"d{number}" for number in range(40)]
    shards = [open_shard(tmp_path / "it", number) for number in range(7)]
    assert [shard.first_row for shard in shards] == [0, 5, 11, 17, 22, 28, 34]
    assert [id for shard in shards for id in shard.searcher.ids()] == index.ids()
    assert no_leftovers(tmp_path / "it")


def test_where_there_are_no_links_files_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr("os.link", refuse)
    BM25Index.build(documents(), tmp_path / "it", shards=3)
    BM25Index.verify(tmp_path / "it")
    assert no_leftovers(tmp_path / "it")


def test_texts_get_decimal_ids_and_terms_are_taken_as_they_are(tmp_path: Path) -> None:
    index = BM25Index.build(iter(["a boat", ["The", "sea"], "the sea"]), tmp_path / "it", shards=2)
    assert index.ids() == ["0", "1", "2"]
    assert [hit.id for hit in index.search(["The"])] == ["1"]
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        assert writer.add(["more"]) == ["3"]


def test_settings_and_extra_are_kept(tmp_path: Path) -> None:
    index = BM25Index.build(
        documents(),
        tmp_path / "it",
        shards=3,
        variant="bm25+",
        k1=0.9,
        analyzer=Analyzer("german"),
        extra={"of": "mine"},
        store_text=False,
    )
    assert (index.variant, index.k1, index.analyzer.language) == ("bm25+", 0.9, "german")
    assert index.extra == {"of": "mine"}
    assert index.search("boat")[0].text is None
    assert index.search("boat")[0].metadata == {"n": 0}
    assert index.search("boat")[0].payload == b"\0"


def test_a_tokenizer_must_be_given_again(tmp_path: Path) -> None:
    analyzer = Analyzer(tokenizer=str.split)
    assert len(BM25Index.build(documents(), tmp_path / "it", shards=2, analyzer=analyzer)) == 40
    with pytest.raises(TokenizerRequiredError):
        BM25Index.open(tmp_path / "it")
    BM25Index.verify(tmp_path / "it")
    opened = open_shard(tmp_path / "it", 1, tokenizer=str.split)
    assert opened.searcher.search("word39")[0].id == "d39"


def test_there_may_be_more_shards_than_documents(tmp_path: Path) -> None:
    for count in (0, 1, 3):
        index = BM25Index.build(documents(count), tmp_path / str(count), shards=16)
        assert index.ids() == [f"d{number}" for number in range(count)]
        assert len(index.search("boat")) == count
        BM25Index.verify(tmp_path / str(count))


# -- interrupted builds ----------------------------------------------------------------------------


def test_a_build_does_not_do_again_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed = []
    analyse = LiveIndex.add

    def counting(self: LiveIndex, *args: Any, wants_ids: bool) -> list[str]:
        analysed.extend(analyse(self, *args))
        return []

    monkeypatch.setattr(LiveIndex, "add", counting)

    def failing() -> Iterator[Document]:
        yield from documents(25)
        raise Killed

    with pytest.raises(Killed):
        BM25Index.build(failing(), tmp_path / "it", shards=3)
    first = len(analysed)
    assert 0 < first <= 25
    BM25Index.build(documents(), tmp_path / "it", shards=3)
    assert analysed == [f"d{number}" for number in range(40)]


@pytest.mark.parametrize(
    ("change", "message"),
    first(
        2,
        [
            ({"documents": documents(10)}, "documents are not those"),
            ({"documents": reversed(list(documents()))}, "documents are not those"),
            ({"documents": (one.text for one in documents())}, "documents are not those"),
            ({"k1": 2.0}, "settings are not those"),
            ({"analyzer": Analyzer("german")}, "settings are not those"),
            ({"shards": 4}, "settings are not those"),
            ({"store_text": False}, "settings are not those"),
            ({"on_duplicate": "skip"}, "settings are not those"),
        ],
    ),
)
def test_another_build_does_not_go_on_with_an_interrupted_one(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    def failing() -> Iterator[Document]:
        yield from documents(35)
        raise Killed

    with pytest.raises(Killed):
        BM25Index.build(failing(), tmp_path / "it", shards=3)
    given = {"documents": documents(), "folder": tmp_path / "it", "shards": 3} | change
    with pytest.raises(ValueError, match=message) as raised:
        BM25Index.build(**given)
    assert f"remove {tmp_path / 'it' / 'building'} to begin anew" in str(raised.value)
    shutil.rmtree(tmp_path / "it" / "building")
    BM25Index.build(documents(5), tmp_path / "it", shards=2)


@pytest.mark.usefixtures("one_part")
def test_shards_of_documents_that_were_all_in_memory_are_not_mixed_with_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No receipt says which documents they were, so nothing refuses others."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("bm25rag.building.shards.publish", killed)
        with pytest.raises(Killed):
            BM25Index.build(documents(), tmp_path / "it", shards=3)
    others = [Document(f"e{number}", "another") for number in range(40)]
    index = BM25Index.build(others, tmp_path / "it", shards=3)
    assert index.ids() == [one.id for one in others]


def test_a_missing_folder_and_a_plain_index_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotAnIndexError, match=r"there is no manifest\.json"):
        read_sharded(str(tmp_path / "nothing"))
    BM25Index.from_texts(["a"]).save(tmp_path / "plain")
    with pytest.raises(NotAnIndexError, match=r"is not sharded: use BM25Index\.open"):
        open_shard(tmp_path / "plain", 0)
    with pytest.raises(StorageError):
        BM25Index.from_texts(["a"]).save(
            BM25Index.build(["a"], tmp_path / "it", shards=1)._live.attachment.folder
        )

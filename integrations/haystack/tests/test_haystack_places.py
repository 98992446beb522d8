"""Where a store keeps its documents, and the settings that it keeps with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from haystack import Document
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import CorruptIndexError, NotAnIndexError, ReadOnlyError, TokenizerRequiredError

OLD, NEW, OTHER = (Document(id=id, content=text) for id, text in ["1a", "1b", "2c"])


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


def test_a_callable_tokenizer_works_and_is_shared_by_the_stores_of_a_folder(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, analyzer=Analyzer(tokenizer=str.split))
    store.write_documents([Document(content="C++ is_it")])
    again = BM25DocumentStore(tmp_path)
    assert len(again.bm25_retrieval("C++")) == 1
    with pytest.raises(ValueError, match=r"analyzer is Analyzer.*made with Analyzer"):
        BM25DocumentStore(tmp_path, analyzer=Analyzer(tokenizer=str.splitlines))
    assert len(store.bm25_retrieval("C++")) == 1


def test_a_folder_that_needs_a_tokenizer_says_how_a_store_gets_it(tmp_path: Path) -> None:
    BM25DocumentStore(tmp_path, analyzer=Analyzer(tokenizer=str.split))
    with pytest.raises(TokenizerRequiredError, match=r"analyzer=Analyzer\(tokenizer=\.\.\.\)"):
        BM25DocumentStore(tmp_path)
    BM25DocumentStore(tmp_path, analyzer=Analyzer(tokenizer=str.split))


def test_a_tokenizer_for_a_folder_without_one_is_refused_by_name(tmp_path: Path) -> None:
    BM25DocumentStore(tmp_path)
    with pytest.raises(ValueError, match=r"analyzer is Analyzer\(tokenizer=.*made with Analyzer"):
        BM25DocumentStore(tmp_path, analyzer=Analyzer(tokenizer=str.split))


def test_stores_in_memory_share_documents_by_name_alone() -> None:
    one, other = BM25DocumentStore(index="shared"), BM25DocumentStore(index="shared")
    one.write_documents([OLD])
    assert other.count_documents() == 1
    assert BM25DocumentStore().count_documents() == 0
    del one, other
    assert BM25DocumentStore(index="shared").count_documents() == 0


def test_a_folder_is_opened_again_with_its_settings(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path / "new" / "index", analyzer=Analyzer("german"), k1=2)
    store.write_documents([Document(id="1", content="Häuser")])
    del store
    again = BM25DocumentStore(str(tmp_path / "new" / "index"))
    assert ids(again.bm25_retrieval("Haus")) == ["1"]
    index = BM25Index.open(tmp_path / "new" / "index")
    assert (index.k1, index.analyzer.language, index.ids()) == (2, "german", ["1"])


def test_other_settings_than_the_folders_are_refused_by_name(tmp_path: Path) -> None:
    BM25DocumentStore(tmp_path)
    with pytest.raises(ValueError, match=r"k1 is 2\.0, but the index in .* was made with 1\.2"):
        BM25DocumentStore(tmp_path, k1=2.0)
    with pytest.raises(ValueError, match="analyzer is Analyzer"):
        BM25DocumentStore(tmp_path, analyzer=Analyzer("german"))
    BM25DocumentStore(tmp_path, k1=1.2, analyzer=Analyzer())


def test_a_path_that_begins_with_a_tilde_is_in_ones_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    store = BM25DocumentStore("~/documents")
    store.write_documents([OLD])
    assert store.path == tmp_path / "documents"
    assert BM25DocumentStore(tmp_path / "documents").filter_documents() == [OLD]
    data = store.to_dict()
    assert data["init_parameters"]["path"] == "~/documents"  # and so in another's home, too
    assert BM25DocumentStore.from_dict(data).filter_documents() == [OLD]


def test_a_local_url_is_the_folder_that_it_names(tmp_path: Path) -> None:
    url = (tmp_path / "one here").as_uri()
    store = BM25DocumentStore(url)
    store.write_documents([OLD])
    assert store.path == (tmp_path / "one here").resolve()
    assert BM25DocumentStore(tmp_path / "one here").filter_documents() == [OLD]
    assert BM25DocumentStore.from_dict(store.to_dict()).filter_documents() == [OLD]


def test_stores_of_the_same_folder_see_each_others_writes(tmp_path: Path) -> None:
    one, other = BM25DocumentStore(tmp_path), BM25DocumentStore(tmp_path / "." / "")
    one.write_documents([OLD])
    assert other.filter_documents() == [OLD]
    other.delete_all_documents()
    assert one.count_documents() == 0


def test_a_damaged_folder_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    BM25DocumentStore(tmp_path).write_documents([OLD])
    for file in tmp_path.iterdir():
        if file.is_file() and file.stat().st_size:
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(CorruptIndexError, match=str(tmp_path.name)):
        BM25DocumentStore(tmp_path)


def test_places_and_parameters_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="index names documents in memory"):
        BM25DocumentStore(tmp_path, index="name")
    with pytest.raises(TypeError, match="index must be a str or None, got int"):
        BM25DocumentStore(index=3)
    with pytest.raises(ValueError, match=r"path of an index must not be empty, .*got ''"):
        BM25DocumentStore("")
    with pytest.raises(TypeError, match="lock_timeout must be a number >= 0, got '5'"):
        BM25DocumentStore(tmp_path, lock_timeout="5")
    with pytest.raises(ValueError, match="lock_timeout must be a number >= 0, got -1"):
        BM25DocumentStore(tmp_path, lock_timeout=-1)
    with pytest.raises(TypeError, match="return_embedding must be True or False, got 'no'"):
        BM25DocumentStore(return_embedding="no")
    with pytest.raises(TypeError, match="path of an index must be a str or a Path, got 5"):
        BM25DocumentStore(5)
    for analyzer in ("german", {"language": "german"}):
        with pytest.raises(
            TypeError, match=r"analyzer must .*: write, for example, Analyzer.*in YAML, analyzer"
        ):
            BM25DocumentStore(analyzer=analyzer)
    with pytest.raises(ValueError, match="variant"):
        BM25DocumentStore(tmp_path / "new", variant="BM25Okapi")
    assert not (tmp_path / "new").exists()


def test_a_url_is_read_at_the_commit_that_was_the_last_when_a_store_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BM25RAG_CACHE", str(tmp_path / "cache"))
    url = "memory://haystack/saved"
    with pytest.raises(NotAnIndexError, match=url):
        BM25DocumentStore(url)
    BM25DocumentStore(tmp_path / "folder").write_documents([OLD])
    BM25Index.open(tmp_path / "folder").tune().save(url)
    store = BM25DocumentStore(url)
    assert store.filter_documents() == [OLD]
    with pytest.raises(ReadOnlyError, match="folder of this machine"):
        store.write_documents([OTHER])
    BM25DocumentStore(tmp_path / "folder").write_documents([OTHER])
    BM25Index.open(tmp_path / "folder").tune().save(url)
    assert store.filter_documents() == [OLD]
    assert ids(BM25DocumentStore.from_dict(store.to_dict()).filter_documents()) == ["1", "2"]
    with pytest.raises(ValueError, match="a URL is a path"):
        BM25DocumentStore(index=url)


def test_a_folder_of_shards_is_opened_like_any_other(
    tmp_path: Path, documents: list[Document]
) -> None:
    plain = BM25DocumentStore(tmp_path / "plain")
    plain.write_documents(documents)
    index = BM25Index.open(tmp_path / "plain")
    BM25Index.build(index.get(index.ids()), tmp_path / "it", shards=3)
    store = BM25DocumentStore(tmp_path / "it")
    assert store.bm25_retrieval("the cat") == plain.bm25_retrieval("the cat")
    store.write_documents([NEW])
    store.delete_documents(["dog"])
    assert BM25Index.open(tmp_path / "it").ids() == ["cat", "hund", "fish", "1"]

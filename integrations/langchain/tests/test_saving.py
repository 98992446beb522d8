"""Saving and opening: one writer, readers that follow, and nothing lost in silence."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import ids
from langchain_bm25rag import BM25DocumentIndex, BM25Retriever
from langchain_core.documents import Document
from pydantic import ValidationError

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import (
    LockedError,
    NotAnIndexError,
    ReadOnlyError,
    StorageError,
    TokenizerRequiredError,
    UncommittedWarning,
    UntrustedIndexError,
)

OWL = Document("An owl hoots.", id="owl")


@pytest.fixture
def folder(retriever: BM25Retriever, tmp_path: Path) -> Path:
    retriever.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_a_saved_retriever_opens_to_the_same_answers(
    retriever: BM25Retriever, folder: Path
) -> None:
    """Documents, analyzer and parameters are saved; fields of the retriever are given again."""
    for mmap in (True, False):
        again = BM25Retriever.open(folder, mmap=mmap, verify=True, k=4)
        assert again.invoke("cats") == retriever.invoke("cats")
    assert len(BM25Retriever.open(str(folder), k=1).invoke("cats")) == 1


def test_a_callable_analysis_must_be_given_again(tmp_path: Path) -> None:
    BM25Retriever.from_texts(["Red Fish"], preprocess_func=str.split).save(tmp_path)
    with pytest.raises(TokenizerRequiredError, match="tokenizer="):
        BM25Retriever.open(tmp_path)
    split = Analyzer(tokenizer=str.split)
    for again in ({"tokenizer": str.split}, {"analyzer": split}):
        assert len(BM25Retriever.open(tmp_path, **again).invoke("Fish")) == 1


def test_a_path_may_begin_in_the_home(
    retriever: BM25Retriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    retriever.save("~/notes")
    assert BM25Retriever.open(tmp_path / "notes").invoke("cats") == retriever.invoke("cats")
    assert BM25Retriever.open("~/notes").invoke("cats") == retriever.invoke("cats")


# --- writing ----------------------------------------------------------------------


@pytest.mark.parametrize("cls", [BM25Retriever, BM25DocumentIndex])
def test_with_commits_at_the_end_and_gives_up_the_lock(folder: Path, cls: Any) -> None:
    with cls.open(folder, mode="w", k=7) as writer:
        assert (type(writer), writer.k) == (cls, 7)
        BM25Retriever.from_index(writer.index).add_documents([OWL])
        assert cls.open(folder).invoke("owl") == []
        with pytest.raises(LockedError, match=r"after 0\.05 seconds"):
            cls.open(folder, mode="w", timeout=0.05)
    assert cls.open(folder).invoke("owl") == [OWL]
    assert writer.invoke("owl") == [OWL]
    with cls.open(folder, mode="w"):
        pass


def test_an_error_inside_with_leaves_the_last_commit(folder: Path) -> None:
    """The error is the caller's, and the folder is free again."""

    def write() -> None:
        with BM25Retriever.open(folder, mode="w") as writer:
            writer.add_documents([OWL])
            writer.commit()
            writer.delete(["cat", "owl"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    with BM25Retriever.open(folder, mode="w") as again:
        assert ids(again.get_by_ids(["cat", "owl"])) == ["cat", "owl"]


def test_commit_makes_durable_and_close_warns_of_what_it_loses(folder: Path) -> None:
    writer = BM25Retriever.open(folder, mode="w")
    writer.add_documents([OWL])
    writer.commit()
    assert BM25Retriever.open(folder).invoke("owl") == [OWL]
    writer.delete(["owl"])
    with pytest.warns(UncommittedWarning, match=r"call commit\(\)"):
        writer.close()
    assert BM25Retriever.open(folder).invoke("owl") == [OWL]
    with pytest.raises(ReadOnlyError):
        writer.add_documents([OWL])


def test_a_reader_goes_to_the_last_commit_when_it_is_told_to(folder: Path) -> None:
    reader = BM25Retriever.open(folder)
    store = BM25DocumentIndex.from_index(reader.index)
    assert reader.refresh() is False
    with BM25Retriever.open(folder, mode="w") as writer:
        writer.add_documents([OWL])
    assert reader.invoke("owl") == store.invoke("owl") == []
    assert reader.refresh() is True
    assert reader.invoke("owl") == store.invoke("owl") == [OWL]


def test_what_cannot_commit_or_refresh_says_why(retriever: BM25Retriever, folder: Path) -> None:
    reader = BM25Retriever.open(folder)
    for one in (retriever, reader):
        with pytest.raises(ReadOnlyError, match=r"mode='[rw]'"):
            one.commit()
        with one:
            pass
        one.close()
        assert len(one.invoke("cats")) == 3
    with pytest.raises(ReadOnlyError):
        reader.add_documents([OWL])
    with BM25Retriever.open(folder, mode="w") as writer:
        for one in (retriever, writer):
            with pytest.raises(StorageError, match="mode='r'"):
                one.refresh()


async def test_saving_and_its_kin_leave_the_event_loop_free(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for name in ("save", "commit", "refresh"):
        done = getattr(BM25Index, name)

        def noted(*args: Any, name: str = name, done: Any = done) -> Any:
            seen.append((name, threading.current_thread() is threading.main_thread()))
            return done(*args)

        monkeypatch.setattr(BM25Index, name, noted)
    reader = BM25Retriever.open(folder)
    with BM25Retriever.open(folder, mode="w") as writer:
        await writer.aadd_documents([OWL])
        await writer.acommit()
        assert await reader.arefresh()
        await reader.asave(tmp_path / "copy")
        assert seen == [("commit", False), ("refresh", False), ("save", False)]
    assert await BM25Retriever.open(tmp_path / "copy").ainvoke("owl") == [OWL]


# --- a new folder -----------------------------------------------------------------


@pytest.mark.parametrize("cls", [BM25Retriever, BM25DocumentIndex])
def test_opening_a_new_folder_to_write_makes_an_index(tmp_path: Path, cls: Any) -> None:
    """With the settings given, at once, so that a reader can open it."""
    made = {"analyzer": Analyzer("german"), "bm25_params": {"variant": "bm25+", "b": 0.3}}
    with cls.open(tmp_path / "a" / "new", mode="w", k=2, **made) as writer:
        assert len(cls.open(tmp_path / "a" / "new").index) == 0
        BM25Retriever.from_index(writer.index).add_documents([Document("Häuser", id="1")])
    reader = cls.open(tmp_path / "a" / "new", mode="r", **made)
    assert ids(reader.invoke("Haus")) == ["1"]
    assert (reader.index.variant, reader.index.b, reader.index.delta) == ("bm25+", 0.3, 1.0)


def test_a_folder_that_is_no_index_is_left_alone(tmp_path: Path) -> None:
    """Missing, to read; with other files, in any mode; a file."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear owl")
    for path, mode in (("missing", "r"), ("full", "r"), ("full", "w"), ("full/letter.txt", "w")):
        with pytest.raises(NotAnIndexError):
            BM25Retriever.open(tmp_path / path, mode=mode)  # type: ignore[arg-type]
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "full", tmp_path / "full" / "letter.txt"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"analyzer": Analyzer("german")}, r"analyzer is .*german.* was made with .*english"),
        ({"bm25_params": {"k1": 0.9}}, r"k1 is 0.9, but .* was made with 1.2: leave k1 out"),
        ({"bm25_params": {"variant": "bm25+", "delta": 1}}, r"variant is 'bm25\+', but"),
    ],
)
@pytest.mark.parametrize("mode", ["r", "w"])
def test_other_settings_than_those_of_the_index_are_refused(
    folder: Path, given: dict[str, Any], words: str, mode: Any
) -> None:
    with pytest.raises(ValueError, match=words):
        BM25Retriever.open(folder, mode=mode, **given)
    same = {"analyzer": Analyzer(), "bm25_params": {"k1": 1.2, "variant": "lucene"}}
    with BM25Retriever.open(folder, mode=mode, **same) as opened:
        assert len(opened.invoke("cats")) == 3


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"top_k": 3}, ValidationError),
        ({"k": "3"}, TypeError),
        ({"bm25_params": {"b": 0.1}}, ValueError),
        ({"analyzer": "german"}, TypeError),
        ({"tokenizer": "split"}, TypeError),
    ],
)
def test_a_refused_argument_does_not_leave_the_folder_locked(
    folder: Path, given: dict[str, Any], error: type[Exception]
) -> None:
    """Even while the error, and with it the frames of its traceback, is kept."""
    with pytest.raises(error) as kept:
        BM25Retriever.open(folder, mode="w", **given)
    with BM25Retriever.open(folder, mode="w"):
        assert kept.value is not None


def test_a_strangers_folder_is_opened_as_such(tmp_path: Path) -> None:
    BM25Retriever.from_texts(["cat"], analyzer=Analyzer(token_pattern=r"\S+")).save(tmp_path)
    with pytest.raises(UntrustedIndexError):
        BM25Retriever.open(tmp_path, untrusted=True)


def test_a_url_is_saved_to_and_opened(
    retriever: BM25Retriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer commit is fetched by ``refresh``; nothing can lock a URL, so none opens to write."""
    monkeypatch.setenv("BM25RAG_CACHE", str(tmp_path))
    url = "memory://langchain/saved"
    retriever.save(url)
    again = BM25Retriever.open(url)
    assert again.invoke("cats") == retriever.invoke("cats")
    retriever.add_documents([OWL])
    retriever.save(url)
    assert again.refresh()
    assert ids(again.invoke("owl")) == ["owl"]
    with pytest.raises(ReadOnlyError, match="folder of this machine"):
        BM25DocumentIndex.open(url, mode="w")


def test_a_folder_of_shards_is_opened_like_any_other(
    retriever: BM25Retriever, tmp_path: Path
) -> None:
    BM25Index.build(retriever.index.get(retriever.index.ids()), tmp_path / "it", shards=3)
    with BM25Retriever.open(tmp_path / "it", mode="w") as writer:
        assert writer.batch(["cats", "bird"]) == retriever.batch(["cats", "bird"])
        writer.add_documents([OWL])
    assert BM25Retriever.open(tmp_path / "it").invoke("owl") == [OWL]

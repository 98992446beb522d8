"""What users reported of LangChain's older BM25 retriever; numbers are its issues and requests."""

from __future__ import annotations

from pathlib import Path

from conftest import ids
from langchain_bm25rag import BM25Retriever
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField

TEXTS = ["I like apples", "I like oranges", "Apples and oranges are fruits"]


def test_16445_results_have_a_score() -> None:
    """In descending order, so that a user can apply a threshold."""
    found = BM25Retriever.from_texts(TEXTS, score_key="score").invoke("apples fruit")
    scores = [one.metadata["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 2


def test_18954_k_per_call() -> None:
    retriever = BM25Retriever.from_texts(TEXTS, k=2)
    assert [len(retriever.invoke("apples oranges", k=k)) for k in (1, 2, 3)] == [1, 2, 3]


def test_20466_one_metadata_dict_for_all_texts_in_an_ensemble() -> None:
    retriever = BM25Retriever.from_texts(TEXTS, metadatas=[{"source": 1}] * len(TEXTS))
    ensemble = EnsembleRetriever(retrievers=[retriever, retriever], weights=[0.5, 0.5])
    found = ensemble.invoke("apples")
    found[0].metadata["source"] = 2
    assert [one.metadata["source"] for one in found] == [2, 1]
    assert all(one.metadata["source"] == 1 for one in retriever.invoke("apples"))


def test_27019_ids_are_preserved() -> None:
    documents = [Document(text, id=str(n)) for n, text in enumerate(TEXTS)]
    assert ids(BM25Retriever.from_documents(documents).invoke("fruits")) == ["2"]
    assert ids(BM25Retriever.from_texts(TEXTS, ids=list("abc")).invoke("fruits")) == ["c"]


def test_27071_saving_without_pickle(tmp_path: Path) -> None:
    retriever = BM25Retriever.from_texts(TEXTS, ids=list("abc"))
    retriever.save(tmp_path / "saved")
    assert not list((tmp_path / "saved").rglob("*.pkl"))
    assert BM25Retriever.open(tmp_path / "saved").invoke("apples") == retriever.invoke("apples")


def test_16896_of_open_webui_an_empty_collection() -> None:
    for empty in (BM25Retriever.from_texts([]), BM25Retriever.from_texts(["", "..."])):
        assert EnsembleRetriever(retrievers=[empty]).invoke("apples") == []


def test_22950_fusing_by_id_and_not_by_text() -> None:
    english = BM25Retriever.from_texts(["an apple"], ids=["1"], id_key="id")
    german = BM25Retriever.from_texts(["ein Apfel: apple"], ids=["1"], id_key="id")
    assert len(EnsembleRetriever(retrievers=[english, german], id_key="id").invoke("apple")) == 1


def test_15917_configuration_passes_through_an_ensemble() -> None:
    field = ConfigurableField(id="bm25_k")
    configurable = BM25Retriever.from_texts(TEXTS).configurable_fields(k=field)
    ensemble = EnsembleRetriever(retrievers=[configurable])
    assert [spec.id for spec in ensemble.config_specs] == ["bm25_k"]
    assert len(ensemble.with_config(configurable={"bm25_k": 1}).invoke("apples")) == 1


def test_chinese_japanese_and_korean_need_no_preprocessing() -> None:
    """The community class took a whole sentence for a word."""
    retriever = BM25Retriever.from_texts(
        ["我喜欢自然语言处理", "自然很美", "東京の天気", "한국어 검색"]
    )
    assert len(retriever.invoke("语言处理")) == 1
    assert len(retriever.invoke("天気")) == 1
    assert len(retriever.invoke("검색")) == 1


def test_documents_are_added_without_a_rebuild() -> None:
    retriever = BM25Retriever.from_texts(TEXTS[:2], ids=["a", "b"])
    retriever.add_documents([Document(TEXTS[2], id="c")])
    afresh = BM25Retriever.from_texts(TEXTS, ids=["a", "b", "c"])
    assert retriever.invoke("apples") == afresh.invoke("apples")

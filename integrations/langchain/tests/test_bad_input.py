"""Bad input: the right answer, or one error that names the thing."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from conftest import ids
from langchain_bm25rag import BM25DocumentIndex, BM25Retriever, BM25VectorStore
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from pydantic import ValidationError

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import MetadataError


def frame() -> Any:
    """Return what looks like a data frame: it has columns, and yields their names."""

    class Frame(list[str]):
        columns = ("text",)

    return Frame(["text"])


@pytest.mark.parametrize("query", ["", "   ", "the", "zebra", "?!", "\x00", "\ud800"])
def test_without_a_match_the_answer_is_empty(retriever: BM25Retriever, query: str) -> None:
    """Nothing matches, the query is empty or of stop words: an empty list."""
    assert retriever.invoke(query) == []


@pytest.mark.parametrize(
    "retriever",
    [
        BM25Retriever.from_documents([]),
        BM25Retriever.from_texts([]),
        BM25Retriever.from_texts([], metadatas=[], ids=[]),
        BM25Retriever.from_texts(["", "the"]),
        BM25Retriever(),
    ],
)
def test_an_empty_corpus_answers_with_an_empty_list(retriever: BM25Retriever) -> None:
    """No ZeroDivisionError; documents can be added afterwards."""
    assert retriever.invoke("cat") == []
    retriever.add_documents([Document("cat", id="cat")])
    assert ids(retriever.invoke("cat")) == ["cat"]


@pytest.mark.parametrize("k", [0, 1, 2, 3, 100, np.int64(2)])
def test_k_documents_at_most(retriever: BM25Retriever, k: Any) -> None:
    """More than there are matches, zero and NumPy integers too."""
    assert len(retriever.invoke("cats", k=k)) == min(k, 3)
    assert len(BM25Retriever.from_index(retriever.index, k=k).invoke("cats")) == min(k, 3)


@pytest.mark.parametrize("k", [True, "2", -1])
def test_a_wrong_k_names_itself(retriever: BM25Retriever, k: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^k must be an integer >= 0, got "):
        retriever.invoke("cats", k=k)
    with pytest.raises((TypeError, ValueError), match="k must be an integer >= 0, got "):
        BM25Retriever(k=k)


@pytest.mark.parametrize(
    ("score", "error"), [("1", TypeError), (True, TypeError), (math.nan, ValueError)]
)
def test_a_bad_min_score_names_itself(
    retriever: BM25Retriever, score: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="min_score must be a number"):
        retriever.invoke("cats", min_score=score)
    with pytest.raises(error, match="min_score must be a number"):
        BM25Retriever(min_score=score)


def test_unknown_arguments_are_refused(retriever: BM25Retriever) -> None:
    """And not ignored: the community class ignored k per call."""
    words = r"^BM25Retriever takes k, filter and min_score for each call, got top_k;"
    with pytest.raises(TypeError, match=words):
        retriever.invoke("cats", top_k=1)
    with pytest.raises(TypeError, match=words):
        retriever.batch(["cats"], top_k=1)
    with pytest.raises(TypeError, match=words):
        asyncio.run(retriever.ainvoke("cats", top_k=1))
    with pytest.raises(TypeError, match=r"^BM25DocumentIndex takes k, filter and min_score"):
        BM25DocumentIndex(index=retriever.index).invoke("cats", top_k=1)
    with pytest.raises(ValidationError, match="top_k"):
        BM25Retriever(top_k=1)
    with pytest.raises(ValidationError, match="docs"):
        BM25Retriever(docs=[Document("cat")])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"language": "german"}, "language: give analyzer=Analyzer('german')"),
        ({"b": 0.5}, "b belongs into bm25_params, as in {'k1': 1.2"),
        ({"tokenizer": str.split}, "tokenizer: give the callable as preprocess_func"),
    ],
)
def test_what_other_classes_take_by_name_is_told_where_it_belongs(given: Any, words: str) -> None:
    for made in (BM25Retriever, BM25VectorStore):
        with pytest.raises((TypeError, ValidationError)) as caught:
            made.from_texts(["a cat"], **given)
        assert any(note.startswith(words) for note in caught.value.__notes__)


def test_langchains_own_keyword_is_let_through(retriever: BM25Retriever) -> None:
    assert retriever.invoke("cats", verbose=False) == retriever.invoke("cats")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (None, "got NoneType$"),
        (3, "got int$"),
        (b"cats", "got bytes$"),
        (HumanMessage("cats"), "got HumanMessage$"),
        ({"question": "cats"}, r"got dict: pick the text first, .* itemgetter\('question'\)"),
        (["cats", "dogs"], "got list: batch takes several queries$"),
    ],
)
def test_a_query_that_is_no_text_is_a_type_error(
    retriever: BM25Retriever, query: Any, words: str
) -> None:
    """As when a chain passes its whole input on; it says how to pick the text."""
    with pytest.raises(TypeError, match=rf"^query must be a str, {words}"):
        retriever.invoke(query)


@pytest.mark.parametrize("value", [None, 3, b"cat", ["cat"], Document("cat")])
def test_a_text_that_is_no_string_is_named_by_its_place(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^texts\[1\] must be a str, got "):
        BM25Retriever.from_texts(["a cat", value])


@pytest.mark.parametrize("value", [None, "cat", {"page_content": "cat"}])
def test_an_element_that_is_no_document_is_named_by_its_place(
    retriever: BM25Retriever, value: Any
) -> None:
    for add in (retriever.add_documents, BM25DocumentIndex(index=retriever.index).upsert):
        with pytest.raises(TypeError, match=r"^documents\[1\] must be a LangChain Document, got "):
            add([Document("an owl", id="owl"), value])
    assert retriever.invoke("owl") == []


@pytest.mark.parametrize("value", ["cat", b"cat", 3, None])
def test_a_bare_string_is_no_sequence(retriever: BM25Retriever, value: Any) -> None:
    with pytest.raises(TypeError, match=r"^texts must be an iterable of str"):
        BM25Retriever.from_texts(value)
    with pytest.raises(TypeError, match=r"^documents must be an iterable of Document"):
        BM25Retriever.from_documents(value)
    if value is not None:
        with pytest.raises(TypeError, match=r"^ids must be an iterable of str"):
            BM25Retriever.from_texts(["cat"], ids=value)
    for method in (retriever.delete, retriever.get_by_ids):
        with pytest.raises(TypeError, match=r"^ids must be an iterable"):
            method(value)


@pytest.mark.parametrize("id", [True, b"1", uuid4(), ["1"], math.nan, np.float64("nan")])
def test_an_id_that_is_neither_text_nor_number_is_named(id: Any) -> None:
    """By its place; NaN is a data frame's gap, and would make all such texts one document."""
    with pytest.raises(TypeError, match=r"^ids\[1\] must be a str, a number or None, got "):
        BM25Retriever.from_texts(["a", "b"], ids=["1", id])


@pytest.mark.parametrize("none", [[], (), np.array([])])
def test_empty_ids_and_metadatas_count_as_none_at_all(none: Any) -> None:
    retriever = BM25Retriever.from_texts(["cat one", "cat two"], none, none)
    assert [one.metadata for one in retriever.invoke("cat")] == [{}, {}]
    assert len(set(retriever.index.ids())) == 2


@pytest.mark.parametrize("count", [0, 1, 3])
def test_lengths_that_differ_are_a_value_error(count: int) -> None:
    got = "more than 2" if count > 2 else f"only {count}"
    with pytest.raises(ValueError, match=f"ids must have one element for each text, got {got}"):
        BM25Retriever.from_texts(["a", "b"], ids=(str(n) for n in range(count)))
    with pytest.raises(ValueError, match=f"metadatas must have one element .* got {got}"):
        BM25Retriever.from_texts(["a", "b"], metadatas=({} for _ in range(count)))


@pytest.mark.parametrize("value", [{"a cat": 1}, frame()])
def test_what_would_yield_its_keys_is_refused(retriever: BM25Retriever, value: Any) -> None:
    """A dict or a data frame is not a list of texts, ids or documents."""
    for call in (
        lambda: BM25Retriever.from_texts(value),
        lambda: BM25Retriever.from_texts(["cat"], ids=value),
        lambda: BM25Retriever.from_texts(["cat"], metadatas=value),
        lambda: retriever.add_documents(value),
    ):
        with pytest.raises(TypeError, match=r"must be an iterable of .* pick one column of it"):
            call()


@pytest.mark.parametrize("value", ["a", 3, [("a", 1)]])
def test_metadata_that_are_no_dict_are_named_by_their_place(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^metadatas\[1\] must be a dict or None, got "):
        BM25Retriever.from_texts(["a", "b"], [{}, value])


@pytest.mark.parametrize("value", [b"x", {1: "a"}, {1, 2}, timedelta(1), 1j])
def test_metadata_that_cannot_be_stored_names_document_and_key(
    retriever: BM25Retriever, value: Any
) -> None:
    bad = Document("an owl", id="bad one", metadata={"fine": 1, "a": {"b": value}})
    good = Document("an owl", id="good")
    index = BM25DocumentIndex(index=retriever.index)
    for add in (retriever.add_documents, index.upsert, BM25Retriever.from_documents):
        with pytest.raises(MetadataError, match=r"^documents\[1\]: .*'bad one' at 'a\.b"):
            add([good, bad])
    assert retriever.invoke("owl") == []


def test_metadata_of_texts_are_named_by_their_place() -> None:
    """The caller has never seen the UUID; the place is right in a long call too."""
    metadatas: list[dict[str, Any]] = [{} for _ in range(20_000)]
    metadatas[7] = {"tags": {"a"}}
    with pytest.raises(MetadataError, match=r"^metadatas\[7\]: .* at 'tags': .*sorted"):
        BM25Retriever.from_texts(["a cat"] * 20_000, metadatas)


def test_numbers_find_the_documents_that_they_named() -> None:
    """What is an id to from_texts is one to every method, NumPy's numbers too."""
    numbers: Any = [1, 2.5, np.int64(3), np.float64(4.5)]
    retriever = BM25Retriever.from_texts(["a cat"] * 4, ids=numbers)
    index: Any = BM25DocumentIndex(index=retriever.index)
    assert retriever.index.ids()[1] == Document("a cat", id=numbers[1]).id
    assert ids(retriever.get_by_ids(numbers)) == ["1", "2.5", "3", "4.5"] == ids(index.get(numbers))
    assert index.delete([1, "nobody"])["succeeded"] == ["1"]
    assert len(retriever.delete(number for number in numbers)) == 3


@pytest.mark.parametrize("bad", [None, True, float("nan"), b"a", ["a"]])
def test_what_names_no_document_is_refused(retriever: BM25Retriever, bad: Any) -> None:
    index = BM25DocumentIndex(index=retriever.index)
    for call in (retriever.get_by_ids, retriever.delete, index.get, index.delete):
        with pytest.raises(TypeError, match=r"^ids\[1\] must be a str or a number, got "):
            call(["cat", bad])
    assert len(retriever.index) == 5


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"epsilon": 0.25}, r"bm25_params\['epsilon'\] is not supported: .*robertson"),
        ({"tokenizer": str.split}, r"bm25_params\['tokenizer'\] .*preprocess_func"),
        ({"k2": 1}, r"bm25_params\['k2'\] is not supported: the parameters are variant, k1, b"),
        ({"k1": -1}, "k1 must be a number from 0"),
        ({"b": 2}, "b must be a number from 0 to 1"),
        ({"variant": "okapi"}, "variant must be one of"),
    ],
)
def test_unsupported_parameters_say_so(params: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        BM25Retriever.from_texts(["cat"], bm25_params=params)
    with pytest.raises(ValueError, match=match):
        BM25Retriever.from_documents([], bm25_params=params)


def test_arguments_of_from_texts_are_checked() -> None:
    make: Any = BM25Retriever.from_texts
    with pytest.raises(TypeError, match="bm25_params must be a dict"):
        make(["cat"], bm25_params=[1.5])
    with pytest.raises(TypeError, match="preprocess_func must be a callable"):
        make(["cat"], preprocess_func="split")
    with pytest.raises(ValueError, match="give one of them"):
        make(["cat"], preprocess_func=str.split, analyzer=Analyzer("german"))
    with pytest.raises(TypeError, match="analyzer must be an Analyzer"):
        make(["cat"], analyzer="german")


@pytest.mark.parametrize("returned", ["cat", None, iter(["cat"]), np.array(["cat"]), [1]])
async def test_what_preprocess_func_must_return_is_said_in_its_name(returned: Any) -> None:
    """Whichever way texts are given; an analyzer's own tokenizer keeps its name."""
    message = r"^tokenizer must return a list of str, got "
    with pytest.raises(TypeError, match=message):
        BM25Retriever.from_texts(["cat"], preprocess_func=lambda text: returned)
    with pytest.raises(TypeError, match=message):
        await BM25Retriever.afrom_documents(
            [Document("cat")], preprocess_func=lambda text: returned
        )
    with pytest.raises(TypeError, match=r"^tokenizer must return a list of str, got "):
        BM25Retriever.from_texts(["cat"], analyzer=Analyzer(tokenizer=lambda text: returned))


def test_score_key_and_id_key_must_differ() -> None:
    with pytest.raises(ValidationError, match="score_key, id_key and spans_key must differ"):
        BM25Retriever(score_key="x", id_key="x")


def test_the_index_must_be_an_index() -> None:
    with pytest.raises(ValidationError, match="instance of BM25Index"):
        BM25Retriever.from_index(["cat"])  # type: ignore[arg-type]


def test_a_document_without_text_is_an_error_that_names_it() -> None:
    """An index of terms alone has nothing for page_content."""
    index = BM25Index.from_texts(["a cat"], ids=["1"], store_text=False)
    with pytest.raises(ValueError, match=r"document '1' has no text to return.*store_text"):
        BM25Retriever.from_index(index).invoke("cat")

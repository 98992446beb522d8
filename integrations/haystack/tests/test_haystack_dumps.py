"""What a dump of a store, a retriever or a pipeline holds, and what comes of it."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import yaml
from haystack import Document, Pipeline
from haystack.core.errors import DeserializationError, SerializationError
from haystack_integrations.components.retrievers.bm25rag import (
    BM25Retriever,
    BM25SearchTool,
    BM25SparseHybridRetriever,
)
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Analyzer


def dumped(store: BM25DocumentStore) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(yaml.safe_dump(store.to_dict()))["init_parameters"]
    return settings


def test_settings_survive_to_dict_and_from_dict() -> None:
    analyzer = Analyzer(language="german", stopwords=["und"])
    store = BM25DocumentStore(analyzer=analyzer, variant="bm25+", k1=0.9, b=0.4, delta=0.5)
    data = json.loads(json.dumps(store.to_dict()))
    again = BM25DocumentStore.from_dict(
        {**data, "init_parameters": {**data["init_parameters"], "index": "x"}}
    )
    again.write_documents([Document(content="Häuser und Katzen")])
    assert len(again.bm25_retrieval("Haus")) == 1
    assert again.bm25_retrieval("und") == []
    assert again.to_dict()["init_parameters"] == {**data["init_parameters"], "index": "x"}


def test_an_analyzer_can_be_described_in_short() -> None:
    name = BM25DocumentStore().to_dict()["type"]
    data = {"type": name, "init_parameters": {"analyzer": {"language": "de"}}}
    store = BM25DocumentStore.from_dict(data)
    store.write_documents([Document(content="Häuser")])
    assert len(store.bm25_retrieval("Haus")) == 1
    assert data["init_parameters"] == {"analyzer": {"language": "de"}}


@pytest.mark.parametrize(
    ("analyzer", "expected"),
    [
        (Analyzer(), {"language": "english"}),
        (Analyzer("german"), {"language": "german"}),
        (Analyzer("de"), {"language": "german"}),
        (Analyzer(None), {"language": None}),
        (Analyzer("german", stopwords=None), {"language": "german", "stopwords": []}),
        (Analyzer("de", stopwords=["und"]), {"language": "german", "stopwords": ["und"]}),
        (Analyzer(stemmer=None), {"language": "english", "stemmer": None}),
        (
            Analyzer(None, token_pattern=r"\w+", normalize=None, lowercase=False, cjk=False),
            {
                "language": None,
                "token_pattern": r"\w+",
                "normalize": None,
                "lowercase": False,
                "cjk": False,
            },
        ),
    ],
)
def test_an_analyzer_is_dumped_as_what_differs_from_its_languages_settings(
    analyzer: Analyzer, expected: dict[str, Any]
) -> None:
    settings = dumped(BM25DocumentStore(index="analyzers", analyzer=analyzer))
    assert settings["analyzer"] == expected
    again = Analyzer(**settings["analyzer"])
    assert again == analyzer


def test_a_description_may_hold_every_setting_of_the_analyzer() -> None:
    data = BM25DocumentStore().to_dict()
    data["init_parameters"] = {"analyzer": Analyzer("german").to_dict()}
    again = BM25DocumentStore.from_dict(data)
    assert dumped(again)["analyzer"] == {"language": "german"}


def test_numbers_of_numpy_are_dumped_as_pythons() -> None:
    store = BM25DocumentStore(
        variant=np.str_("bm25+"),
        k1=np.float64(1.3),
        b=np.float32(0.5),
        delta=np.int64(1),
        lock_timeout=np.int64(5),
        return_embedding=np.False_,
    )
    settings = dumped(store)
    expected = {
        "variant": "bm25+",
        "k1": 1.3,
        "b": 0.5,
        "delta": 1.0,
        "lock_timeout": 5.0,
        "return_embedding": False,
    }
    assert settings | expected == settings
    retriever = BM25Retriever(
        store, top_k=np.int64(3), scale_score=np.True_, min_score=np.float64(0.5)
    )
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    weights: Any = np.array([1, 2])
    hybrid = BM25SparseHybridRetriever(store, weights=weights, rank_constant=np.int64(5))
    pipeline.add_component("hybrid", hybrid)
    assert Pipeline.loads(pipeline.dumps()).dumps() == pipeline.dumps()


class LoudStore(BM25DocumentStore):
    """A store of a user's own."""

    def bm25_retrieval(self, *arguments: Any, **options: Any) -> list[Document]:
        documents = super().bm25_retrieval(*arguments, **options)
        return [Document(id=one.id, content=(one.content or "").upper()) for one in documents]


def test_a_retriever_is_loaded_with_a_store_of_ones_own_class(
    documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", __name__)
    store = LoudStore(index="loud")
    store.write_documents(documents)
    again = BM25Retriever.from_dict(BM25Retriever(store).to_dict())
    assert type(again.document_store) is LoudStore
    assert again.run("swim")["documents"][0].content == "FISH SWIM."


def test_a_retriever_whose_store_is_another_is_refused(documents: list[Document]) -> None:
    data = BM25Retriever(BM25DocumentStore()).to_dict()
    data["init_parameters"]["document_store"]["type"] = (
        "haystack.document_stores.in_memory.document_store.InMemoryDocumentStore"
    )
    data["init_parameters"]["document_store"]["init_parameters"] = {}
    with pytest.raises(TypeError, match="document_store must be a BM25DocumentStore, got InMem"):
        BM25Retriever.from_dict(data)


# --- tokenizers by name -------------------------------------------------------------------


@pytest.fixture
def tokenizers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    (tmp_path / "my_tokenizers.py").write_text(
        "def split(text):\n    return text.split()\n\n"
        "class Tokenizers:\n    @staticmethod\n    def lines(text):\n"
        "        return text.splitlines()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "my_tokenizers"


def pipeline_with(tokenizer: Any) -> Pipeline:
    store = BM25DocumentStore(analyzer=Analyzer(tokenizer=tokenizer))
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(store))
    return pipeline


def test_a_tokenizer_that_is_a_function_is_dumped_by_name(tokenizers: str) -> None:
    module = __import__(tokenizers)
    for tokenizer, name in ((module.split, "split"), (module.Tokenizers.lines, "Tokenizers.lines")):
        text = pipeline_with(tokenizer).dumps()
        analyzer = yaml.safe_load(text)["components"]["retriever"]["init_parameters"][
            "document_store"
        ]["init_parameters"]["analyzer"]
        assert analyzer == {"tokenizer": f"{tokenizers}.{name}"}
        again = Pipeline.loads(text, allowed_modules=[tokenizers])
        store = again.get_component("retriever").document_store
        store.write_documents([Document(id="1", content="C++ is_it")])
        assert len(store.bm25_retrieval("C++ is_it")) == 1
        assert again.dumps() == text


def test_a_tokenizer_that_haystack_does_not_trust_is_not_imported(tokenizers: str) -> None:
    text = pipeline_with(__import__(tokenizers).split).dumps()
    del sys.modules[tokenizers]
    with pytest.raises(DeserializationError, match=tokenizers):
        Pipeline.loads(text)
    assert tokenizers not in sys.modules
    with pytest.raises(DeserializationError, match="os"):
        Pipeline.loads(text.replace(f"{tokenizers}.split", "os.system"))
    with pytest.raises(DeserializationError, match="eval"):
        Pipeline.loads(text.replace(f"{tokenizers}.split", "builtins.eval"))


class Tokenizer:
    """A callable that cannot be named."""

    def __call__(self, text: str) -> list[str]:
        return text.split()

    def split(self, text: str) -> list[str]:
        return text.split()


@pytest.mark.parametrize(
    "tokenizer", [str.split, lambda text: text.split(), Tokenizer(), Tokenizer().split]
)
def test_a_tokenizer_without_a_name_says_what_to_use_instead(tokenizer: Any) -> None:
    store = BM25DocumentStore(analyzer=Analyzer(tokenizer=tokenizer))
    with pytest.raises(SerializationError, match=r"cannot be serialized.*use a function of a mod"):
        store.to_dict()


def test_a_name_that_leads_nowhere_is_haystacks_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "haystack_integrations.mine", ModuleType("mine"))
    data = BM25DocumentStore().to_dict()
    data["init_parameters"]["analyzer"] = {"tokenizer": "haystack_integrations.mine.split"}
    with pytest.raises(DeserializationError, match="split"):
        BM25DocumentStore.from_dict(data)


STORED = [
    *(datetime(2024, 5, day, hour) for day in (1, 2) for hour in (0, 12)),
    *(datetime(2024, 5, day, 12, tzinfo=UTC) for day in (1, 2)),
    *(date(2024, 5, 1), date(2024, 5, 2)),
    *("2024-05-01", "2024-05-01T12:00:00", "2024-05-01T14:00:00+02:00", "2024-05-02T00:00Z"),
]
ASKED = [STORED[1], STORED[4], datetime(2024, 5, 2, 1, tzinfo=timezone(timedelta(hours=1)))]


@pytest.mark.parametrize(
    ("value", "operator"),
    [
        *product(ASKED, [">", "<=", "==", "!=", "in", "not in"]),
        *product([date(2024, 5, 2)], [">", "<="]),
    ],
)
def test_filters_with_dates_mean_the_same_after_a_dump(value: date, operator: str) -> None:
    operand = [value] if "in" in operator else value
    filters = {"field": "meta.at", "operator": operator, "value": operand}
    both = {"operator": "AND", "conditions": [filters]}
    store = BM25DocumentStore(restrict=filters)
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(store, filters=both, top_k=20))
    again = Pipeline.loads(pipeline.dumps()).get_component("retriever")
    documents = [
        Document(id=str(place), content="boat", meta={"at": at}) for place, at in enumerate(STORED)
    ]
    restored = again.document_store
    assert restored.restrict == {**filters, "value": again.filters["conditions"][0]["value"]}
    found = []
    for asked in (filters, restored.restrict):
        everywhere = BM25DocumentStore()
        everywhere.write_documents(documents)
        found.append([one.id for one in everywhere.filter_documents(asked)])
    assert found[0] == found[1]
    assert found[0]


def test_a_day_that_is_equated_is_no_text_and_cannot_be_dumped() -> None:
    equal = {"field": "meta.at", "operator": "==", "value": date(2024, 5, 2)}
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(BM25DocumentStore(), filters=equal))
    assert pipeline.get_component("retriever").to_dict()["init_parameters"]["filters"] == equal
    with pytest.raises(SerializationError, match="'date'"):
        pipeline.dumps()


@pytest.mark.parametrize("operator", ["==", "!="])
def test_a_list_of_dates_that_is_equated_stays_a_list_of_dates(operator: str) -> None:
    days = [datetime(2024, 5, 1)]
    filters = {"field": "meta.at", "operator": operator, "value": days}
    store = BM25DocumentStore(restrict=filters)
    assert store.to_dict()["init_parameters"]["restrict"] == filters


def test_a_time_that_a_change_of_clocks_repeats_is_not_dumped() -> None:
    repeated = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    filters = {"field": "meta.at", "operator": "==", "value": repeated}
    store = BM25DocumentStore(restrict=filters)
    assert store.to_dict()["init_parameters"]["restrict"] == filters


def test_dates_in_the_filters_of_a_tool_are_dumped() -> None:
    filters = {"field": "meta.at", "operator": ">", "value": datetime(2024, 5, 1)}
    tool = BM25SearchTool(BM25DocumentStore(), "notes", "Notes", filters)
    again = BM25SearchTool.from_dict(json.loads(json.dumps(tool.to_dict())))
    assert again.to_dict()["data"]["filters"] == {**filters, "value": "2024-05-01T00:00:00"}

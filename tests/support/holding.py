"""Comparing an index with its reference, bit for bit."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index, Document, Hit
from bm25rag.errors import DuplicateIdError
from support.reference import Query, Reference, ReferenceHit
from support.strategies import Add, Copy, Delete, Relabel, Step, in_fields

QUERY = ["a", "b", "b", "f"]
Found = list[tuple[str, str]]


def bits(found: list[Hit] | list[ReferenceHit]) -> Found:
    """Return ids and scores; the hexadecimal form shows every bit, even the sign of 0."""
    return [(hit.id, hit.score.hex()) for hit in found]


def build(
    texts: list[list[str]], labels: list[int] | None = None, **chosen: Any
) -> tuple[BM25Index, Reference]:
    """Make an index and its reference."""
    metadata = None if labels is None else [{"label": label} for label in labels]
    index, reference = BM25Index(**chosen), Reference(**chosen)
    texts = in_fields(texts, reference.fields)
    assert index.add(texts, metadata=metadata) == reference.add(texts, metadata=metadata)
    return index, reference


def tuned(
    index: BM25Index, reference: Reference, parameters: dict[str, Any]
) -> tuple[BM25Index, Reference]:
    """Tune both; weights of fields only where there are fields, which keep their order."""
    own = dict(parameters)
    fields = own.pop("fields", None)
    if fields is not None and reference.fields is not None:
        own["fields"] = {name: fields[name] for name in reference.fields}
    return index.tune(**own), reference.tune(**own)


def assert_same_scores(index: BM25Index, reference: Reference, query: Query) -> None:
    """Compare `scores` and a full search with the reference."""
    scores = index.scores(query)
    assert scores.dtype == np.float64
    assert [float(score).hex() for score in scores] == [s.hex() for s in reference.scores(query)]
    assert bits(index.search(query, k=len(reference.ids) + 1)) == bits(reference.matches(query))


def assert_same_statistics(index: BM25Index, reference: Reference) -> None:
    """Compare ids, vocabulary, frequencies and metadata with the reference."""
    assert index.ids() == reference.ids
    assert len(index) == index.count() == len(reference.ids)
    assert index.vocabulary() == list(reference.vocabulary())
    assert index.document_frequencies().tolist() == list(reference.vocabulary().values())
    assert [document.metadata for document in index.get(index.ids())] == list(
        reference.metadata.values()
    )


def apply(index: BM25Index, reference: Reference, step: Step) -> BM25Index:
    """Take one step on both sides; the return values must be equal too."""
    match step:
        case Add(texts, ids, labels, on_duplicate):
            metadata = [{"label": label} for label in labels]
            texts = in_fields(texts, reference.fields)
            try:
                expected = reference.add(texts, ids, metadata, on_duplicate)
            except ValueError:
                with pytest.raises(DuplicateIdError):
                    index.add(texts, ids, metadata, on_duplicate=on_duplicate)
            else:
                written = index.add(texts, ids, metadata, on_duplicate=on_duplicate)
                assert written == expected
        case Delete(ids):
            assert index.delete(ids) == reference.delete(ids)
        case Relabel(ids, labels):
            metadata = [{"label": label} for label in labels]
            changed = reference.update_metadata(ids, metadata)
            assert index.update_metadata(ids, metadata) == changed
        case Copy("pickle"):
            return pickle.loads(pickle.dumps(index))
        case Copy("deepcopy"):
            return copy.deepcopy(index)
        case Copy("save"):
            return saved_and_opened(index)
    return index


def saved_and_opened(index: BM25Index) -> BM25Index:
    """Save an index, open it, and return a copy that can be written to."""
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder) / "index")
        given: Any = {"tokenizer": index.analyzer.any_tokenizer, "mmap": False, "verify": True}
        opened = BM25Index.open(Path(folder) / "index", mode="w", **given)
        copied = copy.deepcopy(opened)
        opened.close()
    return copied


def as_document(id: str, text: Any, metadata: dict[str, Any]) -> Document:
    """Make a document of a text or of fields."""
    if isinstance(text, dict):
        return Document(id, None, metadata, fields=text)
    return Document(id, text, metadata)


@contextmanager
def in_shards(count: int, documents: list[Document], **chosen: Any) -> Iterator[BM25Index]:
    """Yield the writer of an index in shards, built of documents; what is added makes more."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        BM25Index.build(iter(documents), path, shards=count, **chosen)
        with BM25Index.open(path, mode="w") as writer:
            set_capacity(writer, count % 5)
            yield writer


def set_capacity(writer: BM25Index, capacity: int) -> None:
    """Let a new shard begin when the last one has so many documents."""
    attachment: Any = writer._live.attachment
    shards = attachment.manifest.shards._replace(capacity=capacity)
    attachment.manifest = attachment.manifest._replace(shards=shards)


@contextmanager
def both_in_shards(
    count: int, texts: list[list[str]], **chosen: Any
) -> Iterator[tuple[BM25Index, Reference]]:
    """Yield such a writer, and the reference of its index."""
    given, numbers = in_fields(texts, chosen.get("fields")), range(len(texts))
    ids, labels = [f"s{n}" for n in numbers], [{"label": n % 3} for n in numbers]
    reference = Reference(**chosen)
    reference.add(given, ids, labels)
    with in_shards(count, [*map(as_document, ids, given, labels)], **chosen) as index:
        yield index, reference


def accepted(label: int) -> list[tuple[Any, Callable[[str, dict[str, Any]], bool]]]:
    """Pair filters of every kind with the predicates they stand for."""
    ids = {"1", "3", "5", "7", "never"}
    return [
        ({"label": label}, lambda _, metadata: metadata.get("label") == label),
        ({"label": {"$ne": label}}, lambda _, metadata: metadata.get("label") != label),
        (ids, lambda name, _: name in ids),
        (set(), lambda *_: False),
        ({}, lambda *_: True),
        (lambda metadata: metadata.get("label", 0) >= label,
         lambda _, metadata: metadata.get("label", 0) >= label),
    ]  # fmt: skip


def shown(index: BM25Index) -> Any:
    """Return what tells one state from another."""
    return [(one.id, one.metadata) for one in index.get(index.ids())], bits(index.search(QUERY, 99))


def shown_by(reference: Reference) -> Any:
    """Return the same of the reference."""
    return [*reference.metadata.items()], bits(reference.search(QUERY, 99))

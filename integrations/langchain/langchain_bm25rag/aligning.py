"""Brings an index and what is kept beside it into step: a record manager, a vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.indexing import RecordManager
from langchain_core.vectorstores import VectorStore

from bm25rag import BM25Index
from bm25rag.adapters import Call, Plan
from langchain_bm25rag.documents import to_documents

# How many ids are named at once: databases limit the length of a statement.
_AT_ONCE = 1000


class Aligned(NamedTuple):
    """What a vector store was given, and what was taken from it, to hold what the index holds."""

    added: list[str]
    deleted: list[str]


def align_records(store: Any, records: RecordManager) -> Plan[None]:
    """Make what has an ``index`` and a record manager forget what only one of the two knows."""
    stored, recorded = set(store.index.ids()), set((yield Call(records, "list_keys")))
    if unrecorded := list(stored - recorded):
        yield Call(store, "delete", (unrecorded,))
    for lost in _batches(recorded - stored):
        yield Call(records, "delete_keys", (lost,))


def align_documents(
    index: BM25Index, store: VectorStore, ids: Iterable[str], id_of: Callable[[Document], str]
) -> Plan[Aligned]:
    """Make a vector store hold of some documents what the index holds.

    They may be in both, in one of them, or in neither. ``id_of`` returns the id of a document of
    the vector store.
    """
    added: list[str] = []
    deleted: list[str] = []
    for few in _batches(ids):
        wanted = _documents_of(index, few)
        answer = yield from _ask_for(store, few)
        if answer is None:  # it ignores unknown ids, then
            held: dict[str, Document | None] = dict.fromkeys(id for id in few if id not in wanted)
        else:
            held = {id_of(one): one for one in answer}
            wanted = {id: one for id, one in wanted.items() if not _is_held(one, held.get(id))}
        gone = [id for id in held if id in wanted or id not in index]
        yield from delete_vectors(store, gone)
        yield from add_vectors(store, wanted)
        added += wanted
        deleted += [id for id in gone if id not in wanted]
    return Aligned(added, deleted)


def find_all(
    store: VectorStore, index: BM25Index, id_of: Callable[[Document], str]
) -> Plan[list[str]]:
    """Return the ids of all documents of a vector store, which holds about what the index holds.

    No vector store can list its documents, so it is asked for more than it can have.
    """
    text = next((one.text for one in index.get(index.ids(k=1)) if one.text), "text")
    wanted = 2 * len(index) + 100
    while True:
        documents = yield Call(store, "similarity_search", (text,), {"k": wanted})
        if len(documents) < wanted:
            return list(dict.fromkeys(map(id_of, documents)))
        wanted *= 4


def replace_vectors(
    index: BM25Index, store: VectorStore, ids: Iterable[str], replaced: list[str]
) -> Plan[None]:
    """Give a vector store what the index has of some documents, first deleting what it may have.

    FAISS breaks where it is given an id that it has, and where it is to delete one that it lacks.
    """
    documents = _documents_of(index, list(dict.fromkeys(ids)))
    if replaced:
        held = (yield from _ask_for(store, replaced)) or []
        yield from delete_vectors(store, [one.id for one in held if one.id is not None])
    yield from add_vectors(store, documents)


def _documents_of(index: BM25Index, ids: list[str]) -> dict[str, Document]:
    indexed = index.get(ids)
    return dict(zip([one.id for one in indexed], to_documents(indexed), strict=True))


def _ask_for(store: VectorStore, ids: list[str]) -> Plan[Iterable[Document] | None]:
    """Return documents of a vector store by id; ``None`` if it cannot, and so has to replace."""
    try:
        documents: Iterable[Document] = yield Call(store, "get_by_ids", (ids,))
    except NotImplementedError:
        return None
    return documents


def add_vectors(store: VectorStore, documents: Mapping[str, Document]) -> Plan[None]:
    """Add documents to a vector store under their ids."""
    if not documents:
        return
    ids = [*documents]
    written = yield Call(store, "add_documents", ([*documents.values()],), {"ids": ids})
    if list(written) != ids:
        message = f"it stored documents under ids of its own, {written!r:.100}, not {ids!r:.100}"
        raise ValueError(message)


def delete_vectors(store: VectorStore, ids: list[str]) -> Plan[None]:
    """Delete documents from a vector store."""
    if not ids:  # some stores delete everything where none are named
        return
    if (yield Call(store, "delete", (ids,))) is False:
        raise ValueError("it says that it did not delete")


def _is_held(wanted: Document, held: Document | None) -> bool:
    """Say whether a vector store has a document, as far as stores keep metadata."""
    if held is None or held.page_content != wanted.page_content:
        return False
    return all(
        held.metadata.get(key) == value
        for key, value in wanted.metadata.items()
        if isinstance(value, (str, int, float, bool))  # which every store keeps as it is
    )


def _batches(elements: Iterable[str]) -> Iterator[list[str]]:
    left = iter(elements)
    while few := list(islice(left, _AT_ONCE)):
        yield few

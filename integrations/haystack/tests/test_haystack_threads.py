"""Many threads read and write at once, and every answer is that of one state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from haystack import Document
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

ROUNDS = 9


def batch(number: int) -> list[Document]:
    """Make three documents that are only ever written and deleted together."""
    meta = {"batch": number}
    return [Document(id=f"{number}-{n}", content=f"cat number{n}", meta=meta) for n in range(3)]


def test_readers_see_whole_writes_while_writers_write(store: BM25DocumentStore) -> None:
    retriever = BM25Retriever(store, top_k=1000)

    def write(writer: int) -> None:
        for round_ in range(ROUNDS):
            number = writer * ROUNDS + round_
            store.write_documents(batch(number))
            asked = {"field": "meta.batch", "operator": "==", "value": number}
            assert store.update_by_filter(asked, {"seen": number}) == 3
            if round_ % 2:
                assert store.delete_by_filter(asked) == 3

    def read(look: Callable[[], int]) -> None:
        assert look() == 0
        looked.wait(120)  # nobody writes before
        while not done.is_set():
            assert look() % 3 == 0

    looks: list[Callable[[], int]] = [
        lambda: len(retriever.run("cats")["documents"]),
        lambda: len(store.filter_documents()),
        lambda: store.count_documents_by_filter(
            {"field": "meta.seen", "operator": ">=", "value": 0}
        ),
        lambda: len(store.filter_documents({"field": "content", "operator": "!=", "value": None})),
    ]
    done, looked = threading.Event(), threading.Barrier(len(looks) + 1)
    with ThreadPoolExecutor(len(looks) + 2) as pool:
        readers = [pool.submit(read, look) for look in looks]
        looked.wait(120)
        writers = [pool.submit(write, writer) for writer in range(2)]
        try:
            for writer in writers:
                writer.result(timeout=120)
        finally:
            done.set()
        for reader in readers:
            reader.result()
    assert store.count_documents() == 3 * 2 * (ROUNDS // 2 + 1)

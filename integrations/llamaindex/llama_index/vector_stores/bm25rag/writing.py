"""Writes to a store and its dense store, in the order in which nothing is lost.

What is added goes to BM25 first, what is deleted goes from the dense store first: whatever fails,
no node is lost, no deleted node is found, and the same call completes the work.

A method that calls the dense store is a generator, written once for functions and coroutines. It
yields each ``Call`` and is sent what the store returned; if the store raises, a ``DenseStoreError``
is thrown into it. Only who runs it knows whether to await.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from llama_index.retrievers.bm25rag.changes import (
    check_nodes,
    ids_to_delete,
    of_source,
    pick_added,
)

from bm25rag.errors import BM25Error

if TYPE_CHECKING:
    from llama_index.vector_stores.bm25rag.searching import Retrieval

_T = TypeVar("_T")

_ASYNC = {
    "add": "async_add",
    "clear": "aclear",
    "delete": "adelete",
    "delete_nodes": "adelete_nodes",
    "query": "aquery",
}


class DenseStoreError(BM25Error, RuntimeError):
    """The dense store of a ``BM25VectorStore`` failed; the message says what the stores hold."""


class Call(NamedTuple):
    """A call of a method of the dense store.

    ``method`` names the synchronous one; ``after`` is what holds if it fails, for the message.
    """

    method: str
    arguments: dict[str, Any]
    after: str


Calls = Generator[Call, Any, _T]


# --- calling --------------------------------------------------------------------------------


def run(calls: Calls[_T], dense: BasePydanticVectorStore | None) -> _T:
    """Run a method, with the synchronous methods of the dense store."""
    done, value = _step(calls.send, None)
    while not done:
        try:
            answer = getattr(dense, value.method)(**value.arguments)
        except Exception as error:
            done, value = _step(calls.throw, _failed(dense, value, error))
        else:
            done, value = _step(calls.send, answer)
    return value  # type: ignore[no-any-return]  # _step says what it is


async def arun(
    calls: Calls[_T],
    dense: BasePydanticVectorStore | None,
    in_thread: Callable[..., Awaitable[tuple[bool, Any]]],
) -> _T:
    """Run a method with the asynchronous methods of the dense store, and the rest in a thread."""
    done, value = await in_thread(_step, calls.send, None)
    while not done:
        try:
            answer = await getattr(dense, _ASYNC[value.method])(**value.arguments)
        except Exception as error:
            failure = _failed(dense, value, error)
            done, value = await in_thread(_step, calls.throw, failure)
        else:
            done, value = await in_thread(_step, calls.send, answer)
    return value  # type: ignore[no-any-return]  # _step says what it is


def _step(go_on: Callable[[Any], Call], answer: object) -> tuple[bool, Any]:
    """Return whether the method has ended, and what it returned or calls next."""
    try:
        return False, go_on(answer)
    except StopIteration as end:  # no future can carry it
        return True, end.value


def _failed(dense: object, call: Call, error: Exception) -> DenseStoreError:
    name = type(dense).__name__
    problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    failure = DenseStoreError(
        f"the dense store ({name}) failed at {call.method}: {problem}; {call.after}"
    )
    failure.__cause__ = error
    return failure


# --- the dense store --------------------------------------------------------------------------


class Vectors:
    """A dense store, and the dimension of its embeddings, which it may not check; 0 if unknown."""

    def __init__(self, store: BasePydanticVectorStore) -> None:
        if not isinstance(store, BasePydanticVectorStore):
            got = type(store).__name__
            raise TypeError(f"dense must be a vector store of LlamaIndex or None, got {got}")
        self.store = store
        self.dimension = 0

    def check_nodes(self, nodes: Sequence[BaseNode]) -> int:
        """Return the dimension of the nodes' embeddings, which must be finite and of the same."""
        dimension = self.dimension
        for number, node in enumerate(nodes):
            which = f"nodes[{number}], {node.node_id!r},"
            if not node.embedding:
                raise ValueError(
                    f"{which} has no embedding for the dense store: put an embedding model after "
                    "the splitter, and not NoEmbedding"
                )
            dimension = dimension or len(node.embedding)
            if len(node.embedding) != dimension:
                raise ValueError(
                    f"{which} must have an embedding of {dimension} numbers, as the other nodes, "
                    f"got {len(node.embedding)}"
                )
            if not math.isfinite(sum(node.embedding)):  # no hybrid query that found it would work
                raise ValueError(
                    f"{which} must have an embedding of finite numbers, got NaN or infinity"
                )
        return dimension

    def check_query(self, vector: Sequence[float] | None) -> None:
        """Refuse a query without an embedding, or with one of another dimension."""
        if vector is None or len(vector) == 0:
            raise ValueError(
                "query_embedding must be given to ask the dense store: give the index an "
                "embed_model other than NoEmbedding, or use query mode 'text_search'"
            )
        if self.dimension and len(vector) != self.dimension:
            raise ValueError(
                f"query_embedding must have {self.dimension} numbers, as the embeddings of the "
                f"nodes, got {len(vector)}"
            )

    def count(self) -> int | None:
        """Return how many vectors the store holds, where that is known without asking a server."""
        if isinstance(self.store, SimpleVectorStore):
            return len(self.store.data.embedding_dict)
        faiss = getattr(self.store, "_faiss_index", None)
        return None if faiss is None else int(faiss.ntotal)


def check_options(method: str, options: Mapping[str, Any], vectors: Vectors | None) -> None:
    """Refuse arguments for a dense store if there is none."""
    if options and vectors is None:
        raise TypeError(f"{method} takes {', '.join(options)} only for a dense store")


# --- writing; the methods of ``BM25VectorStore`` list the exceptions ----------------------------


def add(nodes: Retrieval, new: Sequence[BaseNode], options: dict[str, Any]) -> Calls[list[str]]:
    """Add nodes; return the id of each."""
    others = dict(options)
    on_duplicate = others.pop("on_duplicate", "replace")
    vectors = nodes.vectors
    check_options("add", others, vectors)
    given = check_nodes(new)
    ids = [node.node_id for node in given]
    if vectors is None:
        nodes.add_nodes(given, on_duplicate)
        return ids
    dimension = vectors.check_nodes(given)
    before = nodes.snapshot()
    added = nodes.add_nodes(given, on_duplicate)
    wanted = pick_added([(node.node_id, node) for node in given], added, on_duplicate)
    again = "BM25 finds the nodes; add them again, to replace them, for the dense store"
    yield from _delete_by_id([id for id in wanted if id in before], again)
    if wanted:
        held = yield Call("add", {"nodes": list(wanted.values()), **others}, again)
        vectors.dimension = dimension
        if not vectors.store.stores_text and list(held) != list(wanted):
            raise DenseStoreError(
                f"the dense store ({type(vectors.store).__name__}) keeps no nodes, and gives "
                "them ids of its own, so its results are unknown: give one that keeps theirs, "
                "such as FaissMapVectorStore in place of FaissVectorStore"
            )
    return ids


def delete(nodes: Retrieval, ref_doc_id: str, options: dict[str, Any]) -> Calls[None]:
    """Delete the nodes of a source document, or the document."""
    check_options("delete", options, nodes.vectors)
    ids = ids_to_delete(nodes.snapshot(), None, of_source(ref_doc_id))
    # A pipeline without a splitter adds documents as they are, and deletes them like this.
    itself = nodes.get_nodes([ref_doc_id])
    whole = [node.node_id for node in itself if node.ref_doc_id is None]
    yield from _delete_vectors(nodes, "delete", {"ref_doc_id": ref_doc_id, **options})
    if nodes.vectors is not None:  # FaissMapVectorStore deletes by the ids of nodes alone
        after = "the BM25 index has not changed; call delete again"
        yield from _delete_by_id([*ids, *whole], after)
    nodes.delete_ref_doc(ref_doc_id)
    nodes.delete_nodes(whole)


def delete_nodes(
    nodes: Retrieval,
    node_ids: list[str] | None,
    filters: MetadataFilters | None,
    options: dict[str, Any],
) -> Calls[None]:
    """Delete nodes by id, by filters, or both."""
    check_options("delete_nodes", options, nodes.vectors)
    ids = ids_to_delete(nodes.snapshot(), node_ids, filters)
    if ids:  # without any, some stores delete everything
        yield from _delete_vectors(nodes, "delete_nodes", {"node_ids": list(ids), **options})
        nodes.delete_nodes(ids, filters)


def clear(nodes: Retrieval) -> Calls[None]:
    """Delete all nodes."""
    yield from _delete_vectors(nodes, "clear", {})
    nodes.clear()
    if nodes.vectors is not None:
        nodes.vectors.dimension = 0


def _delete_vectors(nodes: Retrieval, method: str, arguments: dict[str, Any]) -> Calls[None]:
    nodes.check_writable()
    if nodes.vectors is not None:
        yield Call(
            method, arguments, f"the BM25 index has not changed, and {method} can be called again"
        )


def _delete_by_id(ids: Sequence[str], after: str) -> Calls[None]:
    """Delete vectors, if the dense store can: others replace, and delete by source."""
    if ids:  # without any, some stores delete everything
        try:
            yield Call("delete_nodes", {"node_ids": list(ids)}, after)
        except DenseStoreError as error:
            if not isinstance(error.__cause__, NotImplementedError):
                raise

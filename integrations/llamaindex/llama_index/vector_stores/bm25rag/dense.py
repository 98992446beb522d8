"""The dense store of a ``BM25VectorStore``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from bm25rag.adapters import Call, Plan
from bm25rag.errors import BM25Error


class DenseStoreError(BM25Error, RuntimeError):
    """The dense store of a ``BM25VectorStore`` failed; the message says what the stores hold."""


class Vectors:
    """A dense store, and the dimension of its embeddings, which it may not check; 0 if unknown."""

    def __init__(self, store: BasePydanticVectorStore) -> None:
        if not isinstance(store, BasePydanticVectorStore):
            got = type(store).__name__
            raise TypeError(f"dense must be a vector store of LlamaIndex or None, got {got}")
        self.store = store
        self.dimension = 0

    def ask(self, method: str, after: str, **arguments: Any) -> Plan[Any]:
        """Call a method of the store; ``after`` is what holds if it fails, for the message."""
        try:
            return (yield Call(self.store, method, (), arguments))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            name = type(self.store).__name__
            raise DenseStoreError(
                f"the dense store ({name}) failed at {method}: {problem}; {after}"
            ) from error

    def delete(self, ids: Sequence[str], after: str) -> Plan[None]:
        """Delete vectors by id, if the store can: others replace, and delete by source."""
        if ids:  # without any, some stores delete everything
            try:
                yield from self.ask("delete_nodes", after, node_ids=list(ids))
            except DenseStoreError as error:
                if not isinstance(error.__cause__, NotImplementedError):
                    raise

    def check_nodes(self, nodes: Sequence[BaseNode]) -> int:
        """Return the one dimension that the nodes' embeddings have, all of which must be finite."""
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
        """Refuse a query without an embedding of finite numbers, or with another dimension."""
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
        if not math.isfinite(sum(vector)):
            raise ValueError("query_embedding must have finite numbers, got NaN or infinity")

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

"""A dense store and its dimension, which it may not check itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore


class Vectors:
    """A dense store, and the dimension of the embeddings in it.

    Parameters
    ----------
    store
        The store.
    dimension
        The dimension; 0 if it is unknown.

    Raises
    ------
    TypeError
        If ``store`` is anything else.
    """

    def __init__(self, store: BasePydanticVectorStore, dimension: int = 0) -> None:
        if not isinstance(store, BasePydanticVectorStore):
            got = type(store).__name__
            raise TypeError(f"dense must be a vector store of LlamaIndex or None, got {got}")
        self.store = store
        self.dimension = dimension

    def check_nodes(self, nodes: Sequence[BaseNode]) -> int:
        """Return the dimension of the nodes' embeddings.

        Raises
        ------
        ValueError
            If a node has no embedding, one of another dimension than the others, or NaN in it.
        """
        dimension = self.dimension
        for number, node in enumerate(nodes):
            if not node.embedding:
                raise ValueError(
                    f"nodes[{number}], {node.node_id!r}, has no embedding for the dense store: put "
                    "an embedding model after the splitter, and not NoEmbedding"
                )
            dimension = dimension or len(node.embedding)
            if len(node.embedding) != dimension:
                raise ValueError(
                    f"nodes[{number}], {node.node_id!r}, must have an embedding of {dimension} "
                    f"numbers, as the other nodes, got {len(node.embedding)}"
                )
            if not math.isfinite(sum(node.embedding)):  # no hybrid query that found it would work
                raise ValueError(
                    f"nodes[{number}], {node.node_id!r}, must have an embedding of finite numbers, "
                    "got NaN or infinity"
                )
        return dimension

    def check_query(self, vector: Sequence[float] | None) -> None:
        """Check the embedding of a query.

        Raises
        ------
        ValueError
            If there is none, or it has another dimension than those of the nodes.
        """
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


def check_options(method: str, options: Mapping[str, Any], vectors: Vectors | None) -> None:
    """Refuse arguments for a dense store if there is none.

    Raises
    ------
    TypeError
        If there are any; the message names them.
    """
    if options and vectors is None:
        raise TypeError(f"{method} takes {', '.join(options)} only for a dense store")

"""Checks of embeddings: the dense store needs all of one dimension, and may not check them."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import BaseNode


def check_embeddings(nodes: Sequence[BaseNode], dimension: int) -> int:
    """Return the dimension of the nodes' embeddings.

    Parameters
    ----------
    nodes
        The nodes.
    dimension
        The dimension that they must have; 0 for any, if it is the same for all.

    Raises
    ------
    ValueError
        If a node has no embedding, or one of another dimension.
    """
    for number, node in enumerate(nodes):
        if not node.embedding:
            raise ValueError(
                f"nodes[{number}], {node.node_id!r}, has no embedding for the dense store: put an "
                "embedding model after the splitter, and not NoEmbedding"
            )
        dimension = dimension or len(node.embedding)
        if len(node.embedding) != dimension:
            raise ValueError(
                f"nodes[{number}], {node.node_id!r}, must have an embedding of {dimension} "
                f"numbers, as the other nodes, got {len(node.embedding)}"
            )
    return dimension


def check_vector(vector: Sequence[float] | None, dimension: int) -> None:
    """Check the embedding of a query.

    Raises
    ------
    ValueError
        If there is none, or it has another dimension than those of the nodes.
    """
    if vector is None or len(vector) == 0:
        raise ValueError(
            "query_embedding must be given to ask the dense store: give the index an embed_model "
            "other than NoEmbedding, or use query mode 'text_search'"
        )
    if dimension and len(vector) != dimension:
        raise ValueError(
            f"query_embedding must have {dimension} numbers, as the embeddings of the nodes, "
            f"got {len(vector)}"
        )

"""Nodes with scores whose text can be asked for, whatever their class."""

from __future__ import annotations

from collections.abc import Iterable

from llama_index.core.schema import NodeWithScore, TextNode


class NodeWithScoreAndText(NodeWithScore):
    """A node that is no ``TextNode``, such as a ``Document``, with its score.

    LlamaIndex's own class raises a ``ValueError`` when asked for the text of such a node.
    """

    @property
    def text(self) -> str:
        """The content of the node."""
        return self.node.get_content()

    def get_text(self) -> str:
        """Return the content of the node."""
        return self.node.get_content()


def with_text(nodes: Iterable[NodeWithScore]) -> list[NodeWithScore]:
    """Return what was retrieved so that each has a ``text``."""
    return [
        one
        if isinstance(one.node, TextNode)
        else NodeWithScoreAndText(node=one.node, score=one.score)
        for one in nodes
    ]

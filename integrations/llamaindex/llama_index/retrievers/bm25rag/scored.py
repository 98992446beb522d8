"""Nodes with scores that have a text, whatever the class of the node."""

from __future__ import annotations

from collections.abc import Iterable

from llama_index.core.schema import NodeWithScore, TextNode


class NodeWithScoreAndText(NodeWithScore):
    """A node other than a ``TextNode``, such as a ``Document``, with its score.

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
    """Return what was retrieved, each with a ``text``."""
    return [
        found
        if isinstance(found.node, TextNode)
        else NodeWithScoreAndText(node=found.node, score=found.score)
        for found in nodes
    ]

"""Nodes of every kind, which several tests share."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)


def node(id: str, text: str, source: str | None = None, **metadata: object) -> TextNode:
    made = TextNode(id_=id, text=text, metadata=metadata)
    if source is not None:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=source)
    return made


class Paragraph(TextNode):
    """A class of a user's."""

    number: int = 0
    marks: list[str] = []  # noqa: RUF012 - pydantic copies it

    @classmethod
    def class_name(cls) -> str:
        return "Paragraph"


def related() -> dict[NodeRelationship, Any]:
    def info(id: str) -> RelatedNodeInfo:
        return RelatedNodeInfo(node_id=id, node_type="1", metadata={"p": [1]}, hash="h")

    return {
        NodeRelationship.SOURCE: info("source"),
        NodeRelationship.PREVIOUS: info("before"),
        NodeRelationship.NEXT: info("after"),
        NodeRelationship.PARENT: info("parent"),
        NodeRelationship.CHILD: [info("one"), info("two")],
    }


def everything() -> dict[str, Any]:
    return {
        "metadata": {"title": "find me", "n": 1, "x": {"y": [None, True, 1.5]}, "$a": 1, "b.c": 2},
        "excluded_embed_metadata_keys": ["n"],
        "excluded_llm_metadata_keys": ["x"],
        "relationships": related(),
        "metadata_template": "{key}={value}",
        "metadata_separator": "; ",
        "text_template": "<{content}>\n{metadata_str}",
    }


NODES: dict[str, BaseNode] = {
    "text": TextNode(text="find this  \n"),
    "empty text": TextNode(text="", metadata={"title": "find"}),
    "text, all fields": TextNode(
        text="find\u2028this",
        mimetype="text/html",
        start_char_idx=3,
        end_char_idx=9,
        **everything(),
    ),
    "blanks": TextNode(text="\n find \n", metadata={"title": "x"}),
    "dates": TextNode(
        text="find",
        metadata={"d": date(2024, 5, 1), "t": [datetime(2024, 5, 1, tzinfo=UTC)], "s": "2024"},
    ),
    "node": Node(text_resource=MediaResource(text="find this"), **everything()),
    "node without a text": Node(metadata={"title": "find"}, text_resource=MediaResource()),
    "node, bytes": Node(
        text_resource=MediaResource(text="find", mimetype="text/plain"),
        image_resource=MediaResource(data=base64.b64encode(b"\x89PNG\r\n\x1a\n\0")),
        audio_resource=MediaResource(url="https://example.org/a.mp3"),
    ),
    "document": Document(text="find this", **everything()),
    "document, custom template": Document(
        text="find this", metadata={"a": 1}, text_template="no content: find {metadata_str}"
    ),
    "image": ImageNode(text="find", image="aGVsbG8=", image_path="a.png", text_embedding=[0.5]),
    "image document": ImageDocument(text="find", image=b"hello"),
    "index": IndexNode(text="find", index_id="i"),
    "own class": Paragraph(text="find", number=3, marks=["a"], **everything()),
    "own class, defaults": Paragraph(text="find"),
}

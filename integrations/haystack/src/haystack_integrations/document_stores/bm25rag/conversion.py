"""Converts Haystack's documents to the core's, and back.

Content becomes text, and ``meta`` becomes metadata. Everything else (a missing content, the blob,
embeddings, the score) goes into the payload, encoded as the core encodes metadata. A document that
has only content and meta has no payload.

A sparse embedding is also given to the core as the document's vector, which is searched and never
read: its weights are rounded, and its terms in another order.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from haystack.dataclasses import ByteStream, Document, SparseEmbedding

from bm25rag import Document as Stored
from bm25rag import Hit
from bm25rag.adapters import columns, decode_metadata, encode_metadata, spans_of
from bm25rag.errors import MetadataError
from bm25rag.vectors import read_vector

# The fields of a document that are those of no search.
_EMPTY = vars(Document(id="-"))
_set_fields = vars(Document)["__dict__"].__set__


def check_documents(documents: object) -> list[Document]:
    """Return an iterable of documents as a list."""
    message = "documents must be a list of Documents"
    if isinstance(documents, str | bytes | dict) or not isinstance(documents, Iterable):
        raise ValueError(f"{message}, got {type(documents).__name__}")
    given = list(documents)
    for row, document in enumerate(given):
        if not isinstance(document, Document):
            raise ValueError(f"{message}, got {type(document).__name__} at documents[{row}]")
    return given


def to_core(documents: Iterable[Document]) -> list[Stored]:
    """Return what ``BM25Index.add_documents`` takes; an error names document and key."""
    stored = []
    for row, document in enumerate(documents):
        try:
            payload = _payload(document)
        except MetadataError as error:
            raise error.at(f"documents[{row}]") from None
        vector = None
        if document.sparse_embedding is not None:
            vector = read_vector(document.sparse_embedding, f"documents[{row}].sparse_embedding")
        text = document.content or ""
        stored.append(Stored(document.id, text, document.meta, payload, vector))
    return stored


def from_core(
    stored: Sequence[Stored | Hit],
    scores: Sequence[float | None] | None = None,
    with_embedding: bool = True,
    spans_key: str | None = None,
) -> list[Document]:
    """Return new documents, with the scores of a search or else those they were written with.

    Under ``spans_key``, the meta of hits have the words that match.
    """
    ids, texts, metas, payloads = columns(stored, "id", "text", "metadata", "payload")
    if spans_key is not None:
        for meta, hit in zip(metas, stored, strict=True):
            meta[spans_key] = spans_of(hit)  # type: ignore[arg-type]
    given = [None] * len(ids) if scores is None else scores
    new, set_fields, made = Document.__new__, _set_fields, []
    for id, text, meta, payload, score in zip(ids, texts, metas, payloads, given, strict=True):
        if payload is None and id:
            # As ``Document(...)``, in a quarter of its time: nothing is left to check or compute.
            one = new(Document)
            set_fields(one, {**_EMPTY, "id": id, "content": text, "meta": meta, "score": score})
        else:
            one = _from_core(with_embedding, id, text, meta, payload, score)
        made.append(one)
    return made


def _from_core(
    with_embedding: bool,
    id: str,
    text: str | None,
    meta: dict[str, Any],
    payload: bytes | None,
    score: float | None,
) -> Document:
    rest = {} if payload is None else decode_metadata(payload)
    made: dict[str, Any] = {}
    if with_embedding and "embedding" in rest:
        made["embedding"] = _read_numbers(rest["embedding"])
    if sparse := rest.get("sparse_embedding"):
        numbers = _read_numbers(sparse["values"])
        made["sparse_embedding"] = SparseEmbedding(sparse["indices"], numbers)
    if blob := rest.get("blob"):
        data = base64.b64decode(blob["data"])
        made["blob"] = ByteStream(data, meta=blob["meta"], mime_type=blob["mime_type"])
    return Document(
        id=id,
        content=None if rest.get("no_content") else text,
        meta=meta,
        score=rest.get("score") if score is None else score,
        **made,
    )


def _payload(document: Document) -> bytes | None:
    rest: dict[str, Any] = {}
    if document.content is None:
        rest["no_content"] = True
    if (score := document.score) is not None:
        if not isinstance(score, int | float | np.number):
            raise MetadataError(document.id, "score", f"expected a number, got {score!r:.60}")
        rest["score"] = float(score)
    if (embedding := document.embedding) is not None:
        rest["embedding"] = _write_numbers(embedding, document.id, "embedding")
    if document.sparse_embedding is not None:
        rest["sparse_embedding"] = _write_sparse(document.sparse_embedding, document.id)
    if (blob := document.blob) is not None:
        data = base64.b64encode(blob.data).decode("ascii")
        rest["blob"] = {"data": data, "meta": blob.meta, "mime_type": blob.mime_type}
    return encode_metadata(rest, document.id) or None


def _write_numbers(numbers: Sequence[float], document: str, at: str) -> str:
    """Encode floats as base64 of little-endian float64: exact, at a tenth of JSON's cost."""
    array = _array(numbers, "fiu", "numbers", document, at)
    return base64.b64encode(array.astype("<f8").tobytes()).decode("ascii")


def _write_sparse(sparse: object, document: str) -> dict[str, Any]:
    if not isinstance(sparse, SparseEmbedding):
        problem = f"expected a SparseEmbedding, got {sparse!r:.60}"
        raise MetadataError(document, "sparse_embedding", problem)
    at = "sparse_embedding.indices"
    return {
        "indices": _array(sparse.indices, "iu", "integers", document, at).tolist(),
        "values": _write_numbers(sparse.values, document, "sparse_embedding.values"),
    }


def _array(
    numbers: Sequence[float], kinds: str, expected: str, document: str, at: str
) -> npt.NDArray[Any]:
    """Return a list of numbers whose types are of some kinds, as NumPy abbreviates them."""
    with suppress(TypeError, ValueError):  # what has no length, or lists of unlike lengths
        array = np.asarray(numbers) if len(numbers) else np.empty(0, kinds[0])
        if array.ndim == 1 and array.dtype.kind in kinds:
            return array
    raise MetadataError(document, at, f"expected a list of {expected}, got {numbers!r:.60}")


def _read_numbers(written: str) -> list[float]:
    numbers: list[float] = np.frombuffer(base64.b64decode(written), "<f8").tolist()
    return numbers

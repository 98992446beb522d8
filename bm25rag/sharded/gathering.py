"""The first step of a build: documents of any iterable, gathered part by part on disk.

A part is analysed, becomes a segment of the ordinary index folder ``building``, and is
committed there together with how many documents were read so far and a digest of them.
So a build that was killed goes on with the part that it was at.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from bm25rag.additions import Block, NewDocuments, NewRecords, Source
from bm25rag.common.strings import utf8
from bm25rag.documents import Document, Text
from bm25rag.errors import NotAnIndexError
from bm25rag.index import BM25Index, OnDuplicate
from bm25rag.segments.view import SegmentView
from bm25rag.sharded.manifest import BUILDING, commit_folder, remove

# Blocks of a part: each has up to a million characters or 16,384 documents.
PART = 64


class Gathered(BM25Index):
    """The documents of a build, each part a segment that no write merges."""

    def _tidied(self, views: Sequence[SegmentView]) -> Sequence[SegmentView]:
        return views


def read_source(
    documents: Iterable[Document | Text], store_text: bool, progress: bool
) -> NewDocuments | NewRecords:
    """Return what checks documents as it is iterated: ``Document`` records or texts."""
    remaining = iter(documents)
    first = list(islice(remaining, 1))
    everything: Iterable[Any] = chain(first, remaining)
    if first and isinstance(first[0], Document):
        return NewRecords(everything, store_text, progress)
    return NewDocuments(everything, None, None, None, store_text, progress)


def gather(
    source: NewDocuments | NewRecords,
    folder: str,
    empty: Gathered,
    shards: int,
    on_duplicate: OnDuplicate,
    threads: int | None,
) -> Gathered:
    """Gather all documents, or those that are missing since a build was interrupted.

    Parameters
    ----------
    source
        The documents, all of them, in the same order as before.
    folder
        The folder of the sharded index.
    empty
        An index without documents that has the settings.
    shards
        How many shards there will be.
    on_duplicate, threads
        As for ``BM25Index.add``.

    Raises
    ------
    ValueError
        If a build with other documents or settings was interrupted there.
    """
    path, tokenizer = os.path.join(folder, BUILDING), empty.analyzer.tokenizer
    begun = {"shards": shards, "store_text": source.store_text, "on_duplicate": on_duplicate}
    try:
        index = Gathered.open(path, tokenizer=tokenizer)
    except NotAnIndexError:
        remove(commit_folder(folder, 1))  # of a build that was given up
        empty.save(path, extra=begun | {"read": 0, "digest": "", "ended": False})
        index = Gathered.open(path, tokenizer=tokenizer)
    receipt = index.extra
    _check_settings(index, empty, begun, folder)
    blocks, digest = iter(source), _Digest()
    for block in blocks if receipt["read"] else ():
        digest.add(block)
        if digest.documents >= receipt["read"]:
            break
    if (digest.documents, str(digest)) != (receipt["read"], receipt["digest"] or str(_Digest())):
        raise _differing(folder, "documents are")
    while not receipt["ended"]:
        with Gathered.open(path, "w", tokenizer=tokenizer) as index:
            part = _Part(source, blocks, digest)
            index._add(part, on_duplicate, threads)
            receipt = begun | {
                "read": digest.documents,
                "digest": str(digest),
                "ended": part.ended,
            }
            index.save(path, extra=receipt)
    if next(blocks, None) is not None:
        raise _differing(folder, "documents are")
    return Gathered.open(path, tokenizer=tokenizer)


def _check_settings(index: Gathered, empty: Gathered, begun: dict[str, Any], folder: str) -> None:
    same = index.analyzer.to_dict() == empty.analyzer.to_dict()
    same = same and index._state.snapshot.parameters == empty._state.snapshot.parameters
    if not same or any(index.extra.get(name) != value for name, value in begun.items()):
        raise _differing(folder, "settings are")


def _differing(folder: str, what: str) -> ValueError:
    return ValueError(
        f"the {what} not those of the build that was interrupted in {folder}: "
        f"build with the same ones, or remove {os.path.join(folder, BUILDING)} to begin anew"
    )


class _Digest:
    """A digest of the ids and texts of documents, and how many there were."""

    def __init__(self) -> None:
        self.documents = 0
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, block: Block) -> None:
        # Lists of terms are not strings.
        texts = [text if isinstance(text, str) else repr(text) for text in block.texts]
        for strings in (block.ids or [], texts):
            lengths = np.fromiter(map(len, strings), "<i8", len(strings))
            self._hash.update(lengths.data)
            self._hash.update(utf8("".join(strings)))
        self.documents += len(block.texts)

    def __str__(self) -> str:
        return self._hash.hexdigest()


class _Part(Source):
    """The next blocks of a source."""

    def __init__(self, source: Source, blocks: Iterator[Block], digest: _Digest) -> None:
        self.row, self.store_text = source.row, source.store_text
        self._blocks, self._digest = blocks, digest
        self.ended = False

    def __iter__(self) -> Iterator[Block]:
        for _ in range(PART):
            block = next(self._blocks, None)
            if block is None:
                self.ended = True
                return
            self._digest.add(block)
            yield block

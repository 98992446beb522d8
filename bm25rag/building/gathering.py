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

from bm25rag.additions import Block, NewDocuments, NewRecords, Source, shown
from bm25rag.building.memory import merge_room, part_room
from bm25rag.building.plan import Plan
from bm25rag.common.strings import utf8
from bm25rag.documents import Document, Text
from bm25rag.errors import NotAnIndexError
from bm25rag.live.index import LiveIndex, open_folder
from bm25rag.segments.view import SegmentView
from bm25rag.storage.attachment import MergeSome
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.manifest import BUILDING
from bm25rag.storage.state import State


class PartsWriter(FolderWriter):
    """The writer of the folder ``building``: each part is a segment that no write merges."""

    packed = False  # they will be

    def tidy(self, views: Sequence[SegmentView], _: MergeSome) -> Sequence[SegmentView]:
        """Leave the segments as they are."""
        return views


def open_parts(path: str, plan: Plan, *, writing: bool = False) -> LiveIndex:
    """Open the folder of the parts, with the tokenizer of the build."""
    reader = FolderReader(path, True, plan.empty.analyzer.any_tokenizer, False)
    return open_folder(reader, PartsWriter.lock(path, 0.0) if writing else None)


def read_source(
    documents: Iterable[Document | Text],
    store_text: bool,
    progress: bool,
    names: tuple[str, ...] | None,
) -> NewDocuments | NewRecords:
    """Return what checks documents as it is iterated: ``Document`` records or texts."""
    remaining = iter(shown(documents, progress))
    first = list(islice(remaining, 1))
    everything: Iterable[Any] = chain(first, remaining)
    if first and isinstance(first[0], Document):
        return NewRecords(everything, store_text, False, names, bounded=True)
    return NewDocuments(everything, None, None, None, None, store_text, False, names)


def gather(
    documents: Iterable[Document | Text], folder: str, plan: Plan, shards: int | None
) -> State:
    """Gather all documents, or those that are missing since a build was interrupted.

    They are given all, in the same order as before; ``ValueError`` if they, or settings, are
    others. The state is that of the whole index, in parts, with the ``extra`` of the plan.
    """
    names = plan.empty.parameters.names
    source = read_source(documents, plan.store_text, plan.progress, names)
    path = os.path.join(folder, BUILDING)
    begun = {"shards": shards, "store_text": plan.store_text, "on_duplicate": plan.on_duplicate}
    receipt = _begin(path, plan, begun)
    if receipt is None:
        raise _differing(folder, "settings are")
    blocks, digest = iter(source), _Digest()
    for block in blocks if receipt["read"] else ():
        digest.add(block)
        if digest.documents >= receipt["read"]:
            break
    if (digest.documents, str(digest)) != (receipt["read"], receipt["digest"] or str(_Digest())):
        raise _differing(folder, "documents are")
    while not receipt["ended"]:
        index = open_parts(path, plan, writing=True)
        try:
            part = _Part(source, blocks, digest, part_room(plan.memory, plan.threads))
            index.add(part, plan.on_duplicate, plan.threads, wants_ids=False)
            if part.ended and not receipt["read"] and _fits(index.state.stored(), plan):
                return index.state.stored()._replace(extra=plan.extra)
            receipt = begun | {"read": digest.documents, "digest": str(digest), "ended": part.ended}
            index.commit(receipt)
        finally:
            index.abandon()
    if next(blocks, None) is not None:
        raise _differing(folder, "documents are")
    return open_parts(path, plan).state.stored()._replace(extra=plan.extra)


def _fits(state: State, plan: Plan) -> bool:
    """Whether segments in memory leave room to merge them."""
    return sum(view.segment.nbytes for view in state.views) <= merge_room(plan.memory)


def _begin(path: str, plan: Plan, begun: dict[str, Any]) -> dict[str, Any] | None:
    """Return the receipt of the last part; ``None`` if it is of a build with other settings."""
    empty, new = plan.empty, begun | {"read": 0, "digest": "", "ended": False}
    try:
        there = open_parts(path, plan).state.stored()
    except NotAnIndexError:
        there = empty._replace(extra=new)
        FolderWriter.write(path, there, overwrite=True, saved=None)
    same = there.parameters == empty.parameters
    same = same and there.analyzer.to_dict() == empty.analyzer.to_dict()
    same = same and all(type(there.extra.get(name)) is type(one) for name, one in new.items())
    return there.extra if same and begun.items() <= there.extra.items() else None


def _differing(folder: str, what: str) -> ValueError:
    return ValueError(
        f"the {what} not those of the build that was interrupted in {folder}: "
        f"build with the same ones, or remove {os.path.join(folder, BUILDING)} to begin anew"
    )


class _Digest:
    """A digest of the ids, texts and vectors of documents, and how many there were."""

    def __init__(self) -> None:
        self.documents = 0
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, block: Block) -> None:
        # Lists of terms are not strings.
        texts = [text if isinstance(text, str) else repr(text) for text in block.texts]
        for strings in (block.ids or [], texts):
            self._add_strings(strings)
        if block.vectors is not None:
            vectors = [vector or {} for vector in block.vectors]
            self._hash.update(np.fromiter(map(len, vectors), "<i8", len(vectors)).data)
            self._add_strings(list(chain(*vectors)))
            each = chain.from_iterable(vector.values() for vector in vectors)
            self._hash.update(np.fromiter(each, "<f8").data)
        self.documents += len(block.texts)

    def _add_strings(self, strings: Sequence[str]) -> None:
        lengths = np.fromiter(map(len, strings), "<i8", len(strings))
        self._hash.update(lengths.data)
        self._hash.update(utf8("".join(strings)))

    def __str__(self) -> str:
        return self._hash.hexdigest()


class _Part(Source):
    """The next blocks of a source, as many as there is room for."""

    merged = True

    def __init__(self, source: Source, blocks: Iterator[Block], digest: _Digest, room: int) -> None:
        self.row, self.store_text, self.room = source.row, source.store_text, room
        self._blocks, self._digest = blocks, digest
        self.ended = False

    def __iter__(self) -> Iterator[Block]:
        for block in self._blocks:
            self._digest.add(block)
            yield block
        self.ended = True

"""New documents become a segment: their ids are resolved, and they are analysed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from bm25rag.additions import Block, Source
from bm25rag.analysis import Analyzer
from bm25rag.common.checks import check_sequence
from bm25rag.common.codec import encode_metadata
from bm25rag.common.gil import release_gil, releasing_gil
from bm25rag.common.storable import plain_metadata
from bm25rag.errors import DuplicateIdError, MetadataError
from bm25rag.merging.merge import merge_segments
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.builder import SegmentBuilder
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView


class Added(NamedTuple):
    """A new segment, and the ids of its documents, if they were wanted.

    ``replaced`` are the documents, as segment and number, that it replaces.
    """

    segment: Segment
    ids: list[str]
    replaced: set[tuple[int, int]]
    next_id: int


def analyse_documents(
    documents: Source,
    analyzer: Analyzer,
    snapshot: Snapshot,
    next_id: int,
    on_duplicate: str,
    threads: int,
    wants_ids: bool,
) -> Added:
    """Analyse new documents; raise as ``BM25Index.add``."""
    ids = _Ids(snapshot, next_id, on_duplicate, documents.merged)
    with SegmentBuilder(analyzer, threads, snapshot.parameters.names) as builder:
        for block in documents:
            admitted, block = ids.admit(block)
            release_gil()
            metadata = None
            if block.metadata is not None:
                metadata = _plain_each(documents.row, block, admitted)
            try:
                columns = (metadata, block.payloads, block.vectors)
                builder.add(admitted, block.texts, documents.store_text, *columns)
            except MetadataError as error:  # an integer too long to be written
                row = block.rows[admitted.index(error.document)]
                raise error.at(documents.row.format(row)) from None
            if builder.nbytes >= documents.room:
                break
        segment = builder.finish(documents.merged)
    if ids.stale:
        segment = merge_segments([SegmentView(segment).without(ids.stale)])
    return Added(segment, ids.written() if wants_ids else [], ids.replaced, ids.next_id)


def _plain_each(name: str, block: Block, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the metadata of a block as they will be written; errors name the row."""
    plain: list[dict[str, Any]] = []
    try:
        for id, one in releasing_gil(zip(ids, block.metadata or (), strict=True)):
            plain.append(plain_metadata(one, id))
    except MetadataError as error:
        raise error.at(name.format(block.rows[len(plain)])) from None
    except TypeError as error:
        raise TypeError(f"{name.format(block.rows[len(plain)])}: {error}") from None
    return plain


def encode_each(
    ids: Sequence[str], metadata: Iterable[Mapping[str, Any] | None]
) -> dict[str, bytes]:
    """Return the new metadata of each document as they are stored; errors name the row."""
    given = list(check_sequence("metadata", metadata, "dicts"))
    if len(given) != len(ids):
        raise ValueError(f"metadata must be one dict for each of {len(ids)} ids, got {len(given)}")
    encoded: dict[str, bytes] = {}
    for row, (id, one) in enumerate(releasing_gil(zip(ids, given, strict=True))):
        try:
            encoded[id] = encode_metadata(one, id)
        except MetadataError as error:
            raise error.at(f"metadata[{row}]") from None
    return encoded


class _Ids:
    """Gives new documents their ids, and decides which to admit if ids occur again.

    ``building`` is whether all documents of the snapshot are of the same call.
    """

    def __init__(self, snapshot: Snapshot, next_id: int, on_duplicate: str, building: bool) -> None:
        self._snapshot = snapshot
        self._on_duplicate = on_duplicate
        self._building = building
        self._count = 0
        self.next_id = next_id
        self._generated: list[range | list[int]] = []
        self._documents: dict[str, int] = {}  # the number of each given id, in document order
        self.replaced: set[tuple[int, int]] = set()
        self.stale: list[int] = []

    def written(self) -> list[str]:
        """Return the ids of all admitted documents, in document order.

        A million strings take 60 MB, which a build has use for.
        """
        if self._generated:
            return list(map(str, chain.from_iterable(self._generated)))
        return list(self._documents)

    def admit(self, block: Block) -> tuple[list[str], Block]:
        """Return the ids of the admitted documents, and these documents."""
        ids = block.ids
        if ids is None:
            return self._generate(len(block.texts)), block
        if (
            len(set(ids)) == len(ids)
            and self._documents.keys().isdisjoint(ids)
            and not self._snapshot.existing(ids)
        ):
            self._documents.update(
                zip(ids, range(self._count, self._count + len(ids)), strict=True)
            )
            self._count += len(ids)
            return ids, block
        admitted = [index for index, id in releasing_gil(enumerate(ids)) if self._admit(id)]
        return [ids[index] for index in admitted], block.only(admitted)

    def _generate(self, size: int) -> list[str]:
        """Return the next decimal numbers that are not the id of any document."""
        ids: list[str] = []
        while len(ids) < size:
            more = range(self.next_id, self.next_id + size - len(ids))
            new = list(map(str, more))
            taken = self._snapshot.existing(new)
            ids += [id for id in new if id not in taken] if taken else new
            free = [number for number in more if str(number) not in taken] if taken else more
            self._generated.append(free)
            self.next_id = more.stop
        return ids

    def _admit(self, id: str) -> bool:
        earlier, present = self._documents.get(id), self._snapshot.find(id)
        if earlier is not None or present is not None:
            if self._on_duplicate == "error":
                twice = earlier is not None or self._building
                where = "occurs twice in ids" if twice else "is in the index already"
                raise DuplicateIdError(
                    f"the id {id!r} {where}; choose on_duplicate='skip' or 'replace' to allow that"
                )
            if self._on_duplicate == "skip":
                return False
            if earlier is not None:
                self.stale.append(earlier)
            if present is not None:
                self.replaced.add(present)
        self._documents.pop(id, None)  # so that the ids stay in document order
        self._documents[id] = self._count
        self._count += 1
        return True

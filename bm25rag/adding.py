"""What ``add`` does before anything is installed: check, analyse, resolve duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from bm25rag._types import are_strings, check_sequence
from bm25rag.analysis import Analyzer
from bm25rag.documents import encode_metadata
from bm25rag.errors import DuplicateIdError
from bm25rag.merging import merge_parts
from bm25rag.reader import Text, check_id
from bm25rag.segment import Part, Segment, SegmentBuilder
from bm25rag.snapshot import Snapshot

_END = object()


@dataclass(frozen=True)
class NewDocuments:
    """The arguments of ``add``, checked as they are iterated."""

    texts: Iterable[Text]
    ids: Iterable[str] | None
    metadata: Iterable[dict[str, Any] | None] | None
    payloads: Iterable[bytes | None] | None
    store_text: bool
    progress: bool

    def __post_init__(self) -> None:
        check_sequence("texts", self.texts, "texts")
        for name in ("ids", "metadata", "payloads"):
            value = getattr(self, name)
            if value is not None:
                check_sequence(name, value, "one element for each text")

    def __iter__(self) -> Iterator[tuple[Text, str | None, object, bytes | None]]:
        """Yield text, id, metadata and payload of each document."""
        if self.ids is None and self.metadata is None and self.payloads is None:
            for number, text in enumerate(self._shown()):
                yield (text if type(text) is str else _check_text(text, number)), None, None, None
            return
        beside = [
            repeat(None) if given is None else chain(given, repeat(_END))
            for given in (self.ids, self.metadata, self.payloads)
        ]
        number = 0
        for number, (text, id, metadata, payload) in enumerate(
            zip(self._shown(), *beside, strict=False), 1
        ):
            self._check_end(number, id, metadata, payload, too_long=False)
            yield (
                _check_text(text, number - 1),
                None if self.ids is None else check_id(f"ids[{number - 1}]", id),
                metadata,
                _check_payload(payload, number - 1),
            )
        self._check_end(number, *map(next, beside), too_long=True)

    def _shown(self) -> Iterable[Text]:
        if not self.progress:
            return self.texts
        from tqdm import tqdm

        shown: Iterable[Text] = tqdm(self.texts, desc="indexing", unit=" docs")
        return shown

    def _check_end(self, number: int, *values: object, too_long: bool) -> None:
        given = (self.ids, self.metadata, self.payloads)
        for name, source, value in zip(("ids", "metadata", "payloads"), given, values, strict=True):
            if source is not None and (value is not _END) == too_long:
                count = f"more than {number}" if too_long else f"only {number - 1}"
                raise ValueError(f"{name} must have one element for each text, got {count}")


def _check_text(text: object, number: int) -> Text:
    if isinstance(text, str):
        return text
    if isinstance(text, (list, tuple)) and are_strings(text):
        return list(text)
    raise TypeError(f"texts[{number}] must be a str or a list of terms, got {text!r:.100}")


def _check_payload(payload: object, number: int) -> bytes | None:
    if payload is not None and not isinstance(payload, bytes):
        raise TypeError(f"payloads[{number}] must be bytes or None, got {type(payload).__name__}")
    return payload


@dataclass(frozen=True)
class Added:
    """A segment ready to be installed.

    ``replaced`` are the documents, as part and number, that it takes the place of.
    """

    segment: Segment
    ids: list[str]
    replaced: set[tuple[int, int]]
    next_id: int


def take_documents(
    documents: NewDocuments, analyzer: Analyzer, snapshot: Snapshot, next_id: int, on_duplicate: str
) -> Added:
    """Analyse new documents; see ``BM25Index.add`` for what is raised."""
    builder = SegmentBuilder(analyzer)
    places: dict[str, int] = {}
    replaced: set[tuple[int, int]] = set()
    stale: list[int] = []
    find = snapshot.find if snapshot.parts else _find_nothing
    count = 0
    for text, id, metadata, payload in documents:
        if id is None:
            while str(next_id) in places or find(str(next_id)) is not None:
                next_id += 1
            id, next_id = str(next_id), next_id + 1
        earlier, present = places.get(id), find(id)
        if earlier is not None or present is not None:
            if on_duplicate == "error":
                where = "occurs twice in ids" if earlier is not None else "is in the index already"
                raise DuplicateIdError(
                    f"the id {id!r} {where}; choose on_duplicate='skip' or 'replace' to allow that"
                )
            if on_duplicate == "skip":
                continue
            if earlier is not None:
                stale.append(earlier)
            if present is not None:
                replaced.add(present)
        places.pop(id, None)  # so that the ids stay in document order
        places[id] = count
        count += 1
        builder.add(id, text, documents.store_text, encode_metadata(metadata, id), payload)
    segment = builder.finish()
    if stale:
        segment = merge_parts([Part(segment).without(stale)])
    return Added(segment, list(places), replaced, next_id)


def _find_nothing(id: str) -> tuple[int, int] | None:
    return None

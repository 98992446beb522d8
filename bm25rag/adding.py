"""What ``add`` does before anything is installed: check, analyse, resolve duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from bm25rag._types import are_strings, check_sequence
from bm25rag.analysis import Analyzer
from bm25rag.documents import DEEPEST, plain_metadata
from bm25rag.errors import DuplicateIdError
from bm25rag.merging import merge_parts
from bm25rag.reader import Text, check_id
from bm25rag.segment import Part, Segment, SegmentBuilder
from bm25rag.snapshot import Snapshot
from bm25rag.turns import give_way, in_turns

# Characters of text that are gathered before they are analysed and counted.
CHUNK = 1 << 20
# Documents, since each brings metadata too.
_MOST = 1 << 14

_END = object()
_BESIDE = ("ids", "metadata", "payloads")


class Block(NamedTuple):
    """Some documents; ``None`` for what was not given."""

    texts: list[Text]
    ids: list[str] | None = None
    metadata: list[dict[str, Any] | None] | None = None
    payloads: list[bytes | None] | None = None

    def only(self, kept: list[int]) -> Block:
        """Return some of the documents."""
        columns: list[Any] = [column and [column[number] for number in kept] for column in self]
        return Block(*columns)


class NewDocuments:
    """The arguments of ``add``, checked as they are iterated."""

    def __init__(
        self,
        texts: Iterable[Text],
        ids: Iterable[str] | None,
        metadata: Iterable[dict[str, Any] | None] | None,
        payloads: Iterable[bytes | None] | None,
        store_text: bool,
        progress: bool,
    ) -> None:
        self.texts, self.ids, self.metadata, self.payloads = texts, ids, metadata, payloads
        self.store_text, self.progress = store_text, progress
        check_sequence("texts", texts, "texts")
        for name in ("ids", "metadata", "payloads"):
            value = getattr(self, name)
            if value is not None:
                check_sequence(name, value, "one element for each text")

    def __iter__(self) -> Iterator[Block]:
        """Yield the documents, some at a time."""
        beside = {
            name: iter(given) for name in _BESIDE if (given := getattr(self, name)) is not None
        }
        done = 0
        for texts, columns in self._gather(beside):
            if "ids" in columns:
                ids = enumerate(columns["ids"], done)
                columns["ids"] = [check_id(f"ids[{number}]", id) for number, id in ids]
            for number, payload in enumerate(columns.get("payloads", ()), done):
                _check_payload(payload, number)
            yield Block(texts, **columns)
            done += len(texts)
        for name, given in beside.items():
            if next(given, _END) is not _END:
                raise _wrong_length(name, f"more than {done}")

    def _gather(
        self, beside: dict[str, Iterator[Any]]
    ) -> Iterator[tuple[list[Text], dict[str, list[Any]]]]:
        """Yield texts and what is beside them.

        Iterators are asked in step with the texts, since they may share a source with them,
        and what they yield is copied, since they may yield one dict again and again.
        """
        in_step = [name for name in beside if not isinstance(getattr(self, name), (list, tuple))]
        texts: list[Text] = []
        columns: dict[str, list[Any]] = {name: [] for name in in_step}
        room, done = CHUNK, 0
        for number, text in enumerate(in_turns(self._shown())):
            texts.append(text if type(text) is str else _check_text(text, number))
            for name in in_step:
                if (value := next(beside[name], _END)) is _END:
                    raise _wrong_length(name, f"only {number}")
                columns[name].append(_copied(value) if name == "metadata" else value)
            room -= len(text)
            if room <= 0 or len(texts) == _MOST:
                yield texts, columns | self._take(beside, in_step, done, len(texts))
                done += len(texts)
                texts, columns, room = [], {name: [] for name in in_step}, CHUNK
        if texts:
            yield texts, columns | self._take(beside, in_step, done, len(texts))

    def _take(
        self, beside: dict[str, Iterator[Any]], taken: list[str], done: int, size: int
    ) -> dict[str, list[Any]]:
        columns = {}
        for name in beside.keys() - taken:
            columns[name] = list(islice(beside[name], size))
            if len(columns[name]) < size:
                raise _wrong_length(name, f"only {done + len(columns[name])}")
        return columns

    def _shown(self) -> Iterable[Text]:
        if not self.progress:
            return self.texts
        from tqdm import tqdm

        shown: Iterable[Text] = tqdm(self.texts, desc="indexing", unit=" docs")
        return shown


def _copied(metadata: Any) -> Any:
    """Return metadata as they are now; those too deep to be stored are refused later."""
    try:
        return _copy(metadata, DEEPEST + 1)
    except RecursionError:
        return metadata


def _copy(value: Any, levels: int) -> Any:
    if type(value) not in (dict, list):
        return value
    if not levels:
        raise RecursionError
    if type(value) is list:
        return [_copy(item, levels - 1) for item in value]
    return {key: _copy(item, levels - 1) for key, item in value.items()}


def _wrong_length(name: str, got: str) -> ValueError:
    return ValueError(f"{name} must have one element for each text, got {got}")


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


class Added(NamedTuple):
    """A segment ready to be installed.

    ``replaced`` are the documents, as part and number, that it takes the place of.
    """

    segment: Segment
    ids: list[str]
    replaced: set[tuple[int, int]]
    next_id: int


def take_documents(
    documents: NewDocuments,
    analyzer: Analyzer,
    snapshot: Snapshot,
    next_id: int,
    on_duplicate: str,
    threads: int,
) -> Added:
    """Analyse new documents; see ``BM25Index.add`` for what is raised."""
    ids = _Ids(snapshot, next_id, on_duplicate)
    with SegmentBuilder(analyzer, threads) as builder:
        for block in documents:
            taken, block = ids.take(block)
            give_way()
            metadata = None
            if block.metadata is not None:
                given = zip(block.metadata, taken, strict=True)
                metadata = [plain_metadata(one, id) for one, id in in_turns(given)]
            builder.add(taken, block.texts, documents.store_text, metadata, block.payloads)
        segment = builder.finish()
    if ids.stale:
        segment = merge_parts([Part(segment).without(ids.stale)])
    return Added(segment, ids.written, ids.replaced, ids.next_id)


class _Ids:
    """Gives new documents their ids, and decides which are taken where ids occur again."""

    def __init__(self, snapshot: Snapshot, next_id: int, on_duplicate: str) -> None:
        self._snapshot = snapshot
        self._on_duplicate = on_duplicate
        self._count = 0
        self.next_id = next_id
        self._numbers: list[str] = []
        self._places: dict[str, int] = {}  # in document order
        self.replaced: set[tuple[int, int]] = set()
        self.stale: list[int] = []

    @property
    def written(self) -> list[str]:
        """The ids of all documents taken, in document order."""
        return self._numbers or list(self._places)

    def take(self, block: Block) -> tuple[list[str], Block]:
        """Return the ids of the documents taken, and those documents."""
        ids = block.ids
        if ids is None:
            ids = self._number(len(block.texts))
            self._numbers += ids
            return ids, block
        if (
            len(set(ids)) == len(ids)
            and self._places.keys().isdisjoint(ids)
            and not self._snapshot.taken(ids)
        ):
            self._places.update(zip(ids, range(self._count, self._count + len(ids)), strict=True))
            self._count += len(ids)
            return ids, block
        kept = [number for number, id in in_turns(enumerate(ids)) if self._admit(id)]
        return [ids[number] for number in kept], block.only(kept)

    def _number(self, size: int) -> list[str]:
        """Return the next decimal numbers that no document has."""
        ids: list[str] = []
        while len(ids) < size:
            more = range(self.next_id, self.next_id + size - len(ids))
            new = list(map(str, more))
            taken = self._snapshot.taken(new)
            ids += [id for id in new if id not in taken] if taken else new
            self.next_id = more.stop
        return ids

    def _admit(self, id: str) -> bool:
        earlier, present = self._places.get(id), self._snapshot.find(id)
        if earlier is not None or present is not None:
            if self._on_duplicate == "error":
                where = "occurs twice in ids" if earlier is not None else "is in the index already"
                raise DuplicateIdError(
                    f"the id {id!r} {where}; choose on_duplicate='skip' or 'replace' to allow that"
                )
            if self._on_duplicate == "skip":
                return False
            if earlier is not None:
                self.stale.append(earlier)
            if present is not None:
                self.replaced.add(present)
        self._places.pop(id, None)  # so that the ids stay in document order
        self._places[id] = self._count
        self._count += 1
        return True

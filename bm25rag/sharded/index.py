"""ShardedIndex: all shards of a folder as one index; and one shard of it, for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Self, cast

from bm25rag.analysis import Analyzer, Tokenizer
from bm25rag.attachment import MEMORY, Attachment, Unattached
from bm25rag.common.checks import check_count
from bm25rag.common.urls import is_url
from bm25rag.errors import ReadOnlyError
from bm25rag.index import BM25Index, _State, local_folder
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView
from bm25rag.sharded.folder import ShardedReader, ShardedWriter, verify_sharded
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter

if TYPE_CHECKING:
    from bm25rag.storage.remote_mirror import Mirror

_SHARD = Unattached("a shard of a sharded index", True, "open the whole index with mode='w'")


class ShardedIndex(BM25Index):
    """All shards of a folder as one index, with everything that ``BM25Index`` offers.

    ``build`` makes the folder, ``open`` opens it. Ids, order and score bits are those of a
    plain index of the same documents. ``mode="w"`` writes: new and replaced documents go to
    the last shard or, if that has reached its capacity, to a new one behind it; deletions
    and new metadata to the shards that hold the documents. ``commit`` renews the statistics
    and writes all shards as one new commit, which reads the terms of every shard: commit
    rarely. ``save`` to another folder writes a plain index, and copies in memory are plain
    indexes. ``reanalyze`` is refused: build anew.
    """

    _reader_type: ClassVar[type[FolderReader]] = ShardedReader
    _writer_type: ClassVar[type[FolderWriter]] = ShardedWriter

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(
            "a ShardedIndex is made by BM25Index.build(documents, folder, shards=...) "
            "and opened by BM25Index.open(folder)"
        )

    @classmethod
    def _verify(cls, folder: str) -> None:
        verify_sharded(folder)

    @classmethod
    def _mirror(
        cls, url: str, cache: str | PathLike[str] | None, options: dict[str, Any] | None
    ) -> Mirror:
        return _mirror(url, cache, options)

    def reanalyze(self, analyzer: Analyzer | None = None) -> NoReturn:
        """Refuse: the new index would be in memory, and not sharded.

        Raises
        ------
        ReadOnlyError
            Always; the message says what to do.
        """
        raise ReadOnlyError(
            "a sharded index cannot be re-analysed in memory: pass its documents and the new "
            "analyzer to BM25Index.build(shards=...), with another folder"
        )

    # --- writing: segments stay within their shards ------------------------------------

    def _tidied(self, views: Sequence[SegmentView]) -> Sequence[SegmentView]:
        writer = self._sharded_writer()
        tidied: list[SegmentView] = []
        for shard, group in enumerate(writer.by_shard(views)):
            tidied += writer.assign(super()._tidied(group), shard)
        return tidied

    def _merge(
        self, choose: Callable[[Sequence[SegmentView]], Sequence[Sequence[SegmentView]]]
    ) -> None:
        def within_shards(views: Sequence[SegmentView]) -> Sequence[Sequence[SegmentView]]:
            groups = self._sharded_writer().by_shard(views)
            return [chosen for group in groups for chosen in choose(group)]

        super()._merge(within_shards)

    def _merged(self, group: Sequence[SegmentView]) -> Segment:
        writer, merged = self._sharded_writer(), super()._merged(group)
        writer.assign([SegmentView(merged)], writer.shard_of(group[0]))
        return merged

    def _sharded_writer(self) -> ShardedWriter:
        assert isinstance(self._attachment, ShardedWriter)
        return self._attachment

    # --- copies ------------------------------------------------------------------------

    @classmethod
    def _made(cls, state: _State, attachment: Attachment) -> Self:
        if attachment is MEMORY:  # a copy, which no folder is open for
            return cast("Self", BM25Index._made(state, attachment))
        return super()._made(state, attachment)


class OpenShard(NamedTuple):
    """One shard of a sharded index, opened for reading.

    Its answers can be merged with those of shards of the same ``commit``.

    Parameters
    ----------
    searcher
        An index of its documents; scores are those of the whole index. ``correct``, ``expand``,
        ``vocabulary``, ``document_frequencies`` and ``stats`` know this shard alone.
    number
        Which shard it is, from 0.
    first_row
        The row of its first document in the whole index.
    commit
        The number of the commit.
    """

    searcher: BM25Index
    number: int
    first_row: int
    commit: int


def open_shard(
    folder: str | PathLike[str],
    number: int,
    *,
    mmap: bool = True,
    tokenizer: Tokenizer | None = None,
    untrusted: bool = False,
    cache: str | PathLike[str] | None = None,
    storage_options: dict[str, Any] | None = None,
) -> OpenShard:
    """Open one shard of a sharded index.

    Parameters
    ----------
    folder
        The folder of the sharded index, or its URL, of which this shard and the statistics of
        all are fetched.
    number
        Which shard, from 0.
    mmap, tokenizer, untrusted, cache, storage_options
        As for ``BM25Index.open``.

    Raises
    ------
    ValueError
        If there is no such shard.
    NotAnIndexError, FormatVersionError, CorruptIndexError, RemoteError
        As ``BM25Index.open``; no other shard is looked at.
    """
    only, mirror = check_count("number", number), None
    if is_url(folder):
        mirror = _mirror(str(folder), cache, storage_options, only)
    path = local_folder(folder, cache, storage_options) if mirror is None else mirror.folder
    reader = ShardedReader(path, mmap, tokenizer, untrusted, only)
    reader.mirror = mirror
    with reader.synced():
        searcher = BM25Index._made(_State.of(reader.read()), _SHARD)
    return OpenShard(searcher, only, reader.sharded.first_rows[only], reader.sharded.commit)


def _mirror(
    url: str,
    cache: str | PathLike[str] | None,
    options: dict[str, Any] | None,
    only: int | None = None,
) -> Mirror:
    from bm25rag.sharded.remote import ShardedMirror

    return ShardedMirror(url, cache, options, only)

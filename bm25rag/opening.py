"""Which kind of index is behind a path or URL, and how that is opened."""

from __future__ import annotations

from functools import partial
from os import PathLike
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any, get_args

from bm25rag.analysis import Analyzer, Tokenizer
from bm25rag.common.checks import check_choice, check_flag, check_real
from bm25rag.common.urls import is_url, local_path
from bm25rag.errors import ReadOnlyError
from bm25rag.live.index import LiveIndex, Mode, check_analyzer, new_state, open_folder
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.kept_commits import check_commit_id
from bm25rag.storage.state import State as StoredState
from bm25rag.storage.state import check_settings

if TYPE_CHECKING:
    from datetime import timedelta

    from bm25rag.storage.remote_mirror import Mirror


def open_index(
    path: str | PathLike[str],
    mode: Mode = "r",
    *,
    mmap: bool,
    tokenizer: Tokenizer | None,
    verify: bool = False,
    untrusted: bool,
    timeout: float = 0.0,
    analyzer: Analyzer | None = None,
    cache: str | PathLike[str] | None,
    storage_options: dict[str, Any] | None,
    offline: bool,
    commit: str | None,
    keep: str | timedelta | None = None,
    **parameters: Any,
) -> LiveIndex:
    """Open an index; see ``BM25Index.open``. ``parameters`` that are ``None`` are not given."""
    check_choice("mode", mode, get_args(Mode))
    flags = {"mmap": mmap, "verify": verify, "untrusted": untrusted, "offline": offline}
    for name, value in flags.items():
        check_flag(name, value)
    seconds = check_real("timeout", timeout, 0.0, TIMEOUT_MAX)
    given = {name: value for name, value in parameters.items() if value is not None}
    tokenizer = _tokenizer_of(analyzer, tokenizer)
    kept = _check_commits(path, mode, commit, keep)
    if is_url(path):
        if mode != "r":
            raise ReadOnlyError(
                f"mode={mode!r} needs a folder of this machine, which it can lock: open a URL "
                "for reading, change a copy (copy.copy(index)) and save() it to the URL, which "
                "uploads what is new"
            )
        mirror = find_mirror(str(path), cache, storage_options, offline)
        folder = mirror.folder
    else:
        mirror, folder = None, local_folder(path, cache, storage_options, offline)

    def empty() -> StoredState:
        settled = Analyzer(tokenizer=tokenizer) if tokenizer and not analyzer else analyzer
        return new_state(settled, **given).stored()

    def check(stored: StoredState) -> None:
        check_settings(str(path), stored, analyzer, given)
        if verify:
            reader.verify(stored)

    writer = None
    if mode != "r":
        writer = FolderWriter.lock(folder, seconds, empty if mode == "a" else None)
    reader = FolderReader(folder, mmap, tokenizer, untrusted)
    reader.mirror, reader.commit = None if offline else mirror, commit
    index = open_folder(reader, writer, check)
    if writer is None:
        reader.source = folder if mirror is None else str(path)
        reader.opened_by = partial(
            open_index,
            reader.source,
            mmap=mmap,
            tokenizer=tokenizer,
            untrusted=untrusted,
            cache=cache,
            storage_options=storage_options,
            offline=offline,
            commit=commit,
        )
    elif kept is not None:
        writer.keep = kept
    return index


def local_folder(
    path: str | PathLike[str],
    cache: object = None,
    storage_options: object = None,
    offline: object = False,
) -> str:
    """Return the real path of a folder of this machine; refuse arguments that are for URLs."""
    given = {"cache": cache, "storage_options": storage_options, "offline": offline or None}
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is for URLs such as 's3://bucket/index', got a folder's path")
    return local_path(path)


def find_mirror(
    url: str, cache: str | PathLike[str] | None, options: dict[str, Any] | None, offline: bool
) -> Mirror:
    """Return the cache of what is behind a URL, which may be out of date."""
    from bm25rag.storage.remote_mirror import Mirror, find_cache

    mirror = Mirror(*find_cache(url, cache, options))
    if offline:
        mirror.check_cached()
    return mirror


def _check_commits(
    path: object, mode: Mode, commit: object, keep: str | timedelta | None
) -> int | None:
    """Check which commit is to be read; return how many milliseconds earlier ones are kept."""
    if commit is not None:
        check_commit_id(commit)
        if mode != "r" or is_url(path):
            raise ValueError(
                f"commit needs mode='r' and a folder of this machine, got mode={mode!r} and "
                f"{str(path)!r}; save the commit in another folder to change it"
            )
    if keep is None:
        return None
    if mode == "r":
        raise ValueError("keep is for writers, mode='w' or mode='a', got mode='r'")
    from datetime import timedelta

    from bm25rag.decay import parse_span  # few writers say it

    if keep in ("0", timedelta()):
        return 0
    return max(1, parse_span("keep", keep) // timedelta(milliseconds=1))


def _tokenizer_of(analyzer: Analyzer | None, tokenizer: Tokenizer | None) -> Tokenizer | None:
    """Return the callable that ``open`` is given, as ``tokenizer`` or within ``analyzer``."""
    check_analyzer(analyzer)
    if analyzer is None:
        return tokenizer
    if tokenizer not in (None, analyzer.any_tokenizer):
        raise ValueError("tokenizer is another than that of analyzer: give one of the two")
    return analyzer.any_tokenizer

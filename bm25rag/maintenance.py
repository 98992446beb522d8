"""What keeps saved indexes alive: backups while a writer works, restoring them, and repair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from os import PathLike
from typing import Any, NamedTuple

from bm25rag.common.checks import check_flag
from bm25rag.common.clock import iso_time
from bm25rag.common.urls import is_url
from bm25rag.opening import kind_of, local_folder
from bm25rag.sharded.manifest import read_sharded
from bm25rag.storage.folder_copy import copy_folder
from bm25rag.storage.kept_commits import AnyManifest, read_kept
from bm25rag.storage.local_store import LocalStore
from bm25rag.storage.manifest import SHARDED, is_sharded, read_manifest
from bm25rag.storage.remote import RemoteStore
from bm25rag.storage.remote_mirror import Mirror, Store
from bm25rag.storage.remote_writer import upload_folder
from bm25rag.storage.repair import Damage


def backup(
    path: str | PathLike[str],
    target: str | PathLike[str],
    link: bool,
    overwrite: bool,
    storage_options: Mapping[str, Any] | None,
) -> None:
    """Copy the last commit of a folder; see ``BM25Index.backup``."""
    source = LocalStore(_index_folder(path), check_flag("link", link))
    check_flag("overwrite", overwrite)
    if not is_url(target):
        copy_folder(
            _mirror(source, local_folder(target, storage_options=storage_options)), overwrite
        )
    else:
        store = RemoteStore(str(target), storage_options)
        upload_folder(_mirror(source, ""), store, overwrite)


def restore(
    source: str | PathLike[str],
    path: str | PathLike[str],
    overwrite: bool,
    storage_options: Mapping[str, Any] | None,
) -> None:
    """Make a folder of the last commit of another one; see ``BM25Index.restore``."""
    store: Store
    if is_url(source):
        store = RemoteStore(str(source), storage_options)
    else:
        store = LocalStore(_index_folder(source, storage_options))
    copy_folder(_mirror(store, _index_folder(path)), check_flag("overwrite", overwrite))


def repair(path: str | PathLike[str], dry_run: bool) -> list[Damage]:
    """Commit what is whole in a folder; see ``BM25Index.repair``."""
    folder = _index_folder(path)
    return kind_of(is_sharded(folder)).repair(folder, check_flag("dry_run", dry_run))


class Commit(NamedTuple):
    """A commit that a folder holds: its ``commit_id``, and when it was made."""

    id: str
    time: datetime


def list_commits(path: str | PathLike[str]) -> list[Commit]:
    """Return the commits of a folder; see ``BM25Index.commits``."""
    folder = _index_folder(path)
    reader: Callable[..., AnyManifest] = read_sharded if is_sharded(folder) else read_manifest

    def read(name: str | None) -> AnyManifest:
        return reader(folder, name=name)

    last = read(None)
    earlier = [one for one in read_kept(folder, read)[0].values() if one.commit < last.commit]
    return [
        Commit(one.commit_id, datetime.fromisoformat(iso_time(one.time)))
        for one in [*earlier, last]
    ]


def _index_folder(path: str | PathLike[str], storage_options: object = None) -> str:
    if is_url(path):
        raise ValueError(
            f"{path}: an index is backed up from, and restored to, a folder of this machine; "
            "BM25Index.restore copies one from a URL"
        )
    return local_folder(path, storage_options=storage_options)


def _mirror(store: Store, folder: str) -> Mirror:
    return kind_of(store.read(SHARDED) is not None).mirror(store, folder)

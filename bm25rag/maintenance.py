"""What is done to a saved index by its path: checks, backups while a writer works, and repair.

``BM25Index`` has these functions as static methods.
"""

from __future__ import annotations

from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from bm25rag.common.checks import check_flag
from bm25rag.common.clock import iso_time
from bm25rag.common.urls import is_url
from bm25rag.opening import find_mirror, local_folder
from bm25rag.storage.kept_commits import read_kept
from bm25rag.storage.manifest import read_manifest

if TYPE_CHECKING:
    from bm25rag.storage.remote_mirror import Store
    from bm25rag.storage.repair import Damage


class Commit(NamedTuple):
    """A commit that a folder holds: its ``commit_id``, and when it was made."""

    id: str
    time: datetime


def verify(
    path: str | PathLike[str],
    *,
    cache: str | PathLike[str] | None = None,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Check every byte of a saved index, and that its files say what bm25rag would write.

    It reads the whole index. ``docs/format.md`` lists what is checked. Errors are those of
    ``open``; the message names a damaged file.

    Parameters
    ----------
    path, cache, storage_options
        As in ``open``; what is behind a URL is fetched into the cache.
    """
    from bm25rag.storage.verify import verify_folder

    if is_url(path):
        mirror = find_mirror(str(path), cache, storage_options, offline=False)
        with mirror.synced():
            verify_folder(mirror.folder)
    else:
        verify_folder(local_folder(path, cache, storage_options))


def commits(path: str | PathLike[str]) -> list[Commit]:
    """Return the commits that a folder holds, the oldest first: those kept, and the last.

    Each has its ``id``, for ``open(path, commit=id)``, and the ``time`` when it was made.

    Parameters
    ----------
    path
        The folder; of a sharded index, too.
    """
    folder = _index_folder(path)
    last = read_manifest(folder)
    earlier = [one for one in read_kept(folder)[0].values() if one.commit < last.commit]
    return [
        Commit(one.commit_id, datetime.fromisoformat(iso_time(one.time)))
        for one in [*earlier, last]
    ]


def backup(
    path: str | PathLike[str],
    target: str | PathLike[str],
    *,
    link: bool = False,
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Copy the last commit of a folder, while a writer may work there.

    All files are of one commit, and every byte of them is checked on the way. Files that the
    target has are checked there, and copied again if they are damaged; those behind a URL are
    compared by size. Until the last moment, the target opens to what it held.

    Parameters
    ----------
    path
        The folder; of a sharded index, too.
    target
        The folder of the backup, made if it is missing, or the URL of one. It is an index
        like any other.
    link
        Whether the backup shares its files with the folder, by hard links where there are such:
        that takes no space, each file is read once, and a damaged one is damaged in both.
    overwrite
        Whether to replace an index that the target holds, such as an earlier backup.
    storage_options
        As in ``open``.

    Raises
    ------
    NotAnIndexError, CorruptIndexError
        If ``path`` holds no index or a damaged file, or the target something else.
    FileExistsError, LockedError
        If the target holds an index and ``overwrite`` is false, or a writer has it open.
    ValueError
        If both are the same folder, or ``path`` is a URL.
    RemoteError, OSError
        If the store or the disk refuses, or if the folder was changed faster than it could be
        uploaded. The same call goes on where it stopped.
    """
    from bm25rag.storage.local_store import LocalStore
    from bm25rag.storage.remote_mirror import Mirror, copy_folder

    source = LocalStore(_index_folder(path), check_flag("link", link))
    check_flag("overwrite", overwrite)
    if not is_url(target):
        folder = local_folder(target, storage_options=storage_options)
        copy_folder(Mirror(source, folder), overwrite)
    else:
        from bm25rag.storage.remote import RemoteStore
        from bm25rag.storage.remote_writer import upload_folder

        store = RemoteStore(str(target), storage_options)
        upload_folder(Mirror(source, ""), store, overwrite)


def restore(
    source: str | PathLike[str],
    path: str | PathLike[str],
    *,
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Make a folder what a backup is, even if the index that it holds is damaged.

    If this raises, as ``backup`` may, the folder opens to what it held.

    Parameters
    ----------
    source
        The folder of the backup, or its URL.
    path
        The folder to restore; made if it is missing. Readers go to the restored commit with
        their next ``refresh``, or the one after an error if they have a damaged file open.
    overwrite
        Whether to replace the index that the folder holds, damaged or not.
    storage_options
        As in ``open``.
    """
    from bm25rag.storage.local_store import LocalStore
    from bm25rag.storage.remote_mirror import Mirror, copy_folder

    store: Store
    if is_url(source):
        from bm25rag.storage.remote import RemoteStore

        store = RemoteStore(str(source), storage_options)
    else:
        store = LocalStore(_index_folder(source, storage_options))
    copy_folder(Mirror(store, _index_folder(path)), check_flag("overwrite", overwrite))


def repair(path: str | PathLike[str], *, dry_run: bool = False) -> list[Damage]:
    """Drop the damaged segments of a folder, so that the rest opens and can be changed.

    Restore a backup if there is one: what is dropped is lost. It checks what ``verify``
    does, and commits what is left. A damaged file stays beside the index, as
    ``<name>.damaged``, until you delete it. A segment goes with its changes: without them,
    deleted documents would come back.

    Parameters
    ----------
    path
        The folder; of a sharded index, too.
    dry_run
        Whether only to tell.

    Returns
    -------
    damages
        Of each damaged part its ``path``, the ``problem``, the ``ids`` of the documents that
        went, as far as they can be read, and how many ``unknown`` ones went beside; ``None``
        if nobody knows.

    Raises
    ------
    CorruptIndexError
        If the manifest itself is damaged: then only a backup helps.
    LockedError
        If a writer has the folder open, unless ``dry_run``.
    """
    folder = _index_folder(path)
    check_flag("dry_run", dry_run)
    from bm25rag.storage.repair import repair_folder

    return repair_folder(folder, dry_run)


def _index_folder(path: str | PathLike[str], storage_options: object = None) -> str:
    if is_url(path):
        raise ValueError(
            f"{path}: an index is backed up from, and restored to, a folder of this machine; "
            "BM25Index.restore copies one from a URL"
        )
    return local_folder(path, storage_options=storage_options)

"""A state saved behind a URL: its new files first, then the manifest, in one request.

No lock is possible there. Whoever writes the manifest last wins, and what it names is there:
files of the manifest that was replaced stay, and those that no manifest names for a day.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

from bm25rag.common.logs import tell
from bm25rag.errors import CorruptIndexError, NotAnIndexError, RemoteError
from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.storage.checksummed_file import ArraysFile, FileRecord
from bm25rag.storage.manifest import (
    LOCK,
    MANIFEST,
    NO_COMMIT,
    Manifest,
    is_ours,
    parse_manifest,
    replace_manifest,
)
from bm25rag.storage.remote import RemoteStore
from bm25rag.storage.remote_mirror import Mirror
from bm25rag.storage.segment_files import SavedCopy, files_of, write_files
from bm25rag.storage.state import State, parse_settings

_ATTEMPTS = 3


def write_remote(
    url: str,
    state: State,
    overwrite: bool,
    saved: SavedCopy | None,
    options: Mapping[str, Any] | None,
) -> SavedCopy:
    """Save a state behind a URL; files that ``saved`` has there are not written again.

    It raises what ``BM25Index.save`` does.
    """
    store = RemoteStore(url, options)
    for attempt in range(_ATTEMPTS):
        before, manifest = check_remote_target(store, overwrite)
        known: dict[Segment | Changes, FileRecord] = {}
        # Once somebody else has saved meanwhile, nothing is certain to stay.
        if saved is not None and not attempt and saved[:2] == (store.name, manifest):
            sizes = store.sizes()
            files = files_of(saved.views, saved.manifest)
            known = {of: file for of, file in files.items() if sizes.get(file.name) == file.size}
        written = _write(store, state, before, manifest, known, new=not overwrite)
        if written is not None:
            tell("commits", "saved %s at %s", written.commit_id, store.url)
            return SavedCopy(store.name, written, state.views)
    raise RemoteError(f"{store.url}: others have saved there {_ATTEMPTS} times meanwhile")


def upload_folder(mirror: Mirror, store: RemoteStore, overwrite: bool) -> None:
    """Copy the last commit of a folder of this machine, which is mirrored, behind a URL.

    Files that are there are not uploaded again. It raises what ``BM25Index.backup`` does.
    """
    for _ in range(_ATTEMPTS):
        data = mirror.read_manifest()
        try:
            before = check_remote_target(store, overwrite, sharded=True)[1].names()
        except CorruptIndexError:  # of a backup that was interrupted; it is made anew
            before = []
        try:
            manifest = mirror.parse(data)
            for record in manifest.records():
                _upload_file(os.path.join(mirror.store.url, record.name), store, record)
        except (FileNotFoundError, RemoteError) as error:
            # A writer may have committed meanwhile, and removed what was to be uploaded.
            if mirror.read_manifest() != data:
                continue
            if isinstance(error, RemoteError):
                raise
            message = f"{error.filename}: is missing; {mirror.store.advice}"
            raise CorruptIndexError(message) from None
        store.put(MANIFEST, data, new=not overwrite)
        _remove_leftovers(store, {*manifest.names(), *before})
        return
    raise RemoteError(
        f"{mirror.store.url} has changed {_ATTEMPTS} times while it was uploaded; try again later"
    )


def _upload_file(path: str, store: RemoteStore, record: FileRecord) -> None:
    """Upload a file, after all of it has been checked, unless it is there."""
    ArraysFile(path, record, mapped=True).check_all()
    with suppress(FileNotFoundError):
        if store.size(record.name) == record.size:
            return
    store.upload(path, record.name)


def check_remote_target(
    store: RemoteStore, overwrite: bool, *, sharded: bool = False
) -> tuple[bytes | None, Manifest]:
    """Return the manifest of a remote folder, as bytes and parsed, if there is one.

    It raises ``FileExistsError`` if it is there and ``overwrite`` is false, otherwise as
    ``check_target``, which an index in shards passes if it may be replaced, ``sharded``.
    """
    data = store.read(MANIFEST)
    if data is not None:
        if not overwrite:
            raise FileExistsError(f"{store.url} holds an index; overwrite=True replaces it")
        manifest = parse_manifest(f"{store.url}/{MANIFEST}", data, writing=True)
        if manifest.shards is not None and not sharded:
            raise NotAnIndexError(f"{store.url} holds a sharded index; choose another URL")
        return data, manifest
    names = store.sizes().keys()
    if any(name != LOCK and not is_ours(name) for name in names):
        raise NotAnIndexError(
            f"{store.url} is not empty and holds no bm25rag index; choose another URL"
        )
    return None, NO_COMMIT


def _write(
    store: RemoteStore,
    state: State,
    before: bytes | None,
    replaced: Manifest,
    known: Mapping[Segment | Changes, FileRecord],
    *,
    new: bool,
) -> Manifest | None:
    """Write a commit; return nothing if files that it relies on may have gone meanwhile."""
    settings = state.settings()
    parse_settings(store.url, settings)  # what could not be read again is not written
    with TemporaryDirectory(prefix="bm25rag-") as folder:
        manifest = write_files(folder, replaced.commit + 1, settings, state.views, known)
        replace_manifest(folder, manifest)
        uploaded: list[str] = []
        try:
            for name in set(os.listdir(folder)) - {MANIFEST}:
                uploaded.append(name)
                store.upload(os.path.join(folder, name), name)
            if _is_missing(store, manifest) or (known and store.read(MANIFEST) != before):
                store.remove(uploaded)
                return None
        except BaseException:
            store.remove(uploaded)
            raise
        # From here on the commit may be visible, so its files stay, whatever fails.
        with open(os.path.join(folder, MANIFEST), "rb") as file:
            store.put(MANIFEST, file.read(), new=new)
    _remove_leftovers(store, {*manifest.names(), *replaced.names()})
    return manifest


def _remove_leftovers(store: RemoteStore, stay: set[str]) -> None:
    with suppress(RemoteError):  # it is saved
        leftovers = [name for name in store.sizes() if is_ours(name) and name not in stay]
        store.remove(leftovers, than=MANIFEST)


def _is_missing(store: RemoteStore, manifest: Manifest) -> bool:
    """Whether a file is not there as written: another process may have removed it."""
    sizes = store.sizes()
    # A store that does not tell sizes says None.
    return any(sizes.get(one.name, -1) not in (one.size, None) for one in manifest.records())

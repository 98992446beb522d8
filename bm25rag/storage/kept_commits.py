"""Earlier commits of a folder that are kept: their manifests, beside that of the last one.

``commit-3.json`` is the manifest of commit 3. While it is there, the files that it names stay.
"""

from __future__ import annotations

import os
from contextlib import suppress

from bm25rag.common.patterns import late_pattern
from bm25rag.errors import (
    CommitNotFoundError,
    CorruptIndexError,
    FormatVersionError,
    NotAnIndexError,
)
from bm25rag.storage.fs import link_file, replacing
from bm25rag.storage.manifest import Manifest, manifest_path, read_manifest

_KEPT = late_pattern(r"commit-\d{1,19}\.json")
_ID = late_pattern(r"(\d{1,19})-[0-9a-f]{16}")


def kept_name(commit: int) -> str:
    """Return the name of the manifest of a kept commit."""
    return f"commit-{commit}.json"


def check_commit_id(id: object) -> str:
    """Return the id of a commit; raise ``TypeError`` or ``ValueError`` if it cannot be one."""
    if not isinstance(id, str):
        raise TypeError(f"commit must be the id of a commit, a string, got {type(id).__name__}")
    if _ID.fullmatch(id) is None:
        raise ValueError(
            f"commit must be the id of a commit, such as '3-9c110871ccf2b11b', got {id!r:.60}; "
            "BM25Index.commits(folder) lists them"
        )
    return id


def drop_kept(folder: str) -> None:
    """Remove the manifests of all kept commits, before anything that they name goes."""
    for name in os.listdir(folder):
        if _KEPT.fullmatch(name):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


def find_commit(folder: str, id: str | None) -> Manifest:
    """Return the manifest of a commit, for ``None`` of the last one.

    It raises as ``read_manifest``, and ``CommitNotFoundError`` if the folder does not hold it.
    """
    last = read_manifest(folder)
    if id is None or last.commit_id == id:
        return last
    with suppress(NotAnIndexError):
        kept = read_manifest(folder, name=kept_name(int(id.partition("-")[0])))
        if kept.commit_id == id:
            return kept
    raise CommitNotFoundError(
        f"{folder} does not hold the commit {id}, but {last.commit_id} and the kept ones that "
        "BM25Index.commits(folder) lists"
    )


def read_kept(folder: str) -> tuple[dict[int, Manifest], list[str]]:
    """Return the kept commits by number, ascending, and the names of damaged manifests."""
    kept: dict[int, Manifest] = {}
    damaged: list[str] = []
    for name in os.listdir(folder):
        if _KEPT.fullmatch(name) is None:
            continue
        try:
            manifest = read_manifest(folder, name=name)
        except (CorruptIndexError, FormatVersionError):  # no newer format is beside an older last
            damaged.append(name)
            continue
        except (FileNotFoundError, NotAnIndexError):  # gone meanwhile
            continue
        if kept_name(manifest.commit) == name:
            kept[manifest.commit] = manifest
        else:
            damaged.append(name)
    return dict(sorted(kept.items())), damaged


def keep_manifest(folder: str, commit: int) -> None:
    """Give the manifest of the last commit the name under which it stays."""
    path = os.path.join(folder, kept_name(commit))
    with replacing(path, os.path.join(folder, "manifest")) as new:
        link_file(manifest_path(folder), new)


def drop_expired(folder: str, last: Manifest, keep: int) -> dict[int, Manifest]:
    """Remove manifests of commits that a later one has replaced ``keep`` milliseconds ago.

    Returns those that stay, by number. What only the others name may be removed.
    """
    kept, gone = read_kept(folder)
    kept.pop(last.commit, None)  # of a commit that was interrupted
    times = [manifest.time for manifest in [*kept.values(), last]][1:]
    for number, replaced in zip([*kept], times, strict=True):
        if not keep or number > last.commit or replaced + keep < last.time:
            del kept[number]
            gone.append(kept_name(number))
    if last.commit and os.path.exists(os.path.join(folder, kept_name(last.commit))):
        gone.append(kept_name(last.commit))
    for name in gone:
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))
    return kept

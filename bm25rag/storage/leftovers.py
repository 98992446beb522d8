"""What a build leaves in its folder if it is killed."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress

from bm25rag.storage.manifest import BUILDING, is_ours, manifest_path, read_manifest

# What is in the folder of a build beside the files of an index: parts, shards, and receipts.
_IN_BUILDING = re.compile(r"lock|manifest\.json|plan\.json|shard-\d+(\.json|-[0-9a-f]{16})?|tmp\w+")


def is_left(folder: str, name: str) -> bool:
    """Whether a build has left this; a folder may be removed, so all in it must be ours."""
    path = os.path.join(folder, name)
    return is_ours(name) if name != BUILDING else os.path.isdir(path) and _holds_ours(path)


def _holds_ours(building: str) -> bool:
    return all(is_ours(name) or _IN_BUILDING.fullmatch(name) for name in os.listdir(building))


def remove_building(folder: str) -> None:
    """Remove what a build that was killed after its commit has left, and nothing else."""
    building = os.path.join(folder, BUILDING)
    with suppress(OSError):  # StorageError is one
        if os.path.exists(manifest_path(building)):
            receipt = read_manifest(building).settings.get("extra")
            ours = isinstance(receipt, dict) and "ended" in receipt
        else:  # it had no parts, or was killed while it removed them
            ours = _holds_ours(building)
        if ours:
            remove(building)


def remove(path: str) -> None:
    """Remove a file or a folder of ours, as far as possible."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)

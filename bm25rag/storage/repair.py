"""What is left of a damaged folder: its whole segments, committed without the others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from bm25rag.analysis import Analyzer
from bm25rag.errors import CorruptIndexError
from bm25rag.segments.view import SegmentView
from bm25rag.storage.folder_lock import locked_folder
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.fs import flush_folder
from bm25rag.storage.manifest import Manifest, read_manifest
from bm25rag.storage.segment_files import files_of, read_statistics, read_views
from bm25rag.storage.shard_statistics import check_statistics
from bm25rag.storage.state import State, check_analyzer, parse_settings
from bm25rag.storage.verify import verify_segments


class Damage(NamedTuple):
    """A part of an index that is damaged, and the documents that go with it.

    Parameters
    ----------
    path
        The file.
    problem
        What is wrong.
    ids
        The documents that go, as far as their ids can be read.
    unknown
        How many more go whose ids cannot be read; ``None`` if nobody knows.
    """

    path: str
    problem: str
    ids: list[str]
    unknown: int | None


def repair_folder(folder: str, dry_run: bool) -> list[Damage]:
    """Commit what is whole in a folder; see ``BM25Index.repair``."""
    read_manifest(folder, writing=True)
    with nullcontext() if dry_run else locked_folder(folder) as held:
        manifest = read_manifest(folder, writing=True)
        kept, views, damages = _sift(folder, manifest)
        if not damages:
            damages = _check_statistics(folder, manifest, views)
        if damages and dry_run and read_manifest(folder, writing=True) != manifest:
            return repair_folder(folder, dry_run)  # what is missing, a writer has removed
        if damages and held is not None:
            writer = FolderWriter(folder, held)
            writer.start_from(kept, views)
            _keep_aside(folder, damages)
            writer.commit(_state_of(folder, manifest.settings, views), files_of(views, kept))
        return damages


def _check_statistics(
    folder: str, manifest: Manifest, views: Sequence[SegmentView]
) -> list[Damage]:
    """Return the damage of the statistics, which are counted again."""
    if manifest.shards is None:
        return []
    try:
        stored = read_statistics(folder, manifest, True)
        assert stored is not None
        check_statistics(folder, manifest, views, stored)
    except (CorruptIndexError, FileNotFoundError) as error:
        path = os.path.join(folder, manifest.shards.statistics.name)
        return [Damage(path, _problem_of(path, error), [], 0)]
    return []


def _state_of(folder: str, settings: dict[str, Any], views: list[SegmentView]) -> State:
    """Return the state of segments, with the settings as they are stored."""
    parameters, next_id, probe, extra = parse_settings(folder, settings, views)
    check_analyzer(folder, settings["analyzer"])
    state = State(Analyzer(), parameters, views, next_id, probe, extra)
    return state._replace(stored_settings=settings)


def _sift(folder: str, manifest: Manifest) -> tuple[Manifest, list[SegmentView], list[Damage]]:
    """Return the whole segments of a commit, as a manifest too, and what is damaged."""
    whole: dict[int, SegmentView] = {}
    damages: list[Damage] = []
    for number in range(len(manifest.stored)):
        one = manifest.some([number])._replace(shards=None)
        try:
            (view,) = read_views(folder, one, True, {})
            verify_segments([view])
        except (FileNotFoundError, CorruptIndexError) as error:
            damages.append(_damage(folder, one, error))
        else:
            whole[number] = view
    try:
        verify_segments([*whole.values()])
    except CorruptIndexError:
        damages += _drop_repeated(folder, manifest, whole)
    return manifest.some([*whole]), [*whole.values()], damages


def _drop_repeated(
    folder: str, manifest: Manifest, whole: dict[int, SegmentView]
) -> Iterator[Damage]:
    """Take away segments with ids of earlier ones."""
    seen: set[str] = set()
    for number, view in list(whole.items()):
        ids = [view.segment.id_of(document) for document in view.numbers()]
        if seen.isdisjoint(ids):
            seen.update(ids)
            continue
        del whole[number]
        path = os.path.join(folder, manifest.stored[number].segment.name)
        yield Damage(path, f"{path}: has an id that another file has, too", ids, 0)


def _damage(folder: str, one: Manifest, error: OSError) -> Damage:
    """Say what is wrong with a segment or its changes, and which documents it has."""
    stored = one.stored[0]
    named = [record.name for record in one.records() if record.name in str(error)]
    path = os.path.join(folder, named[0] if named else stored.segment.name)
    problem = _problem_of(path, error)
    view = _readable(folder, one)
    if view is None:
        return Damage(path, problem, [], None)
    ids: list[str] = []
    for number in view.numbers():
        with suppress(CorruptIndexError):
            ids.append(view.segment.id_of(number))
    return Damage(path, problem, ids, view.count - len(ids))


def _problem_of(path: str, error: OSError) -> str:
    problem = f"{path}: is missing" if isinstance(error, FileNotFoundError) else str(error)
    return problem.partition("; restore the folder")[0]


def _readable(folder: str, one: Manifest) -> SegmentView | None:
    """Return a damaged segment if its file can be opened, without its changes if they cannot."""
    bare = one._replace(stored=(one.stored[0]._replace(changes=()),))
    for manifest in (one, bare):
        with suppress(OSError):  # StorageError is one
            return read_views(folder, manifest, True, {})[0]
    return None


def _keep_aside(folder: str, damages: Sequence[Damage]) -> None:
    """Give damaged files a second name in the folder, under which they stay."""
    for path, *_ in damages:
        with suppress(OSError, AttributeError):  # it is there or missing, or there are no links
            os.link(path, f"{path}.damaged")
    flush_folder(folder)

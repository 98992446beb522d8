"""The state of an index and the folder it lives in."""

from __future__ import annotations

import json
import os
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bm25rag.analysis import AUTO_0_1, PAPER, Analyzer, Tokenizer
from bm25rag.analysis.stemming import snowball_version
from bm25rag.errors import (
    AnalyzerChangedWarning,
    CorruptIndexError,
    ReadOnlyError,
    TokenizerRequiredError,
    UntrustedIndexError,
)
from bm25rag.metadata.values import DEEPEST
from bm25rag.scoring.variants import Parameters
from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView
from bm25rag.storage.array_file import ArraysFile, FileRecord
from bm25rag.storage.file_mark import FileMark
from bm25rag.storage.fs import flush_folder, make_folder
from bm25rag.storage.manifest import (
    MANIFEST,
    Manifest,
    check_target,
    clean,
    lock,
    natural,
    read_manifest,
)
from bm25rag.storage.segment_files import read_index, write_commit
from bm25rag.storage.verify import verify_segments

if TYPE_CHECKING:
    from filelock import BaseFileLock


# What making an analyzer of wrong settings can raise; the last two come from its pattern.
_NO_ANALYZER = (ValueError, TypeError, OverflowError, RecursionError)
# Nobody counts so far; from there on, counting can still go on as long again.
_FURTHEST = 1 << 61


class State(NamedTuple):
    """All there is to an index, at one moment.

    ``probe`` holds words and their stems at the time they were indexed, ``extra`` what a
    caller keeps with the index.
    """

    analyzer: Analyzer
    parameters: Parameters
    views: list[SegmentView]
    next_id: int
    probe: dict[str, str]
    extra: dict[str, Any]

    def check_all(self) -> None:
        """Check everything that comes from a file; raise ``CorruptIndexError``."""
        verify_segments(self.views)

    def settings(self) -> dict[str, Any]:
        """Return what the manifest holds of the index itself, as JSON values."""
        return {
            "analyzer": self.analyzer.to_dict(),
            "parameters": self.parameters.to_dict(),
            "next_id": self.next_id,
            "probe": self.probe,
            "extra": self.extra,
            "snowball": None if self.analyzer.stemmer is None else snowball_version(),
            "unicode": unicodedata.unidata_version,
        }


def check_extra(extra: object) -> dict[str, Any]:
    """Return a copy of what a caller keeps with an index, which is a dict of JSON values."""
    if not isinstance(extra, dict):
        raise TypeError(f"extra must be a dict of JSON values or None, got {extra!r:.100}")
    try:
        copy: dict[str, Any] = json.loads(json.dumps(extra, allow_nan=False))
        _check_depth(copy, DEEPEST)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"extra must be a dict of JSON values: {error}") from None
    return copy


def _check_depth(value: object, levels: int) -> None:
    if isinstance(value, (dict, list)):
        if not levels:
            raise ValueError(f"nested more than {DEEPEST} levels deep")
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, levels - 1)


def verify_folder(folder: Path) -> None:
    """Check everything in a folder; needs neither its stemmer nor its tokenizer."""
    manifest, views = read_index(folder, mapped=True, known={})
    _, next_id, *_ = _check_settings(folder, manifest.settings)
    _check_counts(folder, manifest.commit, next_id)
    _check_analyzer(folder, manifest.settings["analyzer"])
    verify_segments(views)


def _check_counts(folder: Path, commit: int, next_id: int) -> None:
    for name, number in (("commit", commit), ("next_id", next_id)):
        if number > _FURTHEST:
            raise CorruptIndexError(
                f"{folder / MANIFEST}: {name} is {number:,}, and counting on would soon end; "
                "restore the folder from a copy"
            )


def _check_analyzer(folder: Path, settings: dict[str, Any]) -> None:
    """Check the settings of an analyzer, whatever stemmers are installed here."""
    try:
        for name in ("language", "stemmer", "tokenizer"):
            if not isinstance(settings[name], str | None):
                raise TypeError(f"{name} is no string")
        Analyzer.from_dict(settings | {"language": None, "stemmer": None, "tokenizer": None})
    except (KeyError, *_NO_ANALYZER) as error:
        raise CorruptIndexError(f"{folder / MANIFEST}: wrong analyzer ({error})") from None


def _check_settings(
    folder: Path, settings: dict[str, Any]
) -> tuple[Parameters, int, dict[str, str], dict[str, Any]]:
    try:
        parameters = Parameters(**settings["parameters"])
        next_id, probe = natural(settings["next_id"]), settings["probe"]
        extra = check_extra(settings["extra"])
        if not isinstance(settings["analyzer"], dict):
            raise ValueError("analyzer is no object")
        if not _are_strings(probe):
            raise ValueError("probe does not map words to stems")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptIndexError(f"{folder / MANIFEST}: wrong settings ({error})") from None
    return parameters, next_id, probe, extra


def _are_strings(probe: object) -> bool:
    return isinstance(probe, Mapping) and all(
        isinstance(text, str) for pair in probe.items() for text in pair
    )


def _warn_of_changes(analyzer: Analyzer, probe: Mapping[str, str], version: str) -> None:
    now = analyzer.stems(list(probe))
    changed = [
        f"{word!r:.40} was {old!r:.40}, is {new!r:.40}"
        for (word, old), new in zip(probe.items(), now, strict=True)
        if old != new
    ]
    if changed:
        warnings.warn(
            "the stemmer has changed since these documents were indexed "
            f"(Snowball {version:.40}, now {snowball_version()}): "
            f"{'; '.join(changed[:5])}{' ...' * (len(changed) > 5)}. Queries can miss documents; "
            "index.reanalyze() makes the index anew from its stored texts",
            AnalyzerChangedWarning,
            stacklevel=5,
        )


class FolderReader:
    """A folder that an index is read from, and what has been read of it last.

    Parameters
    ----------
    folder
        The folder.
    mapped
        Whether its files are mapped, or read into memory.
    tokenizer
        The callable of an analyzer that was made with one.
    untrusted
        Whether to refuse what a stranger could misuse, and to verify.
    """

    description = "an index opened with mode='r'"
    read_only = True

    def __init__(
        self, folder: Path, mapped: bool, tokenizer: Tokenizer | None, untrusted: bool
    ) -> None:
        self._folder = folder
        self._mapped = mapped
        self._tokenizer = tokenizer
        self._untrusted = untrusted
        self.manifest = Manifest(0, {}, (), ())
        self._state: State | None = None
        self._mark: FileMark | None = None

    def read(self) -> State:
        """Read the last commit; see ``BM25Index.open`` for what is raised."""
        before = self._state
        mark = self._make_mark()
        known = zip(self.manifest.stored, before.views if before else (), strict=True)
        manifest, views = read_index(self._folder, self._mapped, dict(known))
        parameters, next_id, probe, extra = _check_settings(self._folder, manifest.settings)
        same = "analyzer", "probe"
        if before and all(manifest.settings[n] == self.manifest.settings[n] for n in same):
            analyzer = before.analyzer
        else:
            analyzer = self._analyzer(manifest.settings, probe)
        state = State(analyzer, parameters, views, next_id, probe, extra)
        if self._untrusted:
            _check_counts(self._folder, manifest.commit, next_id)
            state.check_all()
        self.manifest, self._state, self._mark = manifest, state, mark
        return state

    def kept(self) -> SavedCopy | None:
        """Return what an index that was read from here knows of the folder."""
        state = self._state
        return None if state is None else SavedCopy(self._folder, self.manifest, state.views)

    def has_moved(self) -> bool:
        """Whether the folder holds another commit than the one read last."""
        if self._mark is not None and self._mark.is_current():
            return False
        mark = self._make_mark()
        if read_manifest(self._folder) != self.manifest:
            return True
        self._mark = mark  # the same commit in another file: a copy that was restored
        return False

    def _make_mark(self) -> FileMark:
        # Always before the manifest is read: a mark of an older one costs a look too many, a
        # mark of a newer one would hide a commit.
        return FileMark(self._folder / MANIFEST)

    def _analyzer(self, settings: dict[str, Any], probe: Mapping[str, str]) -> Analyzer:
        pattern = settings["analyzer"].get("token_pattern")
        if self._untrusted and pattern not in ("auto", AUTO_0_1, PAPER):
            raise UntrustedIndexError(
                f"the analyzer of {self._folder} has the token_pattern {pattern!r:.100}, which "
                "untrusted=True refuses: a pattern can keep a search busy without end; "
                "open it without untrusted=True if you trust where it comes from"
            )
        try:
            analyzer = Analyzer.from_dict(settings["analyzer"], self._tokenizer)
        except TokenizerRequiredError:
            raise
        except _NO_ANALYZER as error:
            message = f"the analyzer of {self._folder} cannot be made here: {error}"
            raise ValueError(message) from error
        _warn_of_changes(analyzer, probe, str(settings.get("snowball")))
        return analyzer


class SavedCopy(NamedTuple):
    """What an index knows to be in a folder that it is not the writer of: what it read or saved."""

    folder: Path
    manifest: Manifest
    views: Sequence[SegmentView]

    def files_in(self, folder: Path, manifest: Manifest) -> dict[Segment | Changes, FileRecord]:
        """Return the files of a folder that need not be written again."""
        return {} if (self.folder, self.manifest) != (folder, manifest) else self._there()

    def _there(self) -> dict[Segment | Changes, FileRecord]:
        files = _files_of(self.views, self.manifest)
        return {of: file for of, file in files.items() if self._is_whole(file)}

    def _is_whole(self, file: FileRecord) -> bool:
        """Whether a file is as it was written; who saves may mean to mend it."""
        try:
            ArraysFile(self.folder / file.name, file, mapped=True).check_all()
        except OSError:  # StorageError is one
            return False
        return True


def _files_of(
    views: Sequence[SegmentView], manifest: Manifest
) -> dict[Segment | Changes, FileRecord]:
    """Return the file of each segment and set of changes of a commit."""
    files: dict[Segment | Changes, FileRecord] = {}
    for view, stored in zip(views, manifest.stored, strict=True):
        files[view.segment] = stored.segment
        files.update(zip(view.changes, stored.changes, strict=True))
    return files


class FolderWriter:
    """The writer's hold on a folder: its lock, and what it has on disk already."""

    description = "an index that is changed here"
    read_only = False

    def __init__(self, folder: Path, held: BaseFileLock) -> None:
        self._folder = folder
        self._held = held
        self._process = os.getpid()
        self._manifest = Manifest(0, {}, (), ())
        self._state: State | None = None

    @classmethod
    def lock(cls, folder: Path, timeout: float) -> FolderWriter:
        """Take the lock of a folder that holds an index."""
        read_manifest(folder)
        return cls(folder, lock(folder, timeout))

    @classmethod
    def write(
        cls, folder: Path, state: State, overwrite: bool, kept: SavedCopy | None
    ) -> SavedCopy:
        """Save a state into a folder: what is kept there already is not written again."""
        check_target(folder)
        make_folder(folder)
        store = cls(folder, lock(folder))
        known: dict[Segment | Changes, FileRecord] = {}
        try:
            check_target(folder)
            if (folder / MANIFEST).exists():
                if not overwrite:
                    raise FileExistsError(f"{folder} holds an index; overwrite=True replaces it")
                manifest = read_manifest(folder)
                known = {} if kept is None else kept.files_in(folder, manifest)
                store._manifest = Manifest(manifest.commit, {}, (), ())
            store.commit(state, known)
            return SavedCopy(folder, store._manifest, state.views)
        finally:
            store.close()

    @property
    def last(self) -> State:
        """The state of the last commit."""
        if self._state is None:
            raise AssertionError("a store is read before it is used")
        return self._state

    def take_over(self, manifest: Manifest, state: State) -> None:
        """Begin from what has been read of the folder since it is locked."""
        self._manifest, self._state = manifest, state

    def holds(self, folder: Path) -> bool:
        """Whether this is the writer of ``folder``."""
        try:
            return self._folder.samefile(folder)
        except OSError:  # one of them is not there
            return False

    def commit(
        self, state: State, known: Mapping[Segment | Changes, FileRecord] | None = None
    ) -> None:
        """Make a state durable; ``known`` files are there, ``None`` for the last commit's."""
        if not self.ours:
            raise ReadOnlyError("this writer was opened by another process, before a fork")
        if known is None:
            known = {} if self._state is None else _files_of(self._state.views, self._manifest)
        commit, settings = self._manifest.commit + 1, state.settings()
        _check_settings(self._folder, settings)  # what could not be read again is not written
        try:
            self._manifest = write_commit(self._folder, commit, settings, state.views, known)
        except BaseException:
            # An interrupt may have come when the commit was visible already.
            with suppress(OSError):
                manifest = read_manifest(self._folder)
                if manifest.commit == commit:
                    self._manifest, self._state = manifest, state
            raise
        # It is visible now, so it is what a rollback goes back to even if the flush fails.
        self._state = state
        flush_folder(self._folder)
        clean(self._folder, self._manifest)

    @property
    def ours(self) -> bool:
        """Whether this process opened it, and not one that it was forked from."""
        return self._process == os.getpid()

    def close(self) -> None:
        """Give up the lock."""
        if self.ours:
            self._held.release()

"""The folder that an index is read from."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from bm25rag.analysis import PAPER, Analyzer, Tokenizer
from bm25rag.analysis.settings import further_settings
from bm25rag.analysis.snowball import snowball_version
from bm25rag.errors import AnalyzerChangedWarning, TokenizerRequiredError, UntrustedIndexError
from bm25rag.segments.view import SegmentView
from bm25rag.storage.attachment import Attachment
from bm25rag.storage.checked_columns import is_damaged
from bm25rag.storage.file_identity import FileMark
from bm25rag.storage.manifest import Manifest, manifest_path, read_manifest
from bm25rag.storage.segment_files import Commit, SavedCopy, read_index
from bm25rag.storage.state import NO_ANALYZER, State, check_counts, parse_settings

if TYPE_CHECKING:
    from bm25rag.segments.statistics import Statistics
    from bm25rag.storage.remote_mirror import Mirror


class FolderReader(Attachment):
    """A folder that an index is read from, and what was last read of it.

    Its files are ``mapped``, or read into memory. ``untrusted`` refuses what a stranger could
    misuse, and verifies the rest. ``mirror`` keeps the folder as a remote one is; ``None`` if it is
    no cache. ``commit`` is the id of the one commit to read; ``None`` for the last. ``only`` is the
    one shard to read; ``None`` for all.
    ``opened_by`` opens the index again, for pickles.
    """

    description = "an index opened with mode='r'"
    advice = "open it with mode='w' to change it, or change a copy in memory, copy.copy(index)"
    read_only = True
    mirror: Mirror | None = None
    commit: str | None = None
    only: int | None = None
    opened_by: partial[Any]

    def __init__(
        self, folder: str, mapped: bool, tokenizer: Tokenizer | None, untrusted: bool
    ) -> None:
        self.folder: str = folder
        self._mapped = mapped
        self._tokenizer = tokenizer
        self._untrusted = untrusted
        self._state: State | None = None
        self._mark: FileMark | None = None

    def synced(self) -> AbstractContextManager[None]:
        """Bring a cache up to date, and keep it there while it is read."""
        return nullcontext() if self.mirror is None else self.mirror.synced()

    def read(self) -> State:
        """Read the last commit; raise as ``BM25Index.open``."""
        before = self._state
        mark = self._make_mark()
        old = before.views if before and not self._is_damaged() else ()
        stored = self.manifest.only(self.only, self.folder).stored if old else ()
        known = dict(zip(stored, old, strict=True))
        commit = read_index(self.folder, self._mapped, known, self.commit, self.only)
        state = self._interpret(commit)
        self.manifest, self._state, self._mark = commit.manifest, state, mark
        return state

    def _interpret(self, commit: Commit) -> State:
        """Make the state of a commit, given its files."""
        manifest, views, statistics = commit
        before, old, new = self._state, self.manifest.settings, manifest.settings
        settings = parse_settings(self.folder, new, views)
        if before and all(new[name] == old[name] for name in ("analyzer", "probe")):
            analyzer = before.analyzer
        else:
            analyzer = self._analyzer(new, settings.probe)
        if self._untrusted:
            check_counts(self.folder, manifest.commit, settings.next_id)
            self._verify(*commit)
        part = "" if self.only is None else f"/{self.only}"
        return State(
            analyzer,
            settings.parameters,
            views,
            settings.next_id,
            settings.probe,
            settings.extra,
            statistics,
            manifest.commit_id + part,
        )

    def verify(self, state: State) -> None:
        """Check all that a state has read from files; raise ``CorruptIndexError``."""
        self._verify(self.manifest, state.views, state.statistics)

    def _verify(
        self, manifest: Manifest, views: list[SegmentView], statistics: Statistics | None
    ) -> None:
        from bm25rag.storage.verify import verify_segments  # it needs what writes need

        verify_segments(views)
        if statistics is not None and self.only is None:
            from bm25rag.storage.shard_statistics import check_statistics

            check_statistics(self.folder, manifest, views, statistics)

    def saved_copy(self) -> SavedCopy | None:
        """Return what an index that was read from here knows about the folder."""
        state = self._state
        where = self.folder if self.mirror is None else self.mirror.store.name
        return None if state is None else SavedCopy(where, self.manifest, state.views)

    def has_moved(self) -> bool:
        """Whether the folder holds another commit than the one read last, or that is damaged."""
        if self._is_damaged():
            return True
        if self.commit is not None or (self._mark is not None and self._mark.is_current()):
            return False
        mark = self._make_mark()
        if read_manifest(self.folder) != self.manifest:
            return True
        self._mark = mark  # the same commit in another file: a copy that was restored
        return False

    def _is_damaged(self) -> bool:
        """Whether damage was found in what was read last; it may have been restored since."""
        if (state := self._state) is None:
            return False
        terms = [] if state.statistics is None else [state.statistics.terms]
        return any(map(is_damaged, [*terms, *(view.segment.ids for view in state.views)]))

    def _make_mark(self) -> FileMark:
        # Always before the manifest is read: the mark of an older one costs one more look, the
        # mark of a newer one would hide a commit.
        return FileMark(manifest_path(self.folder))

    def _analyzer(self, settings: dict[str, Any], probe: Mapping[str, str]) -> Analyzer:
        own = settings["analyzer"]
        each = [own, *(further for further, _ in further_settings(own))]
        patterns = (one.get("token_pattern") for one in each if self._untrusted)
        for pattern in (one for one in patterns if one not in ("auto", PAPER)):
            raise UntrustedIndexError(
                f"the analyzer of {self.folder} has the token_pattern {pattern!r:.100}, which "
                "untrusted=True refuses: a pattern can keep a search busy without end; "
                "open it without untrusted=True if you trust where it comes from"
            )
        try:
            analyzer = Analyzer.from_dict(settings["analyzer"], self._tokenizer)
        except TokenizerRequiredError:
            raise
        except NO_ANALYZER as error:
            message = f"the analyzer of {self.folder} cannot be made here: {error}"
            raise ValueError(message) from error
        _warn_of_changes(analyzer, probe, str(settings.get("snowball")))
        return analyzer


def _probed(analyzer: Analyzer, probe: list[str]) -> tuple[list[str], list[str]]:
    """Return the words of a probe and their stems now."""
    if not analyzer.also:
        return probe, analyzer.stems(probe)
    from bm25rag.analysis.spaces import space_of  # few indexes have several

    pairs, each = list(map(space_of, probe)), dict(enumerate(analyzer.analyses))
    words = [word for _, word in pairs]
    return words, [each.get(number, analyzer).stems([word])[0] for number, word in pairs]


def _warn_of_changes(analyzer: Analyzer, probe: Mapping[str, str], version: str) -> None:
    words, now = _probed(analyzer, list(probe))
    changed = [
        f"{word!r:.40} was {old!r:.40}, is {new!r:.40}"
        for word, old, new in zip(words, probe.values(), now, strict=True)
        if old != new
    ]
    if changed:
        from bm25rag.common.caller import warn

        warn(
            "the stemmer has changed since these documents were indexed "
            f"(Snowball {version:.40}, now {snowball_version()}): "
            f"{'; '.join(changed[:5])}{' ...' * (len(changed) > 5)}. Queries can miss documents; "
            "index.reanalyze() makes the index anew from its stored texts",
            AnalyzerChangedWarning,
        )

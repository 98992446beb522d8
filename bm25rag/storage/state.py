"""The state of an index, and the settings that its manifest holds."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bm25rag.analysis import Analyzer
from bm25rag.analysis.settings import further_settings
from bm25rag.analysis.snowball import snowball_version
from bm25rag.analysis.stemming import is_snowball
from bm25rag.common.checks import DEEPEST
from bm25rag.errors import CorruptIndexError
from bm25rag.scoring.variants import Parameters
from bm25rag.segments.view import SegmentView
from bm25rag.storage.manifest import manifest_path, natural

if TYPE_CHECKING:
    from bm25rag.segments.statistics import Statistics

# What making an analyzer from wrong settings can raise; the last two come from its pattern.
NO_ANALYZER = (ValueError, TypeError, OverflowError, RecursionError)
# No index gets this far; from here, counting can still go on for as long again.
_FURTHEST = 1 << 61


class State(NamedTuple):
    """Everything an index consists of, at one moment.

    ``probe`` holds words and the stems they had when they were indexed, ``extra`` what a
    caller keeps with the index. ``statistics`` are those of a collection that it is a part of.
    ``commit_id`` is that of the commit that it was read from, or a random one. If there are
    ``stored_settings``, they stay, and ``analyzer`` counts for nothing.
    """

    analyzer: Analyzer
    parameters: Parameters
    views: list[SegmentView]
    next_id: int
    probe: dict[str, str]
    extra: dict[str, Any]
    statistics: Statistics | None = None
    commit_id: str = ""
    stored_settings: dict[str, Any] | None = None

    def settings(self) -> dict[str, Any]:
        """Return what the manifest stores beside the files, as JSON values."""
        if self.stored_settings is not None:
            return self.stored_settings
        return {
            "analyzer": self.analyzer.to_dict(),
            "parameters": self.parameters.to_dict(),
            "next_id": self.next_id,
            "probe": self.probe,
            "extra": self.extra,
            "snowball": snowball_version()
            if any(one.stemmer and is_snowball(one.stemmer) for one in self.analyzer.analyses)
            else None,
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


def check_settings(
    folder: str, state: State, analyzer: Analyzer | None, parameters: dict[str, Any]
) -> None:
    """Check that a state has an analyzer and parameters; ``None`` stands for any analyzer."""
    if analyzer is not None and state.analyzer != analyzer:
        raise ValueError(
            f"analyzer is {analyzer!r}, but the index in {folder!r} was made with "
            f"{state.analyzer!r}: leave analyzer out, or make a new index with "
            "index.reanalyze(analyzer)"
        )
    wanted = state.parameters.changed(parameters)
    for name in parameters:
        attribute = "effective_delta" if name == "delta" else name
        given, existing = getattr(wanted, attribute), getattr(state.parameters, attribute)
        if given != existing:
            if name == "fields":
                given, existing = dict(given), dict(existing)
            raise ValueError(
                f"{name} is {given!r}, but the index in {folder!r} was made with {existing!r}: "
                f"leave {name} out, or search a view, index.tune({name}={given!r})"
            )


def _check_depth(value: object, levels: int) -> None:
    if isinstance(value, (dict, list)):
        if not levels:
            raise ValueError(f"nested more than {DEEPEST} levels deep")
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, levels - 1)


def check_counts(folder: str, commit: int, next_id: int) -> None:
    """Check that there are enough numbers left; raise ``CorruptIndexError``."""
    for name, number in (("commit", commit), ("next_id", next_id)):
        if number > _FURTHEST:
            raise CorruptIndexError(
                f"{manifest_path(folder)}: {name} is {number:,}, and counting on would soon end; "
                "restore the folder from a copy"
            )


def check_analyzer(folder: str, settings: dict[str, Any]) -> None:
    """Check the settings of an analyzer, whatever stemmers are installed here."""
    try:
        Analyzer.from_dict(_plain(settings))
    except (KeyError, *NO_ANALYZER) as error:
        raise CorruptIndexError(f"{manifest_path(folder)}: wrong analyzer ({error})") from None


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an analyzer and its further analyses, without what may be missing."""
    for name in ("language", "stemmer", "tokenizer"):
        if not isinstance(settings[name], str | None):
            raise TypeError(f"{name} is not a string")
    plain = settings | {"language": None, "stemmer": None, "tokenizer": None}
    if "also" in settings:
        plain["also"] = [[_plain(own), weight] for own, weight in further_settings(settings)]
    return plain


class Settings(NamedTuple):
    """What a manifest holds of an index beside its analyzer."""

    parameters: Parameters
    next_id: int
    probe: dict[str, str]
    extra: dict[str, Any]


def parse_settings(
    folder: str, settings: Mapping[str, Any], views: Sequence[SegmentView] = ()
) -> Settings:
    """Check the settings in a manifest, given its segments; raise ``CorruptIndexError``."""
    try:
        parameters = Parameters(**settings["parameters"])
        next_id, probe = natural(settings["next_id"]), settings["probe"]
        extra = check_extra(settings["extra"])
        natural(settings.get("keep", 0))
        if not isinstance(settings["analyzer"], dict):
            raise ValueError("analyzer is not an object")
        if not _are_strings(probe):
            raise ValueError("probe does not map words to stems")
        analyses = len(further_settings(settings["analyzer"])) + 1
        if analyses > 1 and parameters.fields is not None:
            raise ValueError("there are fields and several analyses")
        for view in views:
            if (view.segment.names, view.segment.analyses) != (parameters.names, analyses):
                raise ValueError("a segment has other fields or analyses")
            columns = max(len(parameters.field_weights), analyses)
            if view.segment.tokens != (0,) and len(view.tokens) != columns:
                raise ValueError("tokens are not those of the fields or analyses")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptIndexError(f"{manifest_path(folder)}: wrong settings ({error})") from None
    return Settings(parameters, next_id, probe, extra)


def _are_strings(probe: object) -> bool:
    return isinstance(probe, Mapping) and all(
        isinstance(text, str) for pair in probe.items() for text in pair
    )

"""Checks of a saved index beyond what reading and merging rely on.

Under "What is checked", ``docs/format.md`` lists every property of the files that anything
relies on, what relies on it, and when it is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bm25rag.columns.column import Column, build_column
from bm25rag.columns.merge import join_tables
from bm25rag.common.checks import DEEPEST
from bm25rag.common.codec import decode_metadata
from bm25rag.common.gil import releasing_gil
from bm25rag.common.strings import text_of, utf8
from bm25rag.errors import CorruptIndexError
from bm25rag.metadata import kinds
from bm25rag.metadata.field import Field
from bm25rag.metadata.field_builder import build_fields
from bm25rag.metadata.fields import Fields
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView
from bm25rag.storage.checked_columns import CheckedColumn
from bm25rag.storage.checked_postings import CheckedPostings
from bm25rag.storage.checksummed_file import ArraysFile, damage
from bm25rag.storage.segment_files import read_index
from bm25rag.storage.shard_statistics import check_statistics
from bm25rag.storage.state import check_analyzer, check_counts, parse_settings

# JSON may spell "$" like this; we do not, since "$" marks dates and keys.
_DOLLAR = "\\u0024"
# Returns the error for contents that cannot be right.
_Reject = Callable[[str, str], Exception]


def verify_folder(folder: str) -> None:
    """Check everything in a folder; needs neither its stemmer nor its tokenizer."""
    manifest, views, statistics = read_index(folder, mapped=True, known={})
    next_id = parse_settings(folder, manifest.settings, views).next_id
    check_counts(folder, manifest.commit, next_id)
    check_analyzer(folder, manifest.settings["analyzer"])
    verify_segments(views)
    if statistics is not None:
        check_statistics(folder, manifest, views, statistics)


def verify_segments(views: Sequence[SegmentView]) -> None:
    """Check everything of an index that has just been read from files.

    The message of a ``CorruptIndexError`` names the file.
    """
    files = [_unchecked_file(view.segment) for view in views]
    for view in views:
        _verify_segment(view.segment)
        for changes in view.changes:
            if changes.unverified is not None:
                changed = build_column(data or None for data in changes.changed.values())
                _verify_metadata(changed, partial(damage, changes.unverified))
                changes.unverified = None  # a refresh need not do it again
    try:
        join_tables([(view.segment.ids, view.living) for view in views])
    except CorruptIndexError as error:
        raise _naming_file(views, files, error) from None


def _naming_file(
    views: Sequence[SegmentView], files: Sequence[ArraysFile | None], error: CorruptIndexError
) -> CorruptIndexError:
    """Return the error for an id that two segments have, with the file of the later one."""
    seen: set[bytes] = set()
    for view, file in zip(views, files, strict=True):
        ids = {view.segment.ids.column[number] for number in view.numbers()}
        if file is not None and not seen.isdisjoint(ids):
            return file.reject("ids", "has an id that another file has, too")
        seen |= ids
    return error


def _unchecked_file(segment: Segment) -> ArraysFile | None:
    """Return the file that a segment was read from, if it has not been checked as a whole."""
    return segment.postings.file if isinstance(segment.postings, CheckedPostings) else None


def _verify_segment(segment: Segment) -> None:
    file = _unchecked_file(segment)
    segment.check_all()
    if file is None:  # it has been verified before
        return
    file.check_all()
    columns = [segment.postings.terms.column, segment.ids.column, segment.texts]
    columns += segment.other_texts.values()
    if segment.vectors is not None:
        columns.append(segment.vectors.terms.column)
    for column in columns:
        if isinstance(column, CheckedColumn):
            column.check_text()
    fresh = _verify_metadata(segment.metadata, file.reject)
    if segment.stored_fields is not None:
        _compare(segment.stored_fields, fresh, file.reject)


def _verify_metadata(metadata: Column, reject: _Reject) -> Fields:
    """Check that metadata are as we write them; return their fields."""
    try:
        for data in releasing_gil(metadata):
            if data:
                _check_metadata(text_of(data))
        return build_fields(metadata)
    except (CorruptIndexError, ValueError, RecursionError) as error:
        raise reject("metadata", f"cannot be read ({error})") from None


def _check_metadata(text: str) -> None:
    plain = json.loads(text)
    if type(plain) is not dict:
        raise ValueError(f"expected a dict, got {type(plain).__name__}")
    if '"$' in text or text.count("{") + text.count("[") > DEEPEST:
        _check_keys(plain, 0)
        decode_metadata(utf8(text))
    if _DOLLAR in text and json.dumps(plain, separators=(",", ":"), ensure_ascii=False) != text:
        raise ValueError(f"{_DOLLAR} may stand for a $ that is not seen")


def _check_keys(plain: Any, depth: int) -> None:
    """Check that no two keys would be read as one, and how deep values are nested."""
    if type(plain) is dict and plain.keys() not in ({"$date"}, {"$datetime"}):
        for key in plain:
            if key.startswith("$") and not key.startswith("$$"):
                raise ValueError(f"the key {key!r:.100} has one $ only")
    if type(plain) in (dict, list):
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} levels deep")
        for value in plain.values() if type(plain) is dict else plain:
            _check_keys(value, depth + 1)


def _compare(stored: Fields, fresh: Fields, reject: _Reject) -> None:
    """Check that stored fields say what the metadata say."""
    missing = set(fresh) - set(stored)
    if (stored.complete and missing) or (fresh.complete and not set(stored) <= set(fresh)):
        raise reject("fields.paths", "does not agree with the metadata")
    for path in stored:
        field, expected = stored.find(path), fresh.get(path)
        if field is not None and expected is not None and not _are_alike(field, expected):
            raise reject("fields.codes", f"does not agree with the metadata at {path!r:.100}")


def _are_alike(one: Field, other: Field) -> bool:
    if one.starts != other.starts or (one.documents is None) != (other.documents is None):
        return False
    arrays = [(one.codes, other.codes), (one.numbers, other.numbers)]
    if one.documents is not None and other.documents is not None:
        arrays.append((one.documents, other.documents))
    return all(np.array_equal(*pair) for pair in arrays) and _strings(one) == _strings(other)


def _strings(field: Field) -> tuple[list[int], bytes]:
    count = field.starts[-1] - field.starts[kinds.STRING]
    starts, data = field.column.span(field.first, field.first + count)
    if not count:
        return [], b""
    ends = np.asarray(starts) - starts[0]
    return ends.tolist(), bytes(data[starts[0] : starts[-1]])

"""``Query``: a query with parts that documents must have, or must not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from threading import TIMEOUT_MAX
from typing import Any, NamedTuple, TypeAlias

from bm25rag.common.checks import are_strings, check_real, check_sequence, check_weight
from bm25rag.common.record import Record

Part: TypeAlias = "str | Sequence[str] | InField"
"""A text, or a list of strings, which are taken as its terms; perhaps in one field."""

# What is said when a timeout was over.
OVER = (
    "the timeout of a query was over before all texts that could match were looked at: "
    "matches may be missing"
)


# What phrases stand in: as they are typed, and as editors set them in some languages.
_QUOTES = (('"', '"'), ("“", "”"), ("„", "“"), ("«", "»"))


class InField(NamedTuple):
    """A part of a query that must be in one field of a document."""

    field: str
    part: str | Sequence[str]


@lru_cache(maxsize=64)
def _parts(fields: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of the parts of a text.

    They are where a word begins: a phrase in quotes, or a word with a sign or the name of a field.
    What has no letter or digit is no part.
    """
    names = "|".join(map(re.escape, sorted(fields, key=len, reverse=True))) or "(?!)"
    quoted = "|".join(
        rf"{first}(?=[^{first}{last}]*\w)([^{first}{last}]*){last}" for first, last in _QUOTES
    )
    opening = "".join(first for first, _ in _QUOTES)
    word = rf"(?<=[+:-])(?=\S*\w)([^\s+{opening}-]\S*)"
    return re.compile(rf"(?<!\S)([+-]?)(?:({names}):)?(?:{word}|{quoted})")


class Query(Record):
    """A query whose matches must have some words and phrases, and must not have others.

    It goes wherever a query goes. Each part is analysed as documents are: "cats" is in what has
    "cat". Terms of ``text``, ``must`` and ``phrases`` score together, as if they were one text;
    what documents must not have never scores. With something in ``must`` or ``phrases``, its
    matches are the documents that have all of it, whether they have a term of ``text`` or not.

    Parameters
    ----------
    text
        Words that matches may have: a text, a list of terms, or a mapping of terms to weights,
        which then has all that scores, beside ``also``.
    also
        Other wordings of the same question, as a model writes them: a list of texts, or of lists
        of terms; or a mapping of these to weights, each from -1e30 to 1e30, otherwise 1. The score
        is the weighted sum of those of all wordings, and a match has a term of any.
    must
        Words that matches must have, each a text, of which they must have all terms in any order,
        or a list of terms.
    must_not
        Words that matches must not have: of a text, not all terms.
    phrases
        Words that matches must have in a row, stop words too. They are looked for in the stored
        texts, as are parts of stop words alone.
    not_phrases
        Words that matches must not have in a row.
    field
        The field of a document in which all of this must be; ``None``: any of its fields. A part
        of its own field is a mapping of that field to it: ``must=[{"title": "word"}]``. Scores are
        those of the whole document.
    timeout
        How many seconds a search may look into texts, > 0; ``None``: until it has all that was
        asked for. If time is up it returns what it has found, which are the best, and warns with
        ``IncompleteWarning``.

    Raises
    ------
    TypeError
        If an argument has the wrong type: a single string is no list of parts.
    ValueError
        If a part is empty, or ``timeout`` is not positive.

    Examples
    --------
    >>> from bm25rag import BM25Index
    >>> index = BM25Index.from_texts(["York is old.", "New York is new.", "A new old city."])
    >>> [hit.id for hit in index.search(Query("city", phrases=["new york"]))]
    ['1']
    >>> [hit.id for hit in index.search(Query.parse("old -york"))]
    ['2']
    """

    __slots__ = __match_args__ = (
        *("text", "also", "must", "must_not", "phrases", "not_phrases", "field", "timeout"),
    )

    def __init__(
        self,
        text: str | Sequence[str] | Mapping[str, float] = "",
        *,
        also: Iterable[str | Sequence[str]] | Mapping[Any, float] = (),
        must: Iterable[Part | Mapping[str, Any]] = (),
        must_not: Iterable[Part | Mapping[str, Any]] = (),
        phrases: Iterable[Part | Mapping[str, Any]] = (),
        not_phrases: Iterable[Part | Mapping[str, Any]] = (),
        field: str | None = None,
        timeout: float | None = None,
    ) -> None:
        # The terms and weights of other kinds are checked with the query.
        if isinstance(text, Mapping):
            text = dict(text)
        elif isinstance(text, (list, tuple)):
            text = tuple(text)
        elif not isinstance(text, str):
            raise TypeError(
                "text must be a str, a list of terms, or a dict of terms and their weights, "
                f"got {text!r:.100}"
            )
        self.text: str | Sequence[str] | Mapping[str, float] = text
        self.also: dict[str | tuple[str, ...], float] = _check_also(also)
        self.must: tuple[Part, ...] = _check_parts("must", must)
        self.must_not: tuple[Part, ...] = _check_parts("must_not", must_not)
        self.phrases: tuple[Part, ...] = _check_parts("phrases", phrases)
        self.not_phrases: tuple[Part, ...] = _check_parts("not_phrases", not_phrases)
        if field is not None and not isinstance(field, str):
            raise TypeError(f"field must be a str or None, got {field!r:.100}")
        self.field: str | None = field
        if timeout is not None:
            timeout = check_real("timeout", timeout, 0.0, TIMEOUT_MAX)
            if not timeout:
                raise ValueError("timeout must be more than 0 seconds, or None for no limit, got 0")
        self.timeout: float | None = timeout

    @classmethod
    def parse(
        cls, text: str, *, fields: Iterable[str] | None = None, timeout: float | None = None
    ) -> Query:
        """Read a text with the signs that search engines know.

        ``"exact phrase"`` is a phrase, ``+word`` what matches must have, ``-word`` what they must
        not have, and ``-"exact phrase"`` a phrase that they must not have; ``title:word`` and
        ``title:"exact phrase"``, with a sign or not, must be in that field. All of these count only
        where a word begins. Everything else is text, such as a quote that is never closed,
        a sign before another, or one that stands alone. Nothing is refused.

        Parameters
        ----------
        text
            Any string.
        fields
            The names of fields, such as those of ``index.fields``; a word before any other colon
            is text. ``None``: no fields.
        timeout
            As in the constructor.

        Raises
        ------
        TypeError
            If ``text`` is not a string.

        Examples
        --------
        >>> Query.parse('"new york" +pizza -pineapple cheap').phrases
        ('new york',)
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        given = (
            fields if isinstance(fields, Mapping) else check_sequence("fields", fields or (), "str")
        )
        names = tuple(given)
        if not are_strings(names):
            raise TypeError(f"fields must be names, which are str, got {names!r:.100}")
        pattern = _parts(names)
        parts: dict[str, Any] = {}
        for sign, name, word, *quoted in pattern.findall(text):
            kind = "must" if word else "phrases"
            if sign == "-":
                kind = "must_not" if word else "not_phrases"
            part = word or "".join(quoted)
            parts.setdefault(kind, []).append(InField(name, part) if name else part)
        if parts:
            text = " ".join(pattern.sub(" ", text).split())
        return cls(text, timeout=timeout, **parts)

    def as_text(self) -> str:
        """Return all that matches may or must have as one text, for retrievers without parts.

        Such as one by vectors: what it finds is then held against the query by ``HybridSearch``.
        """
        parts = (*self.also, *self.must, *self.phrases)
        wanted = [self.text, *(one.part if isinstance(one, InField) else one for one in parts)]
        return " ".join(one if isinstance(one, str) else " ".join(one) for one in wanted).strip()

    def replaced(self, **changed: Any) -> Query:
        """Return the query with other values for some of its attributes.

        Parameters
        ----------
        **changed
            As in the constructor.
        """
        values = dict(zip(self.__match_args__, self._values(), strict=True))
        return Query(**(values | changed))

    def __hash__(self) -> int:
        text = frozenset(self.text.items()) if isinstance(self.text, dict) else self.text
        return hash((text, frozenset(self.also.items()), *self._values()[2:]))


def _check_also(given: object) -> dict[str | tuple[str, ...], float]:
    weighted = isinstance(given, Mapping)
    pairs = given.items() if isinstance(given, Mapping) else enumerate(_check_list("also", given))
    also: dict[str | tuple[str, ...], float] = {}
    for key, value in pairs:
        question, weight = (key, value) if weighted else (value, 1.0)
        name = "a text of also" if weighted else f"also[{key}]"
        checked = _check_part(name, question)
        also[checked] = also.get(checked, 0.0) + check_weight("also", checked, weight)
    return also


def _check_parts(name: str, given: Iterable[Part | Mapping[str, Any]]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for number, part in enumerate(_check_list(name, given)):
        at = f"{name}[{number}]"
        if isinstance(part, InField):
            part = dict([part])
        if not isinstance(part, Mapping):
            parts.append(_check_part(at, part))
            continue
        for field, own in part.items():
            if not isinstance(field, str):
                raise TypeError(f"{at} must map names of fields, which are str, got {field!r}")
            parts.append(InField(field, _check_part(f"{at}[{field!r}]", own)))
    return tuple(parts)


def _check_list(name: str, given: object) -> Iterable[Any]:
    if isinstance(given, str):
        message = f"{name} must be a list of texts, got the str {given!r:.100}"
        raise TypeError(f"{message}: put it into a list")
    return check_sequence(name, given, "texts")


def _check_part(name: str, part: object) -> str | tuple[str, ...]:
    if isinstance(part, (list, tuple)) and are_strings(part):
        part = tuple(part)
    elif not isinstance(part, str):
        raise TypeError(
            f"{name} must be a str, a list of terms, or a dict of fields and these, "
            f"got {part!r:.100}"
        )
    if not (part.strip() if isinstance(part, str) else part):
        raise ValueError(f"{name} must not be empty: leave it out to ask for nothing")
    return part

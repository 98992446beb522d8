"""What an address asks for: the question, the filter and the settings; it holds all state."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from bm25rag.index import BM25Index
from bm25rag.readers.records import reject_constant
from bm25rag.scoring.variants import has_delta
from bm25rag.search.query import Query

# Results of a page, and their most; the deepest rank that a page may begin behind.
PAGE, _LONGEST_PAGE, _DEEPEST = 10, 100, 10_000_000
_LONGEST_QUESTION = 20_000
# Seconds that a question with phrases may look into texts.
PATIENCE = 3.0
_WEIGHT, _ALSO = "w.", "also."
_NUMBERS = ("k1", "b", "delta")


class Settings(NamedTuple):
    """The parameters and the commit that one side of a comparison asks for, or the baseline.

    ``parameters`` are those of ``BM25Index.tune`` that were given, but the weights; those of
    further analyses are by their numbers from 1. The commit is ``None`` for the last.
    """

    parameters: dict[str, Any]
    weights: dict[str, float]
    also: dict[int, float]
    commit: str | None = None
    baseline: bool = False

    def arguments(self, index: BM25Index) -> dict[str, Any]:
        """Return the arguments of ``tune``: what differs from the settings of the index."""
        own = {name: getattr(index, name) for name in ("variant", "k1", "b", "delta", "delta_on")}
        given = {name: one for name, one in self.parameters.items() if one != own[name]}
        if not has_delta(given.get("variant", own["variant"])):
            given.pop("delta", None)  # a form sends that of the variant before
        fields = index.fields or {}
        weights = {name: one for name, one in self.weights.items() if fields.get(name) != one}
        if weights:
            given["fields"] = weights
        further = [weight for _, weight in index.analyzer.also]
        wanted = [self.also.get(number, own) for number, own in enumerate(further, 1)]
        if wanted != further:
            given["also"] = wanted
        return given

    def tuned(self, index: BM25Index) -> BM25Index:
        """Return the index, or a view of it under these parameters."""
        given = self.arguments(index)
        return index.tune(**given) if given else index


class Asked:
    """The parameters of an address that are not empty; a ``ValueError`` names a wrong one."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given: dict[str, str] = dict(given)
        self.question: str = self.given.get("q", "")
        if len(self.question) > _LONGEST_QUESTION:
            raise ValueError(
                f"the question has {len(self.question):,} characters, and at most "
                f"{_LONGEST_QUESTION:,} are taken"
            )
        self.syntax: bool = "syntax" in self.given
        self.id: str | None = self.given.get("id")
        self.term: str | None = self.given.get("t")
        self.text: str | None = self.given.get("text")
        self.filter_text: str = self.given.get("filter", "").strip()
        self.size: int = _whole("size", self.given.get("size"), PAGE, 1, _LONGEST_PAGE)
        self.page: int = _whole("page", self.given.get("page"), 1, 1, _DEEPEST // self.size)
        self.settings: Settings = _settings(self.given, "")
        self.other: Settings = _settings(self.given, "b_")

    @classmethod
    def read(cls, address: bytes) -> Asked:
        """Read what is behind the question mark of an address; raise ``ValueError`` if it is wrong.

        Ids and terms may hold any code points, lone surrogates too.
        """
        try:
            pairs = parse_qsl(address.decode("ascii"), errors="surrogatepass", max_num_fields=200)
        except UnicodeDecodeError as error:
            raise ValueError(f"the address is not UTF-8: {error}") from error
        return cls(dict(pairs))

    @property
    def filter(self) -> dict[str, Any] | None:
        """The filter; raise ``ValueError`` if it is no JSON object."""
        if not self.filter_text:
            return None
        try:
            parsed = json.loads(self.filter_text, parse_constant=reject_constant)
        except RecursionError as error:
            raise ValueError("the filter has too many levels of nesting") from error
        except ValueError as error:
            raise ValueError(f"the filter is not JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise ValueError(f"the filter must be a JSON object, got {self.filter_text:.100}")
        return parsed

    @property
    def offset(self) -> int:
        """How many results come before this page."""
        return (self.page - 1) * self.size

    def query(self, index: BM25Index) -> str | Query:
        """Return the question as the index takes it."""
        if not self.syntax:
            return self.question
        return Query.parse(self.question, fields=index.fields, timeout=PATIENCE)

    def address(self, view: str, **changed: object) -> str:
        """Return the address of a view with the same state but for what is changed or ``None``."""
        merged: dict[str, object] = {**self.given, **changed}
        kept = {name: one for name, one in merged.items() if one is not None and one != ""}
        encoded = urlencode(kept, errors="surrogatepass", quote_via=quote)
        return f"/{view}?{encoded}" if encoded else f"/{view}"

    def settings_given(self, prefix: str) -> dict[str, str]:
        """Return the parameters of the settings of a side, by their names without the prefix."""
        names = {"variant", "delta_on", "commit", *_NUMBERS}
        return {
            name.removeprefix(prefix): value
            for name, value in self.given.items()
            if name.startswith(prefix)
            and (
                name.removeprefix(prefix) in names
                or name.startswith((prefix + _WEIGHT, prefix + _ALSO))
            )
        }

    def without_settings(self) -> dict[str, None]:
        """Return the changes of an address that lead to the settings that are saved."""
        return dict.fromkeys(name for name in self.settings_given("") if name != "commit")

    def as_other(self) -> dict[str, str | None]:
        """Return the changes of an address that make the settings those of the other side."""
        own = self.settings_given("")
        gone = [*own, *(f"b_{name}" for name in self.settings_given("b_"))]
        return {**dict.fromkeys(gone), **{f"b_{name}": value for name, value in own.items()}}

    def hidden(self, *without: str) -> list[tuple[str, str]]:
        """Return what a form sends unseen, so that it keeps the state: all but what it asks for."""
        return [
            (name, value)
            for name, value in self.given.items()
            if not any(
                name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in without
            )
        ]


def _whole(name: str, given: str | None, default: int, lowest: int, highest: int) -> int:
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) < 12):
        raise ValueError(
            f"{name} must be a whole number from {lowest} to {highest}, got {given!r:.50}"
        )
    return min(max(int(given), lowest), highest)


def _number(name: str, given: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a number, got {given!r:.50}")
    return value


def _settings(given: Mapping[str, str], prefix: str) -> Settings:
    parameters: dict[str, Any] = {
        name: _number(name, value)
        for name in _NUMBERS
        if (value := given.get(prefix + name)) is not None
    }
    for name in ("variant", "delta_on"):
        if prefix + name in given:
            parameters[name] = given[prefix + name]
    weights = dict(_weights(given, prefix + _WEIGHT))
    also = {
        int(number): one for number, one in _weights(given, prefix + _ALSO) if number.isdecimal()
    }
    commit = given.get(prefix + "commit")
    baseline = commit == "baseline"
    return Settings(parameters, weights, also, None if baseline else commit, baseline)


def _weights(given: Mapping[str, str], start: str) -> Iterable[tuple[str, float]]:
    for name, value in given.items():
        if name.startswith(start):
            yield name.removeprefix(start), _number(name, value)

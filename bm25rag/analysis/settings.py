"""The settings of an analyzer: their names, and what is checked of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, cast

from bm25rag.common.checks import are_strings, check_choice, check_count
from bm25rag.common.patterns import late_pattern
from bm25rag.errors import TokenizerRequiredError

Tokenizer = Callable[[str], list[str] | tuple[str, ...]]
"""What users may pass instead of all other settings: text to terms."""
NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
"""Unicode's normal forms."""

# The pattern of the BM25S paper: words of two characters and more.
PAPER = r"(?u)\b\w\w+\b"

# Patterns that find runs of one class of characters. In a set, "[" and a first "]" are left to re.
_RUNS = late_pattern(
    r"(?:\(\?(?P<flag>[aiu])\))?"
    r"(?P<edge>\\b(?=\\w))?"
    r"(?P<one>\\[wWdDsS]|\[\^?(?:\\.|[^\\\[\]])+\])"
    r"(?:(?P<second>(?P=one))?\+|\{(?P<least>[123]),\})"
    r"(?(edge)\\b)"
)

# In the order in which they are saved.
SETTINGS = (
    "language",
    "token_pattern",
    "normalize",
    "lowercase",
    "stopwords",
    "stemmer",
    "cjk",
    "tokenizer",
    "query_stopwords",
    "fold_accents",
    "cjk_characters",
    "southeast_asian",
    "identifiers",
)
# Those that are saved only if they are given.
OPTIONAL = ("ngrams", "also")
# The most further analyses: a character stands for each.
MOST_FURTHER = 7
# The most characters of a run of ``ngrams``.
LONGEST_NGRAM = 10
# The defaults of those that a tokenizer replaces, in the order of the Analyzer's arguments.
_DEFAULTS = ("english", "auto", "NFC", True, *["auto"] * 8, None)


class FoldRules(NamedTuple):
    r"""How the compiled scanner folds texts, and what words are to it.

    ``word`` is a pattern of the characters that words are of: ``\w`` if ``auto``, which is for
    words as people write them. The others are settings of the analyzer.
    """

    lowercase: bool
    turkish: bool
    normalize: NormalForm | None
    cjk: bool
    singles: bool
    southeast_asian: bool
    auto: bool
    word: str


def is_auto(value: object) -> bool:
    """Whether a setting is left to the language; the setting may be a NumPy array of words."""
    return isinstance(value, str) and value == "auto"


def is_unset(value: object) -> bool:
    """Whether stop words or a stemmer are left to others, or are none."""
    return value is None or is_auto(value) or (isinstance(value, list) and not value)


def check_switch(name: str, value: object, default: bool) -> bool:
    """Return a setting that is ``True``, ``False`` or ``"auto"``, with its default for the last."""
    if is_auto(value):
        return default
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True, False or 'auto', got {value!r}")
    return value


def check_form(form: str) -> NormalForm:
    """Return the name of a Unicode normal form."""
    return cast("NormalForm", check_choice("normalize", form, ("NFC", "NFD", "NFKC", "NFKD")))


def check_pattern(pattern: object) -> str:
    """Return a regular expression with which ``re.findall`` returns a list of strings."""
    if not isinstance(pattern, str):
        raise TypeError(f"token_pattern must be a regular expression or 'auto', got {pattern!r}")
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"token_pattern {pattern!r:.100} does not compile: {error}") from None
    if groups > 1:
        raise ValueError(
            f"token_pattern {pattern!r} has {groups} groups; use one at most, or (?:...) for more"
        )
    return pattern


def runs_of(pattern: str) -> tuple[str, int] | None:
    r"""Return the class and the least length of the runs that a pattern finds, if runs are all.

    ``\w+``, ``[^\s,]+``, ``[a-z][a-z]+``, ``\S{2,}`` and ``PAPER`` are such patterns. For a class
    with line feeds, which end words in the scanner, it returns ``None``.
    """
    match = _RUNS.fullmatch(pattern)
    if match is None:
        return None
    one = f"(?{match['flag'] or 'u'}:{match['one']})"
    if re.match(one, "\n"):
        return None
    return one, 2 if match["second"] else int(match["least"] or 1)


def check_tokenizer(tokenizer: object, others: tuple[object, ...]) -> None:
    """Check a tokenizer, which comes alone: the other arguments have their defaults."""
    if not callable(tokenizer):
        raise TypeError(f"tokenizer must be a callable from str to list[str], got {tokenizer!r}")
    if others != _DEFAULTS:
        raise ValueError("tokenizer replaces the other arguments of Analyzer; give it alone")


def check_settings(settings: Mapping[str, Any], tokenizer: Tokenizer | None) -> None:
    """Check saved settings, and that a tokenizer is given exactly if they name one."""
    keys = set(map(str, settings))
    if keys - {*OPTIONAL} != {*SETTINGS}:
        raise ValueError(f"settings must have the keys {sorted(SETTINGS)}, got {sorted(keys)}")
    saved_name = settings["tokenizer"]
    if saved_name is not None:
        if tokenizer is None:
            raise TokenizerRequiredError(
                f"the analyzer was made with the tokenizer {saved_name!r}; "
                "pass that callable as tokenizer=, or within analyzer=Analyzer(tokenizer=...)"
            )
        return
    if tokenizer is not None:
        name, language = tokenizer_name(tokenizer), settings["language"]
        raise ValueError(
            f"tokenizer is {name}, but the saved analyzer has none (language={language!r}); "
            "leave tokenizer out"
        )
    for name in ("stopwords", "query_stopwords"):
        if not isinstance(settings[name], list):
            raise TypeError(f"settings[{name!r}] must be a list of words")


def check_ngrams(size: object) -> int:
    """Return how many characters a run has, if words are cut into runs."""
    checked = check_count("ngrams", size, least=2)
    if checked > LONGEST_NGRAM:
        raise ValueError(f"ngrams must be at most {LONGEST_NGRAM}, got {checked}")
    return checked


def further_settings(settings: Mapping[str, Any]) -> list[tuple[dict[str, Any], float]]:
    """Return the saved settings of further analyses, each with its weight."""
    further = settings.get("also", [])
    if not isinstance(further, list) or not all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[0], dict) for one in further
    ):
        raise TypeError("settings['also'] must be a list of settings, each with a weight")
    return [(own, weight) for own, weight in further]


def check_tokens(tokens: object) -> list[str]:
    """Return what a tokenizer returned, as a list of strings."""
    if not isinstance(tokens, (list, tuple)) or not are_strings(tokens):
        raise TypeError(f"tokenizer must return a list of str, got {tokens!r:.100}")
    return list(tokens)


def tokenizer_name(tokenizer: Tokenizer) -> str:
    """Return the qualified name of a tokenizer, which is saved for messages only."""
    name = getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__)
    return f"{getattr(tokenizer, '__module__', '?')}.{name}"

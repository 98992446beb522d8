"""Text to terms: the one Analyzer that documents and queries share.

A text is normalised, lower-cased, cut into tokens, freed of stop words and
stemmed, in that order. Runs of Chinese, Japanese and Korean characters are cut
into overlapping bigrams, as Lucene's CJK analyzer does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, cast

from bm25rag import scripts
from bm25rag._types import are_strings, check_choice, check_sequence
from bm25rag.errors import TokenizerRequiredError
from bm25rag.languages import LANGUAGES, Language, find_language, load_stopwords
from bm25rag.stemming import Stemmer, check_algorithm

Tokenizer = Callable[[str], list[str] | tuple[str, ...]]
_Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

# Words of queries of which the terms are remembered, unless they are longer.
_MOST_WORDS, _LONGEST_WORD = 10_000, 100
PAPER_PATTERN = r"(?u)\b\w\w+\b"

_SETTINGS = (
    "language",
    "token_pattern",
    "normalize",
    "lowercase",
    "stopwords",
    "stemmer",
    "cjk",
    "tokenizer",
)


class Analyzer:
    r"""Turns a text into terms; saved with the index and used for documents and queries alike.

    Parameters
    ----------
    language
        A name or ISO code (``"english"``, ``"de"``), which chooses stop words and
        stemmer where those are ``"auto"``; ``None`` for neither.
        Thai, Lao, Khmer and Burmese do not mark words: give a ``tokenizer``.
    token_pattern
        A regular expression for ``re.findall``. ``"auto"`` is the paper's
        ``(?u)\b\w\w+\b``, but combining marks stay inside words, which the
        scripts of India and vocalised Arabic and Hebrew need. ``re`` knows no time limit:
        beware of patterns that backtrack without end, in indexes from others too.
    normalize
        A Unicode normal form (``"NFC"``, ``"NFD"``, ``"NFKC"``, ``"NFKD"``) or ``None``.
    lowercase
        Whether to lower-case; Turkish as Turkish does.
    stopwords
        ``"auto"`` for the language's list, the name of a list (``"english_long"``),
        words of your own, or ``None``.
    stemmer
        ``"auto"`` for the language's, the name of a Snowball algorithm, or ``None``.
    cjk
        ``"auto"`` or ``True``: fold widths and cut Chinese, Japanese and Korean runs
        into overlapping bigrams. A character that stands alone is a term of its own,
        so a query of one character finds only documents where it stands alone.
        ``False``: leave them to ``token_pattern``.
    tokenizer
        A callable from text to a list or tuple of terms, which replaces all of the above.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a language, list, stemmer or normal form is unknown, the pattern does not
        compile or has more than one group, or ``tokenizer`` comes with other arguments.

    Examples
    --------
    >>> Analyzer(language="english").terms("The cats are running")
    ['cat', 'run']
    """

    def __init__(
        self,
        language: str | None = "english",
        *,
        token_pattern: str = "auto",
        normalize: str | None = "NFC",
        lowercase: bool = True,
        stopwords: str | Iterable[str] | None = "auto",
        stemmer: str | None = "auto",
        cjk: bool | str = "auto",
        tokenizer: Tokenizer | None = None,
    ) -> None:
        given = (language, token_pattern, normalize, lowercase, stopwords, stemmer, cjk)
        if tokenizer is not None:
            _check_tokenizer(tokenizer, given)
            language, normalize, lowercase, stopwords, stemmer, cjk = (
                None,
                None,
                False,
                None,
                None,
                False,
            )
        self.tokenizer = tokenizer
        spoken = None if language is None else find_language(language)
        self.language = None if spoken is None else spoken.name
        self.token_pattern = _check_pattern(token_pattern)
        self.normalize = None if normalize is None else _check_form(normalize)
        self.lowercase = _check_flag("lowercase", lowercase)
        self.cjk = True if cjk == "auto" else _check_flag("cjk", cjk)
        if stemmer == "auto":
            stemmer = None if spoken is None else spoken.stemmer
        self.stemmer = None if stemmer is None else check_algorithm(stemmer)
        self.stopwords = self._choose_stopwords(stopwords, spoken)
        self._prepare()

    def _prepare(self) -> None:
        """Make what is derived from the settings and not saved."""
        auto = self.token_pattern == "auto"
        self._find = re.compile(PAPER_PATTERN if auto else self.token_pattern).findall
        self._find_marked = scripts.find_marked_words if auto else self._find
        self._stemmer = None if self.stemmer is None else Stemmer(self.stemmer)
        # Words of queries come again; a build gives each distinct word once.
        self._remembered = _Terms(self._stemmer, self.stopwords)

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text, in order, repeats included.

        Parameters
        ----------
        text
            Any string.

        Raises
        ------
        TypeError
            If ``text`` is not a string, or the tokenizer returns no list of strings.
        """
        words = self.words(text)
        if self.tokenizer is not None:
            return words
        term_of = self._remembered.__getitem__
        return [term for term in map(term_of, words) if term is not None]

    def words(self, text: str) -> list[str]:
        """Return the tokens of a text before stop words and stemming.

        Parameters
        ----------
        text
            Any string.

        Raises
        ------
        TypeError
            If ``text`` is not a string, or the tokenizer returns no list of strings.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        if self.tokenizer is not None:
            return _check_tokens(self.tokenizer(text))
        text = self.fold(text)
        if text.isascii():
            return self._find(text)
        if self.cjk and scripts.has_cjk(text):
            return scripts.cut_cjk(text, self._find_marked)
        return self._find_marked(text)

    def fold(self, text: str) -> str:
        """Return a text normalised and lower-cased, before it is cut.

        Parameters
        ----------
        text
            Any string.
        """
        plain = text.isascii()
        if self.cjk and not plain:
            text = scripts.fold_widths(text)
        if self.lowercase:
            text = scripts.lower(text, self.language == "turkish")
        # Last, since the lower case of a normal form need not be one.
        if self.normalize is None or plain:
            return text
        if self.normalize == "NFC" and scripts.is_surely_nfc(text):
            return text
        text = unicodedata.normalize(self.normalize, text)
        if self.lowercase and self.normalize[2] == "K":  # which makes capitals of some signs
            text = scripts.lower(text, self.language == "turkish")
            text = unicodedata.normalize(self.normalize, text)
        return text

    def stems(self, words: list[str]) -> list[str]:
        """Return the stems of words; the words themselves if there is no stemmer.

        Parameters
        ----------
        words
            Tokens, as ``words()`` returns them.
        """
        return words if self._stemmer is None else self._stemmer.stems(words)

    def stem(self, word: str) -> str | None:
        """Return the term of one word, or ``None`` for a stop word.

        Parameters
        ----------
        word
            A token, as ``words()`` returns them.
        """
        return self._remembered.make(word)

    def _choose_stopwords(
        self, stopwords: str | Iterable[str] | None, language: Language | None
    ) -> frozenset[str]:
        if isinstance(stopwords, str) and stopwords == "auto":
            stopwords = None if language is None else language.stopwords
        if stopwords is None:
            return frozenset()
        if isinstance(stopwords, str):
            stopwords = load_stopwords(stopwords)
        words = list(check_sequence("stopwords", stopwords, "words"))
        if not all(isinstance(word, str) for word in words):
            raise TypeError(f"stopwords must be words, got {words!r:.100}")
        return frozenset(self.fold(word) for word in words)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values: stop words by value, a tokenizer by name."""
        settings = {name: getattr(self, name) for name in _SETTINGS}
        settings["stopwords"] = sorted(self.stopwords)
        settings["tokenizer"] = None if self.tokenizer is None else _name_of(self.tokenizer)
        return settings

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], tokenizer: Tokenizer | None = None) -> Analyzer:
        """Make the analyzer that ``to_dict`` described.

        Nothing named in them is imported: a callable must be given again.

        Parameters
        ----------
        settings
            What ``to_dict`` returned.
        tokenizer
            The callable, if there was one.

        Raises
        ------
        TokenizerRequiredError
            If the settings name a callable and ``tokenizer`` is missing.
        TypeError
            If a setting has the wrong type.
        ValueError
            If a setting is missing, unknown or wrong, or a tokenizer is given that
            the settings do not have.
        """
        if sorted(map(str, settings)) != sorted(_SETTINGS):
            raise ValueError(
                f"settings must have the keys {sorted(_SETTINGS)}, got {sorted(map(str, settings))}"
            )
        named = settings["tokenizer"]
        if named is not None:
            if tokenizer is None:
                raise TokenizerRequiredError(
                    f"the analyzer was made with the tokenizer {named!r}; "
                    "pass that callable as tokenizer="
                )
            return cls(tokenizer=tokenizer)
        if tokenizer is not None:
            raise ValueError("tokenizer was given, but the saved analyzer has none; leave it out")
        if not isinstance(settings["stopwords"], list):
            raise TypeError("settings['stopwords'] must be a list of words")
        return cls(**{name: value for name, value in settings.items() if name != "tokenizer"})

    def probe(self) -> dict[str, str]:
        """Return common words of the stemmer's language and their stems.

        Saved with an index, they show on opening whether the stemmer has changed.
        """
        if self.stemmer is None:
            return {}
        lists = {one.stemmer: one.stopwords for one in LANGUAGES if one.stopwords}
        name = lists.get(self.stemmer, "english")
        words = sorted(load_stopwords("english_long" if name == "english" else name))
        return dict(zip(words, self.stems(words), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Analyzer):
            return NotImplemented
        return self.tokenizer == other.tokenizer and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.language, self.token_pattern, self.stemmer, self.stopwords))

    def __repr__(self) -> str:
        if self.tokenizer is not None:
            return f"Analyzer(tokenizer={_name_of(self.tokenizer)})"
        parts = [f"language={self.language!r}", f"stemmer={self.stemmer!r}"]
        parts.append(
            f"stopwords=<{len(self.stopwords)} words>" if self.stopwords else "stopwords=None"
        )
        rest = {"token_pattern": "auto", "normalize": "NFC", "lowercase": True, "cjk": True}
        parts += [
            f"{name}={getattr(self, name)!r}"
            for name, usual in rest.items()
            if getattr(self, name) != usual
        ]
        return f"Analyzer({', '.join(parts)})"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for derived in ("_find", "_find_marked", "_stemmer", "_remembered"):
            del state[derived]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()


class _Terms(dict[str, str | None]):
    """Maps a word to its term, a stop word to ``None``; remembers some, for any thread."""

    def __init__(self, stemmer: Stemmer | None, stopwords: frozenset[str]) -> None:
        self._stemmer = stemmer
        self._stopwords = stopwords

    def make(self, word: str) -> str | None:
        """Return the term of a word without remembering it."""
        if word in self._stopwords:
            return None
        return word if self._stemmer is None else self._stemmer.stems([word])[0]

    def __missing__(self, word: str) -> str | None:
        term = self.make(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = term
        return term


def _check_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        auto = " or 'auto'" if name == "cjk" else ""
        raise TypeError(f"{name} must be True or False{auto}, got {value!r}")
    return value


def _check_form(form: str) -> _Form:
    return cast("_Form", check_choice("normalize", form, ("NFC", "NFD", "NFKC", "NFKD")))


def _check_pattern(pattern: object) -> str:
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


def _check_tokenizer(tokenizer: object, given: tuple[object, ...]) -> None:
    if not callable(tokenizer):
        raise TypeError(f"tokenizer must be a callable from str to list[str], got {tokenizer!r}")
    if given != ("english", "auto", "NFC", True, "auto", "auto", "auto"):
        raise ValueError("tokenizer replaces the other arguments of Analyzer; give it alone")


def _check_tokens(tokens: object) -> list[str]:
    if not isinstance(tokens, (list, tuple)) or not are_strings(tokens):
        raise TypeError(f"tokenizer must return a list of str, got {tokens!r:.100}")
    return list(tokens)


def _name_of(function: Tokenizer) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}.{name}"

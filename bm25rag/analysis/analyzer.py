"""Text to terms: the one Analyzer that documents and questions share.

A text is normalised, lower-cased, cut into words, freed of accents that its language does
without and of stop words, and stemmed, in that order. Runs of Chinese, Japanese, Korean, Thai,
Lao, Khmer and Burmese are cut into overlapping pairs of characters. ``docs/languages.md`` says
what is done in which language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Literal, cast

from bm25rag.analysis import scripts, tokens
from bm25rag.analysis.accents import fold_accents
from bm25rag.analysis.languages import LANGUAGES, Language, find_language, load_stopwords
from bm25rag.analysis.stemming import Stemmer, check_algorithm
from bm25rag.common.checks import are_strings, check_choice, check_sequence
from bm25rag.errors import TokenizerRequiredError

Tokenizer = Callable[[str], list[str] | tuple[str, ...]]
_Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

# Words of queries of which the terms are remembered, unless they are longer.
_MOST_WORDS, _LONGEST_WORD = 10_000, 100
# The pattern of the paper: words of two characters and more.
PAPER = r"(?u)\b\w\w+\b"
# What "auto" was in version 0.1: the paper's pattern, with combining marks inside words.
AUTO_0_1 = "auto-0.1"

# Settings that version 0.1 did not have, with what it did instead.
_ADDED = {
    "query_stopwords": [],
    "fold_accents": False,
    "cjk_characters": False,
    "southeast_asian": False,
    "identifiers": False,
}
_SETTINGS = (
    "language",
    "token_pattern",
    "normalize",
    "lowercase",
    "stopwords",
    "stemmer",
    "cjk",
    "tokenizer",
    *_ADDED,
)


class Analyzer:
    r"""Turns a text into terms; saved with the index and used for documents and questions alike.

    Parameters
    ----------
    language
        A name or ISO code (``"english"``, ``"de"``), which chooses what is ``"auto"``
        below; ``None`` for no stop words, no stemmer and no folding.
    token_pattern
        ``"auto"``: words as people write them. Words of one character stay, and so do
        "C++", "C#", "3.5" and "U.S."; contractions leave no stray letters; combining marks
        are part of words. Otherwise a regular expression for ``re.findall``, such as
        ``PAPER`` (``(?u)\b\w\w+\b``), or ``"auto-0.1"`` for what ``"auto"`` was in version 0.1.
        With these ``query_stopwords``, ``fold_accents``, ``cjk_characters`` and
        ``southeast_asian`` are off unless they are asked for.
        ``re`` knows no time limit: beware of patterns that backtrack without end, in
        indexes from others too.
    normalize
        A Unicode normal form (``"NFC"``, ``"NFD"``, ``"NFKC"``, ``"NFKD"``) or ``None``.
    lowercase
        Whether to lower-case; Turkish as Turkish does.
    stopwords
        ``"auto"`` for the language's list, the name of a list (``"english_long"``),
        words of your own, or ``None``.
    query_stopwords
        Words that only questions lose, and only if something is left of the question;
        given as ``stopwords`` is. ``"auto"`` is ``"english_long"`` for English with its own
        stop words, and ``None`` otherwise.
    stemmer
        ``"auto"`` for the language's, the name of a Snowball algorithm, ``"arabic_light"``,
        or ``None``.
    fold_accents
        Whether to do without accents, except of letters that are others to readers of the
        language ("\u00e5" in Swedish). ``"auto"``: where that was measured or is the custom.
    cjk
        ``"auto"`` or ``True``: fold widths and cut Chinese, Japanese and Korean runs
        into overlapping bigrams. ``False``: leave them to ``token_pattern``.
    cjk_characters
        Whether characters of Han and Hangul are terms beside the bigrams, so that a question
        of one character finds; in questions of more, Han only. ``"auto"``: where ``cjk`` is.
    southeast_asian
        Whether to cut runs of Thai, Lao, Khmer and Burmese into overlapping pairs of clusters
        (a letter with its marks), which in documents are terms, too. ``"auto"``: where ``cjk`` is.
    identifiers
        Whether to index the parts of "camelCase", "snake_case" and "3.11.4" beside the whole;
        only with ``token_pattern="auto"``.
    tokenizer
        A callable from text to a list or tuple of terms, which replaces all of the above.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a language, list, stemmer or normal form is unknown, the pattern does not
        compile or has more than one group, ``identifiers`` comes with a pattern, or
        ``tokenizer`` comes with other arguments.

    Examples
    --------
    >>> Analyzer(language="english").terms("The cats are running")
    ['cat', 'run']
    >>> Analyzer(language="english").query_terms("What are C++ and C#?")
    ['c++', 'c#']
    """

    def __init__(
        self,
        language: str | None = "english",
        *,
        token_pattern: str = "auto",
        normalize: str | None = "NFC",
        lowercase: bool = True,
        stopwords: str | Iterable[str] | None = "auto",
        query_stopwords: str | Iterable[str] | None = "auto",
        stemmer: str | None = "auto",
        fold_accents: bool | str = "auto",
        cjk: bool | str = "auto",
        cjk_characters: bool | str = "auto",
        southeast_asian: bool | str = "auto",
        identifiers: bool = False,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        if tokenizer is not None:
            words = (stopwords, query_stopwords, stemmer, fold_accents)
            runs = (cjk, cjk_characters, southeast_asian, identifiers)
            given = (language, token_pattern, normalize, lowercase, *words, *runs)
            _check_tokenizer(tokenizer, given)
            language = normalize = stopwords = query_stopwords = stemmer = None
            lowercase = cjk = False
        self.tokenizer = tokenizer
        spoken = None if language is None else find_language(language)
        self.language = None if spoken is None else spoken.name
        self.token_pattern = _check_pattern(token_pattern)
        auto = self.token_pattern == "auto" and tokenizer is None
        self.normalize = None if normalize is None else _check_form(normalize)
        self.lowercase = _check_flag("lowercase", lowercase)
        self.identifiers = _check_flag("identifiers", identifiers)
        if self.identifiers and not auto:
            raise ValueError("identifiers=True needs token_pattern='auto', which finds them")
        folds = auto and spoken is not None and spoken.kept is not None
        self.fold_accents = _choose("fold_accents", fold_accents, folds)
        self.cjk = _choose("cjk", cjk, True)
        self.cjk_characters = _choose("cjk_characters", cjk_characters, auto and self.cjk)
        self.southeast_asian = _choose("southeast_asian", southeast_asian, auto and self.cjk)
        if stemmer == "auto":
            stemmer = None if spoken is None else spoken.stemmer
        self.stemmer = None if stemmer is None else check_algorithm(stemmer)
        if _is_auto(query_stopwords):
            own = auto and spoken is not None and _is_auto(stopwords)
            query_stopwords = spoken.query_stopwords if own and spoken is not None else None
        if _is_auto(stopwords):
            stopwords = None if spoken is None else spoken.stopwords
        self._prepare(spoken)
        self.stopwords = self._fold_words("stopwords", stopwords)
        self.query_stopwords = self._fold_words("query_stopwords", query_stopwords)

    def _prepare(self, spoken: Language | None) -> None:
        """Make what is derived from the settings and not saved."""
        self._auto = self.token_pattern == "auto" and self.tokenizer is None
        self._find: Callable[[str], list[str]]
        self._find_marked: Callable[[str], list[str]]
        if self._auto:
            self._find = scripts.word_pattern(marks=False).findall
            self._find_marked = scripts.find_words
        elif self.token_pattern == AUTO_0_1:
            self._find = re.compile(PAPER).findall
            self._find_marked = scripts.find_marked_words
        else:
            self._find = self._find_marked = re.compile(self.token_pattern).findall
        self._cuts = scripts.Cuts(self.cjk, self.southeast_asian, self.cjk and self.cjk_characters)
        self._kept = (spoken.kept if spoken is not None else None) or ""
        self._apostrophe = "ends" if spoken is None else spoken.apostrophe
        self._stemmer = None if self.stemmer is None else Stemmer(self.stemmer)
        # Words of queries come again; a build gives each distinct word once.
        self._of_document = _Terms(self, question=False)
        self._of_question = _Terms(self, question=True)

    @property
    def drops_possessives(self) -> bool:
        """Whether no token remains of an "s" that ends a word after an apostrophe."""
        return self._auto and self._apostrophe != "joins"

    def terms(self, text: str) -> list[str]:
        """Return the terms of a document, in order, repeats included.

        Parameters
        ----------
        text
            Any string.

        Raises
        ------
        TypeError
            If ``text`` is not a string, or the tokenizer returns no list of strings.
        """
        words = self.cut(text)
        if self.tokenizer is not None:
            return words
        return [term for term, _ in chain.from_iterable(map(self._of_document.__getitem__, words))]

    def query_terms(self, text: str) -> list[str]:
        """Return the terms of a question, in order, repeats included.

        They are those of a document less ``query_stopwords``, unless nothing would be left,
        and less what pairs of characters say already.

        Parameters
        ----------
        text
            Any string.

        Raises
        ------
        TypeError
            If ``text`` is not a string, or the tokenizer returns no list of strings.
        """
        words = self.cut(text, question=True)
        if self.tokenizer is not None:
            return words
        found = list(chain.from_iterable(map(self._of_question.__getitem__, words)))
        telling = [term for term, kept in found if kept]
        return telling or [term for term, _ in found]

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
        return self.split(self.cut(text))[0]

    def cut(self, text: str, question: bool = False) -> list[str]:
        """Return the words of a text as they were cut, of which ``split`` makes tokens.

        Parameters
        ----------
        text
            Any string.
        question
            Whether the text is a question.

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
        if self.cjk or self.southeast_asian:
            return scripts.cut(text, self._find_marked, self._cuts, question)
        return self._find_marked(text)

    def fold(self, text: str) -> str:
        """Return a text normalised and lower-cased, before it is cut.

        Where identifiers are looked for, capitals stay until words are split.

        Parameters
        ----------
        text
            Any string.
        """
        return self._fold(text, self.lowercase and not self.identifiers)

    def _fold(self, text: str, lowercase: bool) -> str:
        plain = text.isascii()
        if self._auto and not plain:
            text = scripts.drop_ignored(text)
        if self.cjk and not plain:
            text = scripts.fold_widths(text)
        if lowercase:
            text = scripts.lower(text, self.language == "turkish")
        if plain:
            return text
        # After lower-casing, since the lower case of a normal form need not be one.
        text = self._normal(text, lowercase)
        return scripts.APOSTROPHES.sub("'", text) if self._auto else text

    def _normal(self, text: str, lowercase: bool) -> str:
        if self.normalize is None or (self.normalize == "NFC" and scripts.is_surely_nfc(text)):
            return text
        text = unicodedata.normalize(self.normalize, text)
        if lowercase and self.normalize[2] == "K":  # which makes capitals of some signs
            text = scripts.lower(text, self.language == "turkish")
            text = unicodedata.normalize(self.normalize, text)
        return text

    def split(
        self, words: list[str], question: bool = False, odd: Iterable[int] | None = None
    ) -> tuple[list[str], dict[int, int]]:
        """Return the tokens of words, before stop words and stemming.

        Parameters
        ----------
        words
            Words, as ``cut`` returns them.
        question
            Whether they are those of a question.
        odd
            Which words are not only letters and digits of ASCII, if that is known.

        Returns
        -------
        tokens
            The tokens.
        sizes
            Of which words there are more tokens than one or none, and how many.
        """
        if self.identifiers:
            odd = range(len(words))
        elif odd is None:  # others are tokens already
            odd = [n for n, word in enumerate(words) if not (word.isascii() and word.isalnum())]
        found, several = words.copy(), dict[int, list[str]]()
        simple = self._auto and not self.identifiers and self.fold_accents
        for number in odd:
            word = words[number]
            if simple and word < scripts.FIRST_CUT and word.isalpha():  # most of them
                found[number] = fold_accents(word, self._kept)
                continue
            own = self._tokens_of(word, question)
            if len(own) == 1:
                found[number] = own[0]
            else:
                several[number] = own
        for number in reversed(several):
            found[number : number + 1] = several[number]
        return found, {number: len(own) for number, own in several.items()}

    def _tokens_of(self, word: str, question: bool) -> list[str]:
        own = [word]
        if word >= scripts.FIRST_CUT and (first := scripts.first_of_pair(word, self._cuts)):
            own += [first] * scripts.is_single(first, self._cuts, question)
        elif self._auto:
            own = tokens.split(word, self._apostrophe)
        if self.identifiers:
            own = [one for whole in own for one in (whole, *tokens.parts(whole))]
            own = [self._fold(one, self.lowercase) for one in own]
        return [fold_accents(one, self._kept) for one in own] if self.fold_accents else own

    def analyze(
        self, words: list[str], question: bool = False, odd: Iterable[int] | None = None
    ) -> tuple[list[str | None], dict[int, int]]:
        """Return the terms of words, ``None`` for a stop word.

        Parameters
        ----------
        words
            Words, as ``cut`` returns them.
        question
            Whether they are those of a question.
        odd
            As for ``split``.

        Returns
        -------
        terms
            The terms.
        sizes
            Of which words there are more terms than one or none, and how many.
        """
        found, sizes = self.split(words, question, odd)
        stopped = self.stopwords.intersection(found)
        terms: list[str | None] = [*self.stems(found)]
        if stopped:
            for number in [n for n, one in enumerate(found) if one in stopped]:
                terms[number] = None
        return terms, sizes

    def first_of_pair(self, word: str) -> str | None:
        """Return the character or cluster behind which the word after a pair begins.

        ``None`` if the word is no pair from a run without spaces; pairs overlap.

        Parameters
        ----------
        word
            A word, as ``cut`` returns them.
        """
        return scripts.first_of_pair(word, self._cuts)

    def stems(self, words: list[str]) -> list[str]:
        """Return the stems of words; the words themselves if there is no stemmer.

        Parameters
        ----------
        words
            Tokens, as ``words()`` returns them.
        """
        return words if self._stemmer is None else self._stemmer.stems(words)

    def _fold_words(self, name: str, given: str | Iterable[str] | None) -> frozenset[str]:
        """Return stop words in the form of tokens."""
        if given is None:
            return frozenset()
        if isinstance(given, str):
            given = load_stopwords(given)
        listed = list(check_sequence(name, given, "words"))
        if not all(isinstance(word, str) for word in listed):
            raise TypeError(f"{name} must be words, got {listed!r:.100}")
        folded = {str(self._fold(word, self.lowercase)) for word in listed}
        return frozenset(map(self._fold_word, folded))

    def _fold_word(self, word: str) -> str:
        # "don't" is to stop what is made of it; what becomes several tokens stops none of them.
        own = tokens.split(word, self._apostrophe) if self._auto else [word]
        word = own[0] if len(own) == 1 else word
        return fold_accents(word, self._kept) if self.fold_accents else word

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values: stop words by value, a tokenizer by name.

        Where they are such as version 0.1 had, they are written as it wrote them.
        """
        settings: dict[str, Any] = {name: getattr(self, name) for name in _SETTINGS}
        settings["stopwords"] = sorted(self.stopwords)
        settings["query_stopwords"] = sorted(self.query_stopwords)
        settings["tokenizer"] = None if self.tokenizer is None else _name_of(self.tokenizer)
        if not self._auto and all(settings[name] == was for name, was in _ADDED.items()):
            settings = {name: settings[name] for name in _SETTINGS if name not in _ADDED}
            if self.token_pattern == AUTO_0_1:
                settings["token_pattern"] = "auto"
        return settings

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], tokenizer: Tokenizer | None = None) -> Analyzer:
        """Make the analyzer that ``to_dict`` described, in version 0.1, too.

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
        settings = _with_added(settings)
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
        for name in ("stopwords", "query_stopwords"):
            if not isinstance(settings[name], list):
                raise TypeError(f"settings[{name!r}] must be a list of words")
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

    def is_what(self, given: Analyzer) -> bool:
        """Whether this is the analyzer given, or what version 0.1 made of the same arguments.

        So that a program which opens a folder that version 0.1 made, and names the settings
        that it made it with, goes on as before.

        Parameters
        ----------
        given
            The analyzer that the index of a folder is expected to have.
        """
        if self == given:
            return True
        if given.token_pattern != "auto" or self.token_pattern != AUTO_0_1:
            return False
        usual = Analyzer(given.language, stemmer=None)
        old = Analyzer(
            given.language,
            token_pattern=AUTO_0_1,
            normalize=given.normalize,
            lowercase=given.lowercase,
            stopwords="auto" if given.stopwords == usual.stopwords else given.stopwords,
            stemmer="arabic" if given.stemmer == "arabic_light" else given.stemmer,
            cjk=given.cjk,
        )
        return self == old

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
        usual = Analyzer(self.language)
        parts += [
            f"{name}={getattr(self, name)!r}"
            for name in _SETTINGS
            if name not in ("language", "stemmer", "stopwords", "query_stopwords", "tokenizer")
            and getattr(self, name) != getattr(usual, name)
        ]
        return f"Analyzer({', '.join(parts)})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SETTINGS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(_with_added(state))
        self.query_stopwords = frozenset(self.query_stopwords)
        self._prepare(None if self.language is None else find_language(self.language))


def _with_added(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings, those of version 0.1 too, with what was added since."""
    if settings.keys() & _ADDED.keys():
        return dict(settings)
    settings = {**settings, **_ADDED}
    if settings.get("token_pattern") == "auto":
        settings["token_pattern"] = AUTO_0_1
    return settings


class _Terms(dict[str, list[tuple[str, bool]]]):
    """Maps a word to its terms, each with whether a question keeps it; for any thread."""

    def __init__(self, analyzer: Analyzer, question: bool) -> None:
        self._analyzer = analyzer
        self._question = question

    def __missing__(self, word: str) -> list[tuple[str, bool]]:
        words = [word]
        found, _ = self._analyzer.split(words, self._question)
        terms, _ = self._analyzer.analyze(words, self._question)
        own = [
            (term, token not in self._analyzer.query_stopwords)
            for token, term in zip(found, terms, strict=True)
            if term is not None
        ]
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = own
        return own


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


def _choose(name: str, value: object, auto: bool) -> bool:
    if _is_auto(value):
        return auto
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True, False or 'auto', got {value!r}")
    return value


def _check_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
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
    usual = ("english", "auto", "NFC", True, *["auto"] * 7, False)
    if given != usual:
        raise ValueError("tokenizer replaces the other arguments of Analyzer; give it alone")


def _check_tokens(tokens: object) -> list[str]:
    if not isinstance(tokens, (list, tuple)) or not are_strings(tokens):
        raise TypeError(f"tokenizer must return a list of str, got {tokens!r:.100}")
    return list(tokens)


def _name_of(function: Tokenizer) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}.{name}"

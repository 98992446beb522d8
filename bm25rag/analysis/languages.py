"""The languages by name and ISO code: stemmer, stop words, letters that keep their accents.

Whether the installed PyStemmer has an algorithm is known only at run time, and
the analyzer asks it; here is what can be asked for. The stop words are Apache
Lucene's (see NOTICE): one file a list, one word a line.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from bm25rag.analysis.tokens import Apostrophe

__all__ = ["LANGUAGES", "STOPWORD_LISTS", "Language", "find_language", "load_stopwords"]


_LISTS = Path(__file__).parent / "stopwords"


class Language(NamedTuple):
    """What analysis knows of a language.

    Attributes
    ----------
    name : str
        The English name in lower case.
    codes : tuple of str
        ISO 639-1, then ISO 639-2 and 639-3 codes.
    stemmer : str or None
        Name of the stemmer, None where there is none.
    stopwords : str or None
        Name of the stop word list, None where there is none.
    kept : str or None
        Letters that keep their accents where accents are folded, since readers take them for
        letters of their own; None if accents are not folded at all.
    query_stopwords : str or None
        Name of the list that only questions lose, None where there is none.
    apostrophe : str
        What an apostrophe does to a word; see ``tokens.split``.
    """

    name: str
    codes: tuple[str, ...]
    stemmer: str | None
    stopwords: str | None
    kept: str | None = None
    query_stopwords: str | None = None
    apostrophe: Apostrophe = "ends"


def _both(name: str, *codes: str, kept: str | None = None) -> Language:
    return Language(name, codes, stemmer=name, stopwords=name, kept=kept)


def _stemmer(name: str, *codes: str, kept: str | None = None) -> Language:
    return Language(name, codes, stemmer=name, stopwords=None, kept=kept)


def _stopwords(name: str, *codes: str, kept: str | None = None) -> Language:
    return Language(name, codes, stemmer=None, stopwords=name, kept=kept)


def _neither(name: str, *codes: str, kept: str | None = None) -> Language:
    return Language(name, codes, stemmer=None, stopwords=None, kept=kept)


LANGUAGES: tuple[Language, ...] = (
    _neither("afrikaans", "af", "afr", kept=""),
    _both("arabic", "ar", "ara", kept="")._replace(stemmer="arabic_light"),
    _both("armenian", "hy", "hye", "arm"),
    _both("basque", "eu", "eus", "baq", kept="ñ"),
    _stopwords("bengali", "bn", "ben"),
    _neither("bosnian", "bs", "bos"),
    _stopwords("bulgarian", "bg", "bul"),
    _neither("burmese", "my", "mya", "bur", kept=""),
    _both("catalan", "ca", "cat", kept=""),
    # Chinese, Japanese and Korean are indexed as bigrams, which are no words:
    # a list of words would remove the bigrams of other words.
    _neither("chinese", "zh", "zho", "chi", "cmn", kept=""),
    _neither("croatian", "hr", "hrv"),
    _both("czech", "cs", "ces", "cze"),
    _both("danish", "da", "dan", kept="æøå"),
    _both("dutch", "nl", "nld", "dut", kept=""),
    _both("english", "en", "eng", kept="")._replace(query_stopwords="english_long"),
    _stemmer("esperanto", "eo", "epo", kept="ĉĝĥĵŝŭ"),
    _both("estonian", "et", "est", "ekk", kept="õäöüšž"),
    _both("finnish", "fi", "fin", kept="åäöšž"),
    _both("french", "fr", "fra", "fre", kept=""),
    _stopwords("galician", "gl", "glg", kept="ñ"),
    _both("german", "de", "deu", "ger", kept="äöüß"),
    _both("greek", "el", "ell", "gre", kept=""),
    _neither("hebrew", "he", "heb", kept="")._replace(apostrophe="joins"),
    _both("hindi", "hi", "hin", kept=""),
    _both("hungarian", "hu", "hun"),
    _neither("icelandic", "is", "isl", "ice"),
    _both("indonesian", "id", "ind", kept=""),
    _both("irish", "ga", "gle"),
    _both("italian", "it", "ita", kept=""),
    _neither("japanese", "ja", "jpn", kept=""),
    _neither("khmer", "km", "khm", kept=""),
    _neither("korean", "ko", "kor", kept=""),
    _neither("lao", "lo", kept=""),
    _stopwords("latvian", "lv", "lav", "lvs"),
    _both("lithuanian", "lt", "lit"),
    _neither("macedonian", "mk", "mkd", "mac"),
    _neither("malay", "ms", "msa", "may", "zsm", kept=""),
    _both("nepali", "ne", "nep", "npi", kept=""),
    _both("norwegian", "no", "nor", "nb", "nob", "nn", "nno", kept="æøå"),
    _both("persian", "fa", "fas", "per", "pes", kept=""),
    _both("polish", "pl", "pol"),
    # The stemmer reads these: without them it would take neither ending of ação and ações.
    _both("portuguese", "pt", "por", kept="ãõç"),
    _both("romanian", "ro", "ron", "rum"),
    _both("russian", "ru", "rus"),
    _both("serbian", "sr", "srp"),
    _stemmer("sesotho", "st", "sot", kept=""),
    _neither("slovak", "sk", "slk", "slo"),
    _neither("slovenian", "sl", "slv"),
    _stopwords("sorani", "ckb", kept=""),
    _both("spanish", "es", "spa", kept="ñ"),
    _neither("swahili", "sw", "swa", "swh", kept=""),
    _both("swedish", "sv", "swe", kept="åäö"),
    _neither("tagalog", "tl", "tgl", "fil", kept=""),
    _both("tamil", "ta", "tam"),
    _stopwords("telugu", "te", "tel"),
    _stopwords("thai", "th", "tha", kept=""),
    _both("turkish", "tr", "tur", kept="çğıöşü")._replace(apostrophe="cuts"),
    _neither("ukrainian", "uk", "ukr")._replace(apostrophe="joins"),
    _neither("urdu", "ur", "urd", kept=""),
    _neither("vietnamese", "vi", "vie"),
    _stemmer("yiddish", "yi", "yid", "ydd"),
)

STOPWORD_LISTS: tuple[str, ...] = tuple(
    sorted({"english_long"} | {each.stopwords for each in LANGUAGES if each.stopwords})
)

_BY_KEY = MappingProxyType({key: each for each in LANGUAGES for key in (each.name, *each.codes)})


def find_language(name: str) -> Language:
    """Find a language by its English name or ISO 639 code.

    Case does not matter, nor what follows a code after "-" or "_":
    "German", "de", "deu", "ger" and "de-AT" are one.

    Parameters
    ----------
    name
        A name or a code.

    Returns
    -------
    Language
        The language.

    Raises
    ------
    TypeError
        If `name` is not a string.
    ValueError
        If there is no such language; the message lists those there are.
    """
    if not isinstance(name, str):
        message = f"language: expected a str, a name or an ISO 639 code, got {name!r}"
        raise TypeError(message)
    key = name.strip().lower()
    language = _BY_KEY.get(key) or _BY_KEY.get(key.replace("_", "-").partition("-")[0])
    if language is None:
        known = ", ".join(f"{each.name} ({each.codes[0]})" for each in LANGUAGES)
        message = f"language: expected a name or an ISO 639 code of {known}; got {name!r}"
        raise ValueError(message)
    return language


@cache
def load_stopwords(name: str) -> frozenset[str]:
    """Load a list of stop words: lower case, in Unicode's normal form C.

    Parameters
    ----------
    name
        One of `STOPWORD_LISTS`. "english" has the 33 words of Lucene and
        Elasticsearch, "english_long" the 174 of Snowball.

    Returns
    -------
    frozenset of str
        The words.

    Raises
    ------
    ValueError
        If there is no such list; the message lists those there are.
    """
    if name not in STOPWORD_LISTS:
        known = ", ".join(STOPWORD_LISTS)
        message = f"stopwords: expected the name of a list, one of {known}; got {name!r}"
        raise ValueError(message)
    text = (_LISTS / f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))

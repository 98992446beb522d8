"""The languages by name and ISO code: which Snowball algorithm, which stop words.

Whether the installed PyStemmer has an algorithm is known only at run time, and
the analyzer asks it; here is what can be asked for. The stop words are Apache
Lucene's (see NOTICE): one file a list, one word a line.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

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
        Name of the Snowball algorithm, None where there is none.
    stopwords : str or None
        Name of the stop word list, None where there is none.
    """

    name: str
    codes: tuple[str, ...]
    stemmer: str | None
    stopwords: str | None


def _both(name: str, *codes: str) -> Language:
    return Language(name, codes, stemmer=name, stopwords=name)


def _stemmer(name: str, *codes: str) -> Language:
    return Language(name, codes, stemmer=name, stopwords=None)


def _stopwords(name: str, *codes: str) -> Language:
    return Language(name, codes, stemmer=None, stopwords=name)


def _neither(name: str, *codes: str) -> Language:
    return Language(name, codes, stemmer=None, stopwords=None)


LANGUAGES: tuple[Language, ...] = (
    _both("arabic", "ar", "ara"),
    _both("armenian", "hy", "hye", "arm"),
    _both("basque", "eu", "eus", "baq"),
    _stopwords("bengali", "bn", "ben"),
    _stopwords("bulgarian", "bg", "bul"),
    _both("catalan", "ca", "cat"),
    # Chinese, Japanese and Korean are indexed as bigrams, which are no words:
    # a list of words would remove the bigrams of other words.
    _neither("chinese", "zh", "zho", "chi", "cmn"),
    _both("czech", "cs", "ces", "cze"),
    _both("danish", "da", "dan"),
    _both("dutch", "nl", "nld", "dut"),
    _both("english", "en", "eng"),
    _stemmer("esperanto", "eo", "epo"),
    _both("estonian", "et", "est", "ekk"),
    _both("finnish", "fi", "fin"),
    _both("french", "fr", "fra", "fre"),
    _stopwords("galician", "gl", "glg"),
    _both("german", "de", "deu", "ger"),
    _both("greek", "el", "ell", "gre"),
    _neither("hebrew", "he", "heb"),
    _both("hindi", "hi", "hin"),
    _both("hungarian", "hu", "hun"),
    _both("indonesian", "id", "ind"),
    _both("irish", "ga", "gle"),
    _both("italian", "it", "ita"),
    _neither("japanese", "ja", "jpn"),
    _neither("korean", "ko", "kor"),
    _stopwords("latvian", "lv", "lav", "lvs"),
    _both("lithuanian", "lt", "lit"),
    _both("nepali", "ne", "nep", "npi"),
    _both("norwegian", "no", "nor", "nb", "nob", "nn", "nno"),
    _both("persian", "fa", "fas", "per", "pes"),
    _both("polish", "pl", "pol"),
    _both("portuguese", "pt", "por"),
    _both("romanian", "ro", "ron", "rum"),
    _both("russian", "ru", "rus"),
    _both("serbian", "sr", "srp"),
    _stemmer("sesotho", "st", "sot"),
    _stopwords("sorani", "ckb"),
    _both("spanish", "es", "spa"),
    _both("swedish", "sv", "swe"),
    _both("tamil", "ta", "tam"),
    _stopwords("telugu", "te", "tel"),
    _stopwords("thai", "th", "tha"),
    _both("turkish", "tr", "tur"),
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

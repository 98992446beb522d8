"""The languages by name and ISO code: stemmer, stop words, letters that keep their accents.

Only at run time is it known whether the installed PyStemmer has an algorithm; the analyzer checks
that. The stop words are Apache Lucene's (see NOTICE): one file per list, one word per line.
"""

from __future__ import annotations

import os
from functools import cache, partial
from types import MappingProxyType
from typing import NamedTuple

from bm25rag.analysis.tokens import Apostrophe

_LISTS = os.path.join(os.path.dirname(__file__), "stopwords")


class Language(NamedTuple):
    """What the analysis of a language needs; ``None`` for what it has not.

    ``kept_letters`` keep their accents when accents are folded, because readers see them as letters
    of their own; ``None`` if accents are not folded at all.
    """

    name: str  # in English, in lower case
    codes: tuple[str, ...]  # of ISO 639-1, then of 639-2 and 639-3
    stemmer: str | None
    stopwords: str | None  # the name of a list
    kept_letters: str | None = None
    query_stopwords: str | None = None  # the list that is removed from questions only
    apostrophe: Apostrophe = "ends"  # what one does to a word; see ``tokens.split_word``


def _language(
    name: str,
    *codes: str,
    kept_letters: str | None = None,
    stemmer: bool = False,
    stopwords: bool = False,
) -> Language:
    """Return a language whose stemmer and list of stop words, if it has them, have its name."""
    return Language(
        name, codes, name if stemmer else None, name if stopwords else None, kept_letters
    )


_neither, _both = _language, partial(_language, stemmer=True, stopwords=True)
_stemmer, _stopwords = partial(_language, stemmer=True), partial(_language, stopwords=True)


def _unaccented(name: str, *codes: str, kept_letters: str | None = None) -> Language:
    """Return a language with both, whose words have the same stems with accents and without."""
    both = _both(name, *codes, kept_letters=kept_letters)
    return both._replace(stemmer=f"{name}_unaccented")


LANGUAGES: tuple[Language, ...] = (
    _neither("afrikaans", "af", "afr", kept_letters=""),
    # The stemmer needs the letters that are folded in other languages.
    _both("arabic", "ar", "ara", kept_letters="آأإٱةىيك")._replace(stemmer="arabic_light"),
    _both("armenian", "hy", "hye", "arm"),
    _both("basque", "eu", "eus", "baq", kept_letters="ñ"),
    _both("bengali", "bn", "ben")._replace(stemmer="bengali_light"),
    # Snowball's Serbian stemmer knows Latin letters and the dialect of Bosnian and Croatian, too.
    _neither("bosnian", "bs", "bos")._replace(stemmer="serbian_unaccented"),
    _both("bulgarian", "bg", "bul")._replace(stemmer="bulgarian_light"),
    _neither("burmese", "my", "mya", "bur", kept_letters=""),
    _unaccented("catalan", "ca", "cat", kept_letters=""),
    # Chinese, Japanese and Korean are indexed as bigrams, which are not words: a list of words
    # would remove bigrams of other words.
    _neither("chinese", "zh", "zho", "chi", "cmn", kept_letters=""),
    _neither("croatian", "hr", "hrv")._replace(stemmer="serbian_unaccented"),
    _unaccented("czech", "cs", "ces", "cze"),
    _unaccented("danish", "da", "dan", kept_letters="æøå"),
    _both("dutch", "nl", "nld", "dut", kept_letters=""),
    _both("english", "en", "eng", kept_letters="")._replace(query_stopwords="english_long"),
    _stemmer("esperanto", "eo", "epo", kept_letters="ĉĝĥĵŝŭ"),
    _unaccented("estonian", "et", "est", "ekk", kept_letters="õäöüšž"),
    _unaccented("finnish", "fi", "fin", kept_letters="åäöšž"),
    _both("french", "fr", "fra", "fre", kept_letters=""),
    _stopwords("galician", "gl", "glg", kept_letters="ñ"),
    _both("german", "de", "deu", "ger", kept_letters="äöüß"),
    _both("greek", "el", "ell", "gre", kept_letters=""),
    _neither("hebrew", "he", "heb", kept_letters="")._replace(apostrophe="joins"),
    _both("hindi", "hi", "hin", kept_letters=""),
    _unaccented("hungarian", "hu", "hun"),
    _neither("icelandic", "is", "isl", "ice"),
    _both("indonesian", "id", "ind", kept_letters=""),
    _both("irish", "ga", "gle"),
    _both("italian", "it", "ita", kept_letters=""),
    _neither("japanese", "ja", "jpn", kept_letters=""),
    _neither("khmer", "km", "khm", kept_letters=""),
    _neither("korean", "ko", "kor", kept_letters=""),
    _neither("lao", "lo", kept_letters=""),
    _stopwords("latvian", "lv", "lav", "lvs")._replace(stemmer="latvian_unaccented"),
    _unaccented("lithuanian", "lt", "lit"),
    _neither("macedonian", "mk", "mkd", "mac")._replace(stemmer="macedonian_light"),
    _neither("malay", "ms", "msa", "may", "zsm", kept_letters=""),
    _both("nepali", "ne", "nep", "npi", kept_letters=""),
    _unaccented("norwegian", "no", "nor", "nb", "nob", "nn", "nno", kept_letters="æøå"),
    _both("persian", "fa", "fas", "per", "pes", kept_letters="")._replace(stemmer="persian_light"),
    _unaccented("polish", "pl", "pol"),
    # The stemmer needs these letters to remove the endings of ação and ações.
    _unaccented("portuguese", "pt", "por", kept_letters="ãõç"),
    _unaccented("romanian", "ro", "ron", "rum"),
    _both("russian", "ru", "rus"),
    _unaccented("serbian", "sr", "srp"),
    _stemmer("sesotho", "st", "sot", kept_letters=""),
    _neither("slovak", "sk", "slk", "slo")._replace(stemmer="slovak_unaccented"),
    _neither("slovenian", "sl", "slv")._replace(stemmer="slovenian_unaccented"),
    _stopwords("sorani", "ckb", kept_letters=""),
    _both("spanish", "es", "spa", kept_letters="ñ"),
    _neither("swahili", "sw", "swa", "swh", kept_letters=""),
    _unaccented("swedish", "sv", "swe", kept_letters="åäö"),
    _neither("tagalog", "tl", "tgl", "fil", kept_letters=""),
    _both("tamil", "ta", "tam"),
    _stopwords("telugu", "te", "tel"),
    _stopwords("thai", "th", "tha", kept_letters=""),
    _both("turkish", "tr", "tur", kept_letters="çğıöşü")._replace(apostrophe="cuts"),
    _neither("ukrainian", "uk", "ukr")._replace(stemmer="ukrainian_light", apostrophe="joins"),
    _neither("urdu", "ur", "urd", kept_letters="آ"),
    _neither("vietnamese", "vi", "vie"),
    _stemmer("yiddish", "yi", "yid", "ydd"),
)

# Source code: nothing is dropped or stemmed, and identifiers are found by their parts, too.
CODE = Language("code", (), None, None)

STOPWORD_LISTS: tuple[str, ...] = tuple(
    sorted({"english_long"} | {each.stopwords for each in LANGUAGES if each.stopwords})
)

_BY_KEY = MappingProxyType({key: each for each in LANGUAGES for key in (each.name, *each.codes)})


def find_language(name: str) -> Language:
    """Find a language by its English name or ISO 639 code, or `CODE` by "code".

    Neither case matters, nor what follows a code after "-" or "_":
    "German", "de", "deu", "ger" and "de-AT" are the same language.
    """
    if not isinstance(name, str):
        raise TypeError(f"language: expected a str, a name or an ISO 639 code, got {name!r}")
    key = name.strip().lower()
    if key == CODE.name:
        return CODE
    language = _BY_KEY.get(key) or _BY_KEY.get(key.replace("_", "-").partition("-")[0])
    if language is None:
        known = ", ".join(f"{each.name} ({each.codes[0]})" for each in LANGUAGES)
        raise ValueError(
            f"language: expected a name or an ISO 639 code of {known}; or 'code'; got {name!r}: "
            "any other is searched by its words as they are with language=None, or on the command "
            "line --stemmer none --stopwords none"
        )
    return language


@cache
def load_stopwords(name: str) -> frozenset[str]:
    """Load a list of stop words, in lower case and Unicode's normal form C.

    Parameters
    ----------
    name
        One of `STOPWORD_LISTS`. "english" has the 33 words of Lucene and
        Elasticsearch, "english_long" the 174 of Snowball.

    Raises
    ------
    ValueError
        If there is no such list; the message lists all of them.
    """
    if name not in STOPWORD_LISTS:
        known = ", ".join(STOPWORD_LISTS)
        raise ValueError(f"stopwords: expected the name of a list, one of {known}; got {name!r}")
    with open(os.path.join(_LISTS, f"{name}.txt"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))

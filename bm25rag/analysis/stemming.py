"""Snowball stemmers for any thread and any word, and others where ours find more.

Light stemmers are for Arabic and Persian, and for languages that Snowball does not know. Others
are one of these or of Snowball's, by which words with accents and without have the same stem.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import NamedTuple

from bm25rag.analysis.accents import fold_accents
from bm25rag.analysis.snowball import (
    WordStemmer,
    algorithms,
    library_name,
    new_stemmer,
    snowball_version,
)
from bm25rag.analysis.unspaced_runs import FIRST_LETTER
from bm25rag.common.checks import check_choice
from bm25rag.common.patterns import late_pattern
from bm25rag.common.strings import is_unicode

# Snowball takes quadratic time for some words; no word of a language is longer than this.
_LONGEST = 255
# Snowball's Arabic stemmer leaves endings that Larkey's light stemmers remove (Larkey, Ballesteros
# and Connell 2002, "Improving stemming for Arabic information retrieval": light10), and the alif
# of adverbs. At least three letters remain, as many as roots have.
# Snowball leaves the article (al) where a conjunction (wa, fa) is before it, and takes other
# letters for prefixes in a word without the article than in the same word with it. So it comes
# off first.
_ARABIC_ARTICLE = late_pattern(
    # "His father", "her mother", "adults" and the like have none: the rest would be no word.
    "(?m)^(?!\u0648\u0627\u0644\u062f(?:[\u0647\u0629\u064a]?$|\u0647\u0627|\u0647\u0645|\u062a|\u064a\u0647)"
    "|\u0628\u0627\u0644\u063a(?:\u064a\u0646|\u0648\u0646|\u0627\u062a|\u0627\u0646)$)(?:"
    # (Wa, fa) al, before at least two letters, as "blood" has.
    "(?:[\u0648\u0641]?[\u0627\u0671]\u0644(?=[\u0621-\u064a]{2})"
    # (Wa, fa) bi-al, ka-al, lil, before three, as Snowball demands.
    "|[\u0648\u0641]?(?:[\u0628\u0643][\u0627\u0671]\u0644|\u0644\u0644)(?=[\u0621-\u064a]{3}))"
    # An alif after it, before another lam, is one whose hamza was left out ("electronic", "games"):
    # Snowball would take both for a second article. With a ta they are the word's ("inflammation").
    "(?P<alif>[\u0627\u0671](?=\u0644[^\u062a\n]))?"
    # "Allah" keeps it and loses what is before; the rest of it would be "for him".
    "|[\u0648\u0641\u0628\u062a](?=[\u0627\u0671]\u0644\u0644\u0647$))(?!\u0644\u0647\u0645?$)"
)
# Vowel signs and the stretching tatweel, which Snowball drops itself.
_ARABIC_MARKS = late_pattern("[\u0640\u064b-\u0652]")
_ARABIC_ENDING = late_pattern(
    "(?m)(?<=[\u0621-\u064a]{3})(?:\u0647\u0627|\u0627\u0646|\u0627\u062a|\u0648\u0646|\u064a\u0646"
    "|\u064a\u0647|\u064a\u0629|[\u0647\u0629\u064a\u0627])$"
)


def _ending(endings: str) -> re.Pattern[str]:
    """Return the pattern of the longest of some endings before which three characters remain."""
    return late_pattern(rf"(?m)(?<=.{{3}})(?:{'|'.join(endings.split())})$")


# Cases and genders, persons, and what is made of verbs and adjectives by -ння, -ність and -ний.
_UKRAINIAN = _ending(
    "ами ями ові еві єві ого ому ими іми ій ий ою ею єю ої ії ів їв ах ях ам ям ом ем єм им ім их"
    " іх а я у ю і ї и е є о ь й"
    " ти ть ють ять уть ать ить ємо емо имо єте ете ите ла ло ли в"
    " ення енням енні ень еннями еннях ання анням анні ань аннями аннях"
    " ість ості істю остей остям остями остях"
    " ний ного ному ним них ними ною ній ної на не ну ні"
)
# Plurals (-ha, -an, -at), the possessives of the first, -ash of "his" and "her", comparative and
# superlative, and -i, which makes a noun indefinite or an adjective of it, or joins words after a
# vowel. Snowball's leaves most words with -i, and takes apart what only looks inflected.
_PERSIAN = _ending("ها های هایم هایت هایش هایمان هایتان هایشان ان ات ش تر ترین ی")
# What comes off a word, one after the other, where Snowball knows nothing, or little.
_ENDINGS = {
    # Classifiers, plurals and cases; then what a case has left, or what only looks like it. A dot
    # below is a character of its own in NFC.
    "bengali_light": (
        _ending(
            "গুলোর গুলোকে গুলোতে গুলো গুলির গুলিতে গুলি দেরকে দের টির টিকে টিতে টি টার টা"
            " য\u09bcের ের কে তে রা"
        ),
        _ending("র ে য\u09bc ই ও"),
    ),
    # The article, then number and gender (Savoy 2007, "Searching strategies for the Bulgarian
    # language").
    "bulgarian_light": (
        _ending("ият ия ът ят то те та"),
        _ending("овци овце ове еве ища ен а о е я и й"),
    ),
    # Cases of nouns, and of adjectives of both kinds; then verbs, and nouns that are made of them.
    "latvian_light": (
        _ending(
            "a ā e ē i ī o u ū s š as ās es ēs is īs os us ai ei am ām em ēm im īm um ūm iem ais"
            " ajā ajai ajam ajām ajās ajiem ajos iet at āt"
        ),
        _ending("ošan ēšan īšan āšan šan um ot ēt īt āt"),
    ),
    "macedonian_light": (_ending("иот от то те та"), _ending("ови еви а о е и ј")),
    # Three, as in "Iranians": Iran, -i, -an. Before them, Arabic letters have become Persian ones.
    "persian_light": (_PERSIAN, _PERSIAN, _PERSIAN),
    # Cases and genders of nouns and adjectives.
    "slovak_light": (
        _ending(
            "a á ä e é i í o u ú y ý ia ie iu ej ou ov om am em im ym ám ém ím ým iam ach och ich"
            " ách ích ých iach ami imi ymi ími ými iami eho ého ieho emu ému iemu ovi ovia ova ové"
        ),
    ),
    "slovenian_light": (
        _ending("ama ami oma ema om em ov ev ih im ega emu imi ima ah am a e i o u"),
    ),
    # What makes verbs reflexive; then the others twice, because a word may end as if it had one:
    # without its case "режиму" is "режим", which ends as "твоїм" does.
    "ukrainian_light": (_ending("ся сь"), _UKRAINIAN, _UKRAINIAN),
}


class _OnAnother(NamedTuple):
    """What is done to a word before another algorithm, and to its stem after it.

    ``of_lines`` says that both take each line of a string for a word.
    """

    algorithm: str
    before: Callable[[str], str] | None = None
    after: Callable[[str], str] | None = None
    of_lines: bool = False


def _without_article(word: str) -> str:
    return _ARABIC_ARTICLE.sub(_with_hamza, _ARABIC_MARKS.sub("", word))


def _with_hamza(article: re.Match[str]) -> str:
    return "\u0623" if article["alif"] else ""


def _without_arabic_ending(stem: str) -> str:
    return _ARABIC_ENDING.sub("", stem)


def _with_accents(endings: dict[str, str]) -> Callable[[str], str]:
    """Return what gives accents back to words that end so without; the longer endings first.

    The algorithms know these endings by their accents, which many questions lack and folding takes
    away.
    """
    unaccented = (*endings,)

    def restore(word: str) -> str:
        if not word.endswith(unaccented):  # as most words
            return word
        ending = next(filter(word.endswith, unaccented))
        return word.removesuffix(ending) + endings[ending]

    return restore


def _unaccented(stem: str) -> str:
    """Return a stem without accents, also of letters that are letters of their own.

    The algorithms go by accents, so words keep them until they are stemmed. Runs without spaces
    have none, and keep their letters in any normal form.
    """
    return stem if stem >= FIRST_LETTER else fold_accents(stem, "")


# Endings that the light stemmer of Latvian knows by their accents.
_LATVIAN_UNACCENTED = _ending("osan esan isan asan san at et it")


def _without_latvian_ending(stem: str) -> str:
    return _unaccented(_LATVIAN_UNACCENTED.sub("", stem))


# Those whose stems need nothing but to lose their accents.
_FOLDED = [
    "danish",
    "estonian",
    "finnish",
    "lithuanian",
    "norwegian",
    "romanian",
    "serbian",
    "swedish",
]
# Our own stemmers that do more than another.
ON_OTHERS = {
    "arabic_light": _OnAnother("arabic", _without_article, _without_arabic_ending, of_lines=True),
    "catalan_unaccented": _OnAnother("catalan", _with_accents({"io": "ió"})),
    "czech_unaccented": _OnAnother(
        "czech",
        _with_accents(
            {"eho": "ého", "emu": "ému", "ich": "ích", "iho": "ího", "imi": "ími", "ych": "ých"}
            | {"ymi": "ými", "ym": "ým"}
        ),
        _unaccented,
    ),
    "hungarian_unaccented": _OnAnother("hungarian", _with_accents({"o": "ó"}), _unaccented),
    "latvian_unaccented": _OnAnother("latvian_light", after=_without_latvian_ending),
    "polish_unaccented": _OnAnother("polish", _with_accents({"ow": "ów"}), _unaccented),
    "portuguese_unaccented": _OnAnother(
        "portuguese",
        _with_accents(
            {"caos": "çãos", "cao": "ção", "coes": "ções", "aos": "ãos", "ao": "ão", "oes": "ões"}
        ),
    ),
    "slovak_unaccented": _OnAnother(
        "slovak_light", _with_accents({"ych": "ých", "ove": "ové"}), _unaccented
    ),
    "slovenian_unaccented": _OnAnother("slovenian_light", after=_unaccented),
    **{f"{name}_unaccented": _OnAnother(name, after=_unaccented) for name in _FOLDED},
}


class Stemmer:
    """A stemmer that threads may share."""

    def __init__(self, algorithm: str) -> None:
        own = ON_OTHERS.get(algorithm) or _OnAnother(algorithm)
        self._algorithm, self._before, self._after, self._of_lines = own
        self._endings = _ENDINGS.get(self._algorithm, ())
        self._local = threading.local()

    def stems(self, words: list[str]) -> list[str]:
        """Return the stem of each word; the word itself where Snowball returns nothing.

        Snowball returns nothing for a few words of Nepali, Tamil and Irish. Words of more than
        255 characters or with a lone surrogate are not passed to it.
        """
        accepted = _changed(words, self._before, self._of_lines)
        if self._endings:
            stems = _changed(accepted, self._without_endings, of_lines=True)
        else:
            stems = self._snowball_stems(accepted)
        if not all(stems):
            stems = [stem or word for stem, word in zip(stems, words, strict=True)]
        return _changed(stems, self._after, self._of_lines)

    def of_words(self) -> Callable[[str], str]:
        """Return a function by which this thread may stem words of Unicode, up to 255 characters.

        For some words it returns an empty string; ``stems`` returns these words themselves.
        """
        stem = self._without_endings if self._endings else self._thread_stemmer().stemWord
        if self._before is None and self._after is None:
            return stem
        before, after = self._before or str, self._after or str
        return lambda word: after(stem(before(word)) or word)

    def _snowball_stems(self, words: list[str]) -> list[str]:
        stemmer = self._thread_stemmer()
        if max(map(len, words), default=0) > _LONGEST:
            words = [word if len(word) <= _LONGEST else "" for word in words]
        try:
            return stemmer.stemWords(words)
        except UnicodeEncodeError:
            return [stemmer.stemWord(word) if is_unicode(word) else "" for word in words]

    def _without_endings(self, word: str) -> str:
        for ending in self._endings:
            word = ending.sub("", word)
        return word

    def _thread_stemmer(self) -> WordStemmer:
        try:
            stemmer: WordStemmer = self._local.stemmer
        except AttributeError:
            stemmer = self._local.stemmer = new_stemmer(self._algorithm)
        return stemmer


def _changed(words: list[str], change: Callable[[str], str] | None, of_lines: bool) -> list[str]:
    """Return what becomes of words: all at once, in half the time, if each line is a word."""
    if change is None:
        return words
    if of_lines:
        changed = change("\n".join(words)).split("\n")
        if len(changed) == len(words):  # none of them has a line feed
            return changed
    return [*map(change, words)]


def check_algorithm(name: object) -> str:
    """Return the name of a stemmer: a Snowball algorithm that is installed, or one of our own."""
    if isinstance(name, str) and not is_snowball(name):
        return name
    try:
        return check_choice("stemmer", name, installed_stemmers())
    except ValueError as error:
        raise ValueError(
            f"{error}; the installed {library_name()} is {snowball_version()}: "
            "a newer one may have it, and stemmer=None does without"
        ) from None


def installed_stemmers() -> list[str]:
    """Return the names of all stemmers; those of an older PyStemmer are fewer."""
    installed = [*algorithms(), *_ENDINGS]
    return [*installed, *(name for name, own in ON_OTHERS.items() if own.algorithm in installed)]


def is_snowball(name: str) -> bool:
    """Whether a stemmer needs Snowball."""
    return algorithm_of(name) not in _ENDINGS


def algorithm_of(name: str) -> str:
    """Return the algorithm of Snowball, or the light stemmer, that a stemmer is or calls."""
    own = ON_OTHERS.get(name)
    return name if own is None else own.algorithm

"""Texts to words, and words to tokens: what comes before stop words and stemming."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from bm25rag.analysis import scripts
from bm25rag.analysis.accents import fold_accents, fold_each
from bm25rag.analysis.languages import Language
from bm25rag.analysis.settings import FoldRules, NormalForm, runs_of
from bm25rag.analysis.tokens import (
    asked_parts,
    identifier_parts,
    is_number,
    other_tokens,
    split_word,
)
from bm25rag.analysis.unspaced_runs import (
    FIRST_LETTER,
    BigramRules,
    cut_letters,
    find_words_and_bigrams,
    second_of_bigram,
    split_bigram,
    weigh,
    weigh_each,
)
from bm25rag.common.lazy import lazy_property
from bm25rag.kernels.backend import current
from bm25rag.kernels.boundary import AS_WRITTEN, CLUSTERS, PAIRS, POSSESSIVES, SINGLES
from bm25rag.kernels.scanner_interface import PECULIAR_TEXT

if TYPE_CHECKING:
    from bm25rag.analysis.fold_table import FoldTable
    from bm25rag.analysis.links import Joined
    from bm25rag.analysis.text_scanner import TextScanner
    from bm25rag.kernels.scanner_interface import Scanned, Scanner, Texts

# Characters of ASCII from which on the scanner finds words, whose loading takes 3 ms, once.
_MANY = 1 << 14


class WordSplitter:
    """Finds the words of texts, and splits them into tokens.

    The arguments are those of ``Analyzer``, with ``form`` for its ``normalize``.
    """

    # Of how many characters a word is at least; 0 if only ``re`` can find words.
    least: int

    def __init__(
        self,
        profile: Language | None,
        token_pattern: str,
        form: NormalForm | None,
        bigrams: BigramRules,
        *,
        lowercase: bool,
        identifiers: bool,
        fold_accents: bool,
        ngrams: int | None = None,
    ) -> None:
        self._auto = token_pattern == "auto"
        self._find_in_ascii: Callable[[str], list[str]]
        self._find_in_unicode: Callable[[str], list[str]]
        if self._auto:
            self._find_in_ascii = scripts.find_ascii_words
            self._find_in_unicode = scripts.find_words
        else:
            find = partial(_find, re.compile(token_pattern))
            self._find_in_ascii = self._find_in_unicode = find
        self._form = form
        self._turkish = profile is not None and profile.name == "turkish"
        self._bigrams = bigrams
        # What is only grammar in questions is cut out before they are cut into pairs.
        self.cut_question: Callable[[str], str] | None = None
        language = None if profile is None or form is None else profile.name
        cuts = self._auto and bigrams.cjk and ngrams is None
        if cuts and language in ("chinese", "japanese", "korean"):
            from bm25rag.analysis.question_grammar import without_grammar  # others need none

            self.cut_question = partial(without_grammar, language)
        self.lowercase = lowercase
        self._identifiers = identifiers
        self._only_lowers_ascii = lowercase and not identifiers and not self._turkish
        self._folds_accents = fold_accents
        self._ngrams = ngrams
        # Letters of ASCII that folding turns into others. None for NFKC, which makes letters and
        # digits of ASCII from others than wide ones and capitals.
        self.lost: str | None = "I" * self._turkish if form in (None, "NFC") else None
        # Whether even words of ASCII letters and digits may have several tokens.
        self.splits_all: bool = identifiers or ngrams is not None
        # Whether "e-mail" is also "email"; see ``links``.
        self.joins_words: bool = self._auto and not self.splits_all
        self._kept_letters = (profile.kept_letters if profile is not None else None) or ""
        self._apostrophe = "ends" if profile is None else profile.apostrophe
        self._texts: TextScanner | None = None
        self._word, self.least = (r"\w", 1) if self._auto else runs_of(token_pattern) or ("", 0)
        if bigrams.southeast_asian and not self._auto:
            self.least = 0  # the scanner takes marks for parts of words

    @property
    def fold_rules(self) -> FoldRules:
        """How the scanner folds texts, and what words are to it."""
        lowercase = self.lowercase and not self._identifiers
        return FoldRules(
            lowercase=lowercase,
            turkish=lowercase and self._turkish,
            normalize=self._form,
            cjk=self._bigrams.cjk,
            singles=self._bigrams.singles,
            southeast_asian=self._bigrams.southeast_asian,
            auto=self._auto,
            word=self._word,
        )

    @property
    def keeps_words(self) -> bool:
        """Whether every word is a token as it is."""
        _, clusters, singles = self._bigrams
        splits = self._auto or self._ngrams
        return not (splits or self._folds_accents or clusters or singles)

    @property
    def drops_possessives(self) -> bool:
        """Whether an "s" that ends a word after an apostrophe is dropped."""
        return self._auto and self._apostrophe != "joins"

    @property
    def usual_runs(self) -> int:
        """What of runs without spaces and of other words is of questions: see ``WordRules``."""
        cjk, clusters, singles = self._bigrams
        # Folding brings marks into the order of NFC.
        clusters &= self._form in ("NFC", "NFKC") or not self._folds_accents
        runs = cjk * PAIRS | (cjk and singles) * SINGLES | clusters * CLUSTERS
        return runs | self.joins_words * AS_WRITTEN | self.drops_possessives * POSSESSIVES

    @property
    def fold_letters(self) -> Callable[[str], str]:
        """Returns the token of a word that is all letters and in no run without spaces."""
        return partial(fold_accents, kept=self._kept_letters) if self._folds_accents else str

    def fold(self, text: str) -> str:
        """Return a text normalised and lower-cased, as ``find_words`` looks for words in it.

        If identifiers are indexed by their parts, capitals stay until words are split.
        """
        if self._only_lowers_ascii and text.isascii():  # as it would be there
            return text.lower()
        return self._normalize(text, self.lowercase and not self._identifiers)

    def with_links(self, text: str) -> str:
        """Return a text with hyphens, full stops and ampersands of ASCII, if words are joined."""
        if self._auto:
            links = scripts.LINKS if self._bigrams.cjk else scripts.LINKS[:2]
            for other, link in links:
                text = text.replace(other, link)
        return text

    def _normalize(self, text: str, lowercase: bool) -> str:
        if text.isascii():
            return scripts.lower(text, self._turkish) if lowercase else text
        if self._auto:
            text = scripts.drop_ignored(text)
        if self._bigrams.cjk:
            text = scripts.fold_widths(text)
        if lowercase:
            text = scripts.lower(text, self._turkish)
        # After lower-casing, because the lower case of a normal form need not be in that form.
        text = self._to_form(text, lowercase)
        if not self._auto:
            return text
        return scripts.HYPHENS.sub("-", scripts.APOSTROPHES.sub("'", text))

    def _to_form(self, text: str, lowercase: bool) -> str:
        if self._form is None or (self._form == "NFC" and unicodedata.is_normalized("NFC", text)):
            return text
        text = unicodedata.normalize(self._form, text)
        if lowercase and self._form[2] == "K":  # it turns some symbols into capitals
            text = scripts.lower(text, self._turkish)
            text = unicodedata.normalize(self._form, text)
        return text

    def find_asked(self, text: str) -> list[str]:
        """Return the words of a question, those beside runs as often as they count."""
        words = self.find_words(text, question=True)
        return words if self._ngrams is not None else weigh(words, self._bigrams)

    def find_words(self, text: str, question: bool = False) -> list[str]:
        """Return the words of a text."""
        if self.least and (self._turkish or not text.isascii()):
            words = self._scan(text, question)
            if words is not None:
                return words
        text = self.fold(text)
        if text.isascii():
            return self._find_in_ascii(text)
        if self._bigrams.cjk or self._bigrams.southeast_asian:
            return find_words_and_bigrams(text, self._find_in_unicode, self._bigrams, question)
        return self._find_in_unicode(text)

    def joined_words(self, text: str) -> list[str]:
        """Return what is also one word in a text, as "e-mail" is."""
        if not self.joins_words or (self.lost is not None and scripts.LINK.search(text) is None):
            return []
        return [joined.word for joined in self.find_joined(self.fold(text))]

    def find_joined(self, folded: str) -> Iterator[Joined]:
        """Yield what is also one word in a folded text, with where it is."""
        from bm25rag.analysis.links import joined_words  # few questions need it

        return joined_words(folded, self._bigrams)

    def find_numbered(self, folded: str, stopwords: frozenset[str]) -> Iterator[Joined]:
        """Yield the same for what is one word in questions alone, as "type 2" is."""
        from bm25rag.analysis.links import numbered_words

        return numbered_words(folded, stopwords)

    def find_otherwise(self, text: str, stopwords: frozenset[str]) -> list[str]:
        """Return what is also one word in a question, as "e-mail" and "type 2" are."""
        numbered = self.find_numbered(self.fold(text), stopwords)
        return self.joined_words(text) + [joined.word for joined in numbered]

    def _scan(self, text: str, question: bool) -> list[str] | None:
        """Return the words of a text, ``None`` where no compiled scanner finds them."""
        table, folded, backend = self._fold_table, False, current()
        answer = backend.find_words(table.arrays, text, self.least, question)
        while isinstance(answer, int):
            if answer == PECULIAR_TEXT:
                text, folded = self.fold(text), True
            else:
                table.add_pages([answer])
            answer = backend.find_words(table.arrays, text, self.least, question, folded)
        return answer

    def scan_questions(self, texts: Sequence[str]) -> tuple[Texts, Scanned] | None:
        """Find the words of questions as ``find_asked`` does; return the texts in UTF-8, too.

        It returns ``None`` where no compiled scanner finds them, or it is not worth loading.
        """
        if not self.least or len(texts) < 2:
            return None
        if all(map(str.isascii, texts)) and sum(map(len, texts)) < _MANY:
            return None
        scanner = current().scanner
        if scanner is None:
            return None
        if self._texts is None:
            self._texts = self.new_text_scanner(scanner)
        utf8, scanned = self._texts.scan(texts, question=True)
        return utf8, scanned if self._ngrams is not None else weigh_each(scanned, self._bigrams)

    def new_text_scanner(self, scanner: Scanner, joins: bool = False) -> TextScanner:
        """Return what runs the compiled scanner by these rules, and finds joined words if told."""
        from bm25rag.analysis.text_scanner import TextScanner  # most questions need none

        return TextScanner(scanner, self, joins)

    @lazy_property
    def _fold_table(self) -> FoldTable:
        from bm25rag.analysis.fold_table import fold_table  # questions in ASCII need none

        return fold_table(self.fold_rules)

    def split_words(
        self, words: list[str], question: bool = False, odd: Sequence[int] | None = None
    ) -> tuple[list[str], dict[int, int]]:
        """Return the tokens of words, before stop words and stemming.

        With them comes the number of tokens of each word that has none or several, by its index.
        """
        if self._identifiers:
            odd = range(len(words))
        elif odd is None and question and self.joins_words:  # which also ask for parts
            odd = [n for n, word in enumerate(words) if not (word.isascii() and _is_one(word))]
        elif odd is None:  # the others are tokens already
            odd = [n for n, word in enumerate(words) if not (word.isascii() and word.isalnum())]
        tokens, counts, plain = list[str](), dict[int, int](), not self._identifiers
        for index in odd:
            word = words[index]
            if plain and word < FIRST_LETTER:
                if word.isalpha():  # most of them
                    tokens.append(word)
                    continue
                if "0" <= word < ":" and self._auto and is_number(word):
                    tokens.append(word.replace(",", ""))
                    continue
            split = self._split_word(word, question)
            tokens += split
            if len(split) != 1:
                counts[index] = len(split)
        if self._folds_accents:
            tokens = fold_each(tokens, self._kept_letters)
        tokens = _with_tokens(words, odd, tokens, counts)
        return (tokens, counts) if self._ngrams is None else _cut(tokens, counts, self._ngrams)

    def _split_word(self, word: str, question: bool) -> list[str]:
        """Return the tokens of a word, whose accents are not folded yet."""
        tokens = split_bigram(word, self._bigrams, question) if word >= FIRST_LETTER else None
        if tokens is None:
            tokens = split_word(word, self._apostrophe) if self._auto else [word]
            if self.joins_words:
                if "." in word or "_" in word or "'" in word[1:2]:
                    tokens += other_tokens(word, tokens)
                if question:
                    tokens += [part for token in tokens for part in asked_parts(token)]
        if self._identifiers:
            tokens = [one for token in tokens for one in (token, *identifier_parts(token))]
            return [self._normalize(token, self.lowercase) for token in tokens]
        return tokens

    def overlaps(self, words: Iterable[str]) -> dict[str, int]:
        """Return, for the bigrams among words, how far behind each the next word begins."""
        late = {word for word in words if word >= FIRST_LETTER}
        return {word: second for word in late if (second := second_of_bigram(word, self._bigrams))}

    def kept_letters_of_runs(self, words: Iterable[str]) -> set[str]:
        """Return letters with which parts of runs begin, and their tokens and stems, too."""
        changes = self.splits_all or self._folds_accents
        return set() if changes else cut_letters(words, self._bigrams)

    def stopword_token(self, word: str) -> str:
        """Return the token that a stop word drops; a stop word of several tokens drops none."""
        word = str(self._normalize(word, self.lowercase))
        tokens = split_word(word, self._apostrophe) if self._auto else [word]
        token = tokens[0] if len(tokens) == 1 else word
        return fold_accents(token, self._kept_letters) if self._folds_accents else token


def _is_one(word: str) -> bool:
    return word.isalpha() or word.isdecimal()


def _cut(tokens: list[str], counts: dict[int, int], size: int) -> tuple[list[str], dict[int, int]]:
    """Return overlapping runs of characters in place of tokens, and how many each word has.

    A token has a space at either end: with it, nDCG@10 gains .1 to .9 more on seven collections.
    """
    runs, sizes, each = list[str](), dict[int, int](), iter(tokens)
    words = len(tokens) - sum(counts.values()) + len(counts)
    for index in range(words):
        before = len(runs)
        for token in islice(each, counts.get(index, 1)):
            own = f" {token} "
            runs += [own[at : at + size] for at in range(max(len(own) - size, 0) + 1)]
        if len(runs) - before != 1:
            sizes[index] = len(runs) - before
    return runs, sizes


def _with_tokens(
    words: list[str], odd: Sequence[int], tokens: list[str], counts: dict[int, int]
) -> list[str]:
    """Replace the odd words by their tokens; ``counts`` says how many a word has, if not one."""
    if len(odd) == len(words):
        return tokens
    all_tokens = words.copy()
    if not counts:
        for index, token in zip(odd, tokens, strict=True):
            all_tokens[index] = token
        return all_tokens
    all_tokens, word, start = [], 0, 0
    for index in odd:
        end = start + counts.get(index, 1)
        all_tokens += words[word:index]
        all_tokens += tokens[start:end]
        word, start = index + 1, end
    return all_tokens + words[word:]


def _find(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return the words that a pattern finds in a text; what is empty is none."""
    return [*filter(None, pattern.findall(text))]

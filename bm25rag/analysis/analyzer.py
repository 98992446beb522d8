"""The ``Analyzer``, which documents and questions share: text to words, to tokens, to terms.

A text is normalised and lower-cased and cut into words, which are split into tokens. Tokens lose
the accents that their language does without; stop words are dropped, and the rest is stemmed.
Runs of Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are cut into overlapping pairs of
characters. ``docs/languages.md`` says what is done in which language.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, TypeVar

from bm25rag.analysis.languages import CODE, LANGUAGES, Language, find_language, load_stopwords
from bm25rag.analysis.settings import (
    MOST_FURTHER,
    OPTIONAL,
    PAPER,
    SETTINGS,
    Tokenizer,
    check_form,
    check_ngrams,
    check_pattern,
    check_settings,
    check_switch,
    check_tokenizer,
    check_tokens,
    further_settings,
    is_auto,
    is_unset,
    tokenizer_name,
)
from bm25rag.analysis.splitter import WordSplitter
from bm25rag.analysis.stemming import Stemmer, check_algorithm
from bm25rag.analysis.unspaced_runs import FIRST_LETTER, BigramRules
from bm25rag.common.checks import LARGEST_WEIGHT, check_flag, check_real, check_sequence
from bm25rag.common.gil import in_blocks
from bm25rag.common.lazy import lazy_property
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import LONGEST_WORD, KnownWords, Otherwise, WordRules
from bm25rag.kernels.term_lists import TermLists, WordTerms

if TYPE_CHECKING:
    from bm25rag.kernels.scanner_interface import Scanned, Texts

T = TypeVar("T")

# Words of queries whose terms are remembered, in some 12 MB. Four thousand passages have 33,000:
# with room for 10,000 their analysis took a half longer.
_MOST_WORDS = 1 << 16
# How many of them come from documents, at most; in 4 MiB.
_MOST_LEARNT = 1 << 14
# One word in so many is worth being looked for by its place.
_SOME = 4


class Analyzer:
    r"""Turns texts into terms; saved with the index, and used for documents and questions alike.

    Methods raise ``TypeError`` for a text that is no string, and for what a tokenizer returns that
    is no list of strings.

    Parameters
    ----------
    language
        A name or ISO code (``"english"``, ``"de"``), which decides what ``"auto"`` means
        below; ``None`` for no stop words, no stemmer and no folding of accents; ``"code"`` for
        source code: the same, with ``identifiers``.
    token_pattern
        ``"auto"``: words as people write them. Words of one character stay, and so do
        "C++", "C#", "3.5" and "U.S."; contractions leave no stray letters; combining marks
        are part of words. Otherwise a regular expression for ``re.findall``, such as
        ``PAPER`` (``(?u)\b\w\w+\b``); what is empty is no word. With one, ``query_stopwords``,
        ``fold_accents``, ``cjk_characters`` and ``southeast_asian`` are off unless you set them.
        ``re`` has no time limit: beware of patterns that backtrack without end, also in
        indexes that you did not make.
    normalize
        A Unicode normal form (``"NFC"``, ``"NFD"``, ``"NFKC"``, ``"NFKD"``) or ``None``.
    lowercase
        Whether to lower-case; Turkish by its own rules.
    stopwords
        ``"auto"`` for the language's list, the name of a list (``"english_long"``),
        words of your own, or ``None``.
    query_stopwords
        Words that are removed from questions only, and only if other words remain; given like
        ``stopwords``. ``"auto"`` is ``"english_long"`` for English with its own stop words,
        and ``None`` otherwise.
    stemmer
        ``"auto"`` for the language's, the name of a Snowball algorithm, a light one, such as
        ``"arabic_light"``, or ``None``.
    fold_accents
        Whether to remove accents before stemming, except from letters that are letters of their
        own in the language (``å`` in Swedish). ``"auto"``: where measurements or custom say so.
        Stemmers such as ``"swedish_unaccented"`` remove the others, too.
    cjk
        ``"auto"`` or ``True``: fold widths and cut Chinese, Japanese and Korean runs
        into overlapping bigrams. ``False``: leave them to ``token_pattern``.
    cjk_characters
        Whether characters of Han and Hangul are terms beside the bigrams, so that a question
        of one character has matches; in longer questions, Han only. ``"auto"``: as ``cjk``.
    southeast_asian
        Whether to cut runs of Thai, Lao, Khmer and Burmese into overlapping pairs of clusters
        (letters with their marks); in documents, clusters are terms, too. ``"auto"``: as ``cjk``.
    identifiers
        Whether to index the parts of "camelCase", "snake_case", "sha256" and "3.11.4" beside the
        whole; only with ``token_pattern="auto"``. ``"auto"``: for ``"code"``.
    ngrams
        Of how many characters, 2 to 10, the overlapping runs are into which words are cut, with a
        space at either end: of 4, "cats" becomes " cat", "cats" and "ats ". There are then neither
        stop words nor a stemmer, so none may be given. ``None``: words are whole.
    tokenizer
        A callable from text to a list or tuple of terms, which replaces all of the above.
    also
        Further analyses of the same texts, each with the weight of its score, 0 to 1e30, such as
        ``[(Analyzer(None, ngrams=4), 0.1)]``. The score of a document is its score by this
        analysis plus each weight times that by a further one, whose terms, document frequencies
        and lengths are its own. What an ``Analyzer`` returns itself is of this analysis alone.
        There are at most 7 of them, and one ``tokenizer`` in all. See ``docs/languages.md``.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a language, list, stemmer or normal form is unknown, the pattern does not
        compile or has more than one group, ``identifiers`` comes with a pattern,
        ``ngrams`` with stop words or a stemmer, or ``tokenizer`` with other arguments; if
        ``also`` holds too many analyses, one that has some itself, or a wrong weight.

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
        identifiers: bool | str = "auto",
        ngrams: int | None = None,
        tokenizer: Tokenizer | None = None,
        also: Iterable[tuple[Analyzer, float]] = (),
    ) -> None:
        if tokenizer is not None:
            words = (stopwords, query_stopwords, stemmer, fold_accents)
            runs = (cjk, cjk_characters, southeast_asian, identifiers, ngrams)
            check_tokenizer(
                tokenizer, (language, token_pattern, normalize, lowercase, *words, *runs)
            )
            language = normalize = stopwords = query_stopwords = stemmer = None
            lowercase = cjk = False
        self.ngrams: int | None = None if ngrams is None else check_ngrams(ngrams)
        if self.ngrams is not None:
            if not all(is_unset(one) for one in (stopwords, query_stopwords, stemmer)):
                raise ValueError("ngrams cut words as they are: give no stop words and no stemmer")
            stopwords = query_stopwords = stemmer = None
        self.tokenizer = tokenizer
        profile = None if language is None else find_language(language)
        self.language: str | None = None if profile is None else profile.name
        self.token_pattern: str = check_pattern(token_pattern)
        auto = self.token_pattern == "auto" and tokenizer is None
        self.normalize = None if normalize is None else check_form(normalize)
        self.lowercase: bool = check_flag("lowercase", lowercase)
        is_code = auto and profile is CODE and self.ngrams is None
        self.identifiers: bool = check_switch("identifiers", identifiers, is_code)
        if self.identifiers and not auto:
            raise ValueError("identifiers=True needs token_pattern='auto', which finds them")
        folds = auto and profile is not None and profile.kept_letters is not None
        self.fold_accents: bool = check_switch("fold_accents", fold_accents, folds)
        self.cjk: bool = check_switch("cjk", cjk, True)
        bigrams = auto and self.cjk
        self.cjk_characters: bool = check_switch("cjk_characters", cjk_characters, bigrams)
        self.southeast_asian: bool = check_switch("southeast_asian", southeast_asian, bigrams)
        if is_auto(stemmer):
            stemmer = None if profile is None else profile.stemmer
        self.stemmer: str | None = None if stemmer is None else check_algorithm(stemmer)
        if is_auto(query_stopwords):
            usual = profile if auto and is_auto(stopwords) else None
            query_stopwords = None if usual is None else usual.query_stopwords
        if is_auto(stopwords):
            stopwords = None if profile is None else profile.stopwords
        self.also: tuple[tuple[Analyzer, float], ...] = self._check_also(also)
        self._prepare(profile)
        self.stopwords: frozenset[str] = self._stopword_tokens("stopwords", stopwords)
        self.query_stopwords: frozenset[str] = self._stopword_tokens(
            "query_stopwords", query_stopwords
        )

    def _prepare(self, profile: Language | None) -> None:
        """Derive from the settings what is not saved."""
        self._auto = self.tokenizer is None and self.token_pattern == "auto"
        # What a tokenizer returns are tokens: nothing of it is split as words of "auto" are.
        pattern = self.token_pattern if self.tokenizer is None else PAPER
        singles = self.cjk and self.cjk_characters
        self.splitter: WordSplitter = WordSplitter(
            profile,
            pattern,
            self.normalize,
            BigramRules(self.cjk, self.southeast_asian, singles),
            lowercase=self.lowercase,
            identifiers=self.identifiers,
            fold_accents=self.fold_accents,
            ngrams=self.ngrams,
        )
        self._stemmer = None if self.stemmer is None else Stemmer(self.stemmer)
        self._document_terms = _WordTerms(self, question=False)
        self._question_terms = _WordTerms(self, question=True)
        self._wanted_terms = _WordTerms(self, question=True, wanted=True)
        self._whole_words = _WordTerms(self, question=False, whole=True)
        self._all_terms = _WordTerms(self, question=False, keeps_all=True)
        # Those that no search uses now; see ``word_scanner``.
        self.word_scanners: list[Any] = []
        # What ``written`` remembers: of each word its tokens, each with its term behind it.
        self.known_tokens: dict[str, tuple[str, ...]] = {}

    def _check_also(
        self, given: Iterable[tuple[Analyzer, float]]
    ) -> tuple[tuple[Analyzer, float], ...]:
        checked = []
        for place, pair in enumerate(check_sequence("also", given, "pairs (Analyzer, weight)")):
            name = f"also[{place}]"
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"{name} must be a pair (Analyzer, weight), got {pair!r:.100}")
            analyzer, weight = pair
            if not isinstance(analyzer, Analyzer):
                raise TypeError(f"{name}[0] must be an Analyzer, got {analyzer!r:.100}")
            if analyzer.also:
                raise ValueError(f"{name}[0] has further analyses itself: list them in one also")
            checked.append((analyzer, check_real(f"{name}[1]", weight, 0.0, LARGEST_WEIGHT)))
        if len(checked) > MOST_FURTHER:
            raise ValueError(f"also must hold at most {MOST_FURTHER} analyses, got {len(checked)}")
        if sum(one.tokenizer is not None for one in (self, *(own for own, _ in checked))) > 1:
            raise ValueError(
                "also must leave one analysis with a tokenizer: an index is opened with one"
            )
        return tuple(checked)

    def weighing(self, weights: Iterable[float]) -> Analyzer:
        """Return an analyzer that differs in the weights of the further analyses.

        Parameters
        ----------
        weights
            One for each, as for ``also``.

        Raises
        ------
        TypeError, ValueError
            As the constructor, or if there are more or fewer weights than further analyses.
        """
        given = list(check_sequence("also", weights, "weights"))
        if len(given) != len(self.also):
            raise ValueError(
                f"also must have a weight for each of {len(self.also)} further analyses, "
                f"got {len(given)}"
            )
        other = copy.copy(self)
        pairs = zip(self.also, given, strict=True)
        other.also = other._check_also([(own, weight) for (own, _), weight in pairs])
        return other

    @property
    def analyses(self) -> tuple[Analyzer, ...]:
        """The analyzer itself, and those of further analyses."""
        return (self, *(own for own, _ in self.also))

    @property
    def any_tokenizer(self) -> Tokenizer | None:
        """The callable of the analysis that has one: of this or of a further one."""
        return next((one.tokenizer for one in self.analyses if one.tokenizer is not None), None)

    def terms(self, text: str) -> list[str]:
        """Return the terms of a document, in order, repeats included.

        Behind those of its words come those of what is also one word, as "e-mail" is. A text of
        nothing but stop words keeps them.

        Parameters
        ----------
        text
            Any string.
        """
        words = self._find_words(text)
        if self.tokenizer is not None:
            return words
        words += self.splitter.joined_words(text)
        return self._document_terms.of(words) or (self._all_terms.of(words) if words else words)

    def query_terms(self, text: str) -> list[str]:
        """Return the terms of a question, in order, repeats included.

        They are the terms of a document without ``query_stopwords``, unless no other term is
        left, and without characters and clusters that their bigrams make unnecessary; with those
        of what may be written in one word ("type 2") or in two ("covid19"). Beside runs without
        spaces, which have many terms, each other word is there three times. Questions in Chinese,
        Japanese and Korean are without question words, their endings, and, in Korean, particles
        of long words, too.

        Parameters
        ----------
        text
            Any string.
        """
        if type(text) is str and not text.isascii():
            text = self.splitter.with_links(text)  # to fold one in Python takes long
            if self.splitter.cut_question is not None:
                text = self.splitter.cut_question(text)
        if self._auto and type(text) is str and text.isascii():
            folded = self.splitter.fold(text)
            if folded.isascii():  # a Turkish one need not be
                terms = self._wanted_terms.of_text(folded)
                if terms is not None:
                    terms = terms or self._question_terms.of_text(folded)
                    return terms or self._all_terms.of_text(folded) or []
        if self.tokenizer is not None or not isinstance(text, str):
            return self._find_words(text)
        words = self.splitter.find_asked(text)
        terms = self._wanted_terms.of(words, text) or self._question_terms.of(words, text)
        return terms or self._all_terms.of(words, text)

    @lazy_property
    def unwanted(self) -> frozenset[str]:
        """All stop words: those of documents, and those of questions alone."""
        return self.stopwords | self.query_stopwords

    def query_terms_of_each(self, texts: Sequence[str]) -> Sequence[list[str]]:
        """Return what ``query_terms`` returns for each of some questions, in less time.

        If there are many, their lists are made when they are asked for.

        Parameters
        ----------
        texts
            Any strings.
        """
        parts: list[Sequence[list[str]]] = []
        cut = self.splitter.cut_question
        for given in in_blocks(texts):
            some = given if cut is None else [*map(cut, given)]
            scanned = None if self.tokenizer is not None else self.splitter.scan_questions(some)
            if scanned is None:
                parts.append([self.query_terms(text) for text in given])
            else:
                lists, bare = self._wanted_terms.of_each(some, *scanned)
                for number in bare:
                    lists.more[number] = self.query_terms(given[number])
                parts.append(lists)
        return parts[0] if len(parts) == 1 else TermLists.joined(parts)

    def whole_words(self, text: str) -> list[str]:
        """Return the words of a document, in order, stop words too, as phrases compare them.

        Of each it is the stems of its tokens; several are joined by NUL.

        Parameters
        ----------
        text
            Any string.
        """
        if self._auto and type(text) is str and text.isascii():
            folded = self.splitter.fold(text)
            if folded.isascii():  # as in ``query_terms``
                whole = self._whole_words.of_text(folded)
                if whole is not None:
                    return whole
        words = self._find_words(text)
        return words if self.tokenizer is not None else self._whole_words.of(words)

    def words(self, text: str) -> list[str]:
        """Return the tokens of a text before stop words and stemming.

        Parameters
        ----------
        text
            Any string.
        """
        return self.splitter.split_words(self._find_words(text))[0]

    @property
    def keeps_words(self) -> bool:
        """Whether every word that ``_find_words`` returns is a term as it is."""
        return self.splitter.keeps_words and self.stemmer is None and not self.stopwords

    def _find_words(self, text: str, question: bool = False) -> list[str]:
        """Return the words of a text, or of a question, which ``splitter`` splits into tokens."""
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        if self.tokenizer is not None:
            return check_tokens(self.tokenizer(text))
        return self.splitter.find_words(text, question)

    def _analyze_words(
        self, words: list[str], odd: Sequence[int] | None = None
    ) -> tuple[list[str], dict[int, int], list[int]]:
        """Return the terms of words of documents, those of stop words, too.

        With them come the number of terms of each word that has none or several, by its index, and
        the indexes of the terms that are of stop words. ``odd`` are the indexes of words that are
        not only ASCII letters and digits, if known; the others are no stop words, then.
        """
        tokens, counts = self.splitter.split_words(words, odd=odd)
        stems, stopwords = self.stems(tokens), self.stopwords
        if odd is not None and _SOME * len(odd) < len(words):  # most words need not be looked up
            stopped = [n for n in _places(odd, counts) if tokens[n] in stopwords]
        else:
            present = stopwords.intersection(tokens)
            stopped = [n for n, token in enumerate(tokens) if token in present] if present else []
        self._wanted_terms.learn(words, tokens, stems, counts)
        return stems, counts, stopped

    def stems(self, words: list[str]) -> list[str]:
        """Return the stems of words; the words themselves if there is no stemmer.

        Parameters
        ----------
        words
            Tokens, as ``words()`` returns them.
        """
        return words if self._stemmer is None else self._stemmer.stems(words)

    @lazy_property
    def stopped_stems(self) -> frozenset[str]:
        """The stems of stop words: a word with one of them may be in no postings."""
        return frozenset(self.stems(sorted(self.stopwords)))

    def word_stemmer(self) -> Callable[[str], str]:
        """Return what this thread may stem words of ASCII with, as ``stems`` does.

        A word for which it returns nothing is its own stem.
        """
        return str if self._stemmer is None else self._stemmer.of_words()

    def _stopword_tokens(self, name: str, given: str | Iterable[str] | None) -> frozenset[str]:
        """Return stop words in the form that tokens have."""
        if given is None:
            return frozenset()
        if isinstance(given, str):
            given = load_stopwords(given)
        listed = list(check_sequence(name, given, "words"))
        if not all(isinstance(word, str) for word in listed):
            raise TypeError(f"{name} must be words, got {listed!r:.100}")
        return frozenset(self.splitter.stopword_token(word) for word in listed)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values: stop words by value, a tokenizer by name."""
        settings: dict[str, Any] = {name: getattr(self, name) for name in SETTINGS}
        settings["stopwords"] = sorted(self.stopwords)
        settings["query_stopwords"] = sorted(self.query_stopwords)
        settings["tokenizer"] = None if self.tokenizer is None else tokenizer_name(self.tokenizer)
        if self.ngrams is not None:
            settings["ngrams"] = self.ngrams
        if self.also:
            settings["also"] = [[own.to_dict(), weight] for own, weight in self.also]
        return settings

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], tokenizer: Tokenizer | None = None) -> Analyzer:
        """Make the analyzer that ``to_dict`` described.

        Nothing that the settings name is imported: a callable must be given again.

        Parameters
        ----------
        settings
            What ``to_dict`` returned.
        tokenizer
            The callable, if the analyzer was made with one.

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
        further = further_settings(settings)
        plugged = [own.get("tokenizer") is not None for own, _ in further]
        first = None if any(plugged) and settings.get("tokenizer") is None else tokenizer
        check_settings(settings, first)
        also = [
            (cls.from_dict(own, tokenizer if is_plugged else None), weight)
            for (own, weight), is_plugged in zip(further, plugged, strict=True)
        ]
        if first is not None:
            return cls(tokenizer=first, also=also)
        return cls(**{**settings, "also": also})

    def probe(self) -> dict[str, str]:
        """Return common words of the stemmer's language and their stems.

        Saved with an index, they show on opening whether the stemmer has changed. Words of further
        analyses are as terms of these are in the index.
        """
        stems = self._probe()
        for number, (own, _) in enumerate(self.also, 1):
            from bm25rag.analysis.spaces import spaced  # it imports what questions do without

            stems |= {spaced(number, word): stem for word, stem in own._probe().items()}
        return stems

    def _probe(self) -> dict[str, str]:
        if self.stemmer is None:
            return {}
        lists = {profile.stemmer: profile.stopwords for profile in LANGUAGES if profile.stopwords}
        name = lists.get(self.stemmer, "english")
        words = sorted(load_stopwords("english_long" if name == "english" else name))
        return dict(zip(words, self.stems(words), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Analyzer):
            return NotImplemented
        same = self.tokenizer == other.tokenizer and self.also == other.also
        return same and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.language, self.token_pattern, self.stemmer, self.stopwords))

    def __repr__(self) -> str:
        also = f", also={[*self.also]!r}" if self.also else ""
        if self.tokenizer is not None:
            return f"Analyzer(tokenizer={tokenizer_name(self.tokenizer)}{also})"
        parts = [f"language={self.language!r}", f"stemmer={self.stemmer!r}"]
        parts.append(
            f"stopwords=<{len(self.stopwords)} words>" if self.stopwords else "stopwords=None"
        )
        usual = Analyzer(self.language)
        parts += [
            f"{name}={getattr(self, name)!r}"
            for name in SETTINGS
            if name not in ("language", "stemmer", "stopwords", "query_stopwords", "tokenizer")
            and getattr(self, name) != getattr(usual, name)
        ]
        if self.ngrams is not None:
            parts.append(f"ngrams={self.ngrams}")
        return f"Analyzer({', '.join(parts)}{also})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*SETTINGS, *OPTIONAL)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.query_stopwords = frozenset(self.query_stopwords)
        self._prepare(None if self.language is None else find_language(self.language))


class _WordTerms:
    """Remembers the terms of words; threads may share it.

    Words of queries come again; a build analyses each distinct word once without this. Terms are
    ``wanted`` if those of ``query_stopwords`` are left out; with ``whole``, which also keeps stop
    words, NUL joins those of a word.
    """

    def __init__(
        self,
        analyzer: Analyzer,
        question: bool,
        wanted: bool = False,
        whole: bool = False,
        keeps_all: bool = False,
    ) -> None:
        self._analyzer = analyzer
        self._question = question
        self._wanted = wanted
        self._whole = whole
        self._keeps_all = keeps_all or whole
        self._asks = question or keeps_all
        self._known: KnownWords = backend.current().known_words()

    @lazy_property
    def _unwanted(self) -> frozenset[str]:
        """The tokens that have no term."""
        if self._keeps_all:
            return frozenset()
        return self._analyzer.unwanted if self._wanted else self._analyzer.stopwords

    def of(self, words: list[str], text: str = "") -> list[str]:
        """Return the terms of words, one after another, and of what else is one in their text."""
        given = words, self._rules, self.otherwise, text
        return self._bounded(backend.current().analyze_words(*given))

    def of_each(
        self,
        texts: Sequence[str],
        utf8: Texts,
        scanned: Scanned,
    ) -> tuple[TermLists, list[int]]:
        """Return the terms of texts, and those without; see ``Backend.analyze_texts``."""
        given = texts, utf8, scanned, self._rules, self.otherwise
        return self._bounded(backend.current().analyze_texts(*given))

    def of_text(self, text: str) -> list[str] | None:
        """Return the terms of an ASCII text, folded; ``None`` if the backend finds no words."""
        return self._bounded(backend.current().analyze_text(text, self._rules, self.otherwise))

    def _bounded(self, result: T) -> T:
        """Return a result of the backend; forget all words if too many are remembered."""
        if len(self._known) > _MOST_WORDS:
            self._known.clear()
        return result

    def learn(
        self, words: list[str], tokens: list[str], stems: list[str], counts: dict[int, int]
    ) -> None:
        """Remember words of documents that have one token each: questions mostly ask for such.

        Words with digits are left out if questions also have their parts, and so more terms.
        """
        room = _MOST_LEARNT - len(self._known)
        if room <= 0:
            return
        is_single, is_of_single = list[bool](), list[bool]()
        for index, size in counts.items():
            before = index - len(is_single)
            is_single += [True] * before + [False]
            is_of_single += [True] * before + [False] * size
        rest = len(words) - len(is_single)
        single = islice(compress(words, is_single + [True] * rest), room)
        of_single = compress(zip(tokens, stems, strict=True), is_of_single + [True] * rest)
        unwanted, splits = self._unwanted, self._analyzer.splitter.joins_words
        learnt = {
            word: stem
            for word, (token, stem) in zip(single, of_single, strict=False)
            # Of runs without spaces questions have other pairs.
            if token not in unwanted and len(word) <= LONGEST_WORD and word < FIRST_LETTER
            if word.isalpha() or not splits
        }
        self._known.update(learnt)

    @lazy_property
    def otherwise(self) -> Otherwise | None:
        """How to find the terms of what is also one word in questions."""
        analyzer = self._analyzer
        splitter = analyzer.splitter
        if not (splitter.joins_words and self._asks):
            return None
        asked = analyzer.unwanted
        return Otherwise(
            find=partial(splitter.find_otherwise, stopwords=asked),
            analyze=analyzer._document_terms.of,
            unwanted=analyzer.stopwords,
            stopwords=asked,
            lowercase=splitter.lowercase,
            lost=splitter.lost,
            link=splitter.with_links,
        )

    @lazy_property
    def _rules(self) -> WordRules:
        analyzer = self._analyzer
        splits = analyzer.identifiers or analyzer.ngrams is not None  # plain words, too
        stemmer = None if splits else analyzer.word_stemmer
        runs = analyzer.splitter.usual_runs if self._question else 0
        letters = analyzer.splitter.fold_letters
        return WordRules(self._known, self._unwanted, stemmer, self._analyze, runs, letters)

    def _analyze(self, words: list[str]) -> dict[str, WordTerms]:
        """Analyse distinct words; return the terms of each."""
        tokens, counts = self._analyzer.splitter.split_words(words, self._question)
        stems, unwanted = self._analyzer.stems(tokens), self._unwanted
        kept = [
            "" if token in unwanted else stem for token, stem in zip(tokens, stems, strict=True)
        ]
        terms: Iterable[WordTerms] = [stem or () for stem in kept]
        if counts:
            terms = _gathered(kept, [counts.get(index, 1) for index in range(len(words))])
            if self._whole:
                terms = [one if isinstance(one, str) else "\0".join(one) or () for one in terms]
        of_words = dict(zip(words, terms, strict=True))
        if max(map(len, words), default=0) <= LONGEST_WORD:
            self._known.update(of_words)
        else:
            self._known.update({one: of_words[one] for one in words if len(one) <= LONGEST_WORD})
        return of_words


def _places(words: Sequence[int], counts: Mapping[int, int]) -> Iterator[int]:
    """Yield where the tokens of some words are among those of all."""
    more = 0
    for index in words:
        count = counts.get(index, 1)
        yield from range(index + more, index + more + count)
        more += count - 1


def _gathered(stems: Sequence[str], sizes: list[int]) -> Iterator[WordTerms]:
    """Yield the terms of each word: those of its stems that are not empty."""
    start = 0
    for size in sizes:
        own = [stem for stem in stems[start : start + size] if stem]
        yield own[0] if len(own) == 1 else tuple(own)
        start += size

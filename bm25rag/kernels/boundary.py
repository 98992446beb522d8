"""What runs the hot loops: the backend, and what is checked of what it is given.

Compiled loops test no bounds. So every call goes through the public methods of ``Backend``,
which check what they are given, the same for every backend, and pass it on to the methods
with an underscore, which are the loops. A record checks its arrays' types and shapes when it
is made, and a method how records fit together. What is too long to be looked at in every call
is right by construction; this is the whole list:

- Postings, score tables and the places where postings begin are checked when they are read
  from a file ("What is checked" in ``docs/format.md``): documents ascend for each term within
  a block and are below ``block_size`` and the number of documents; codes are below the length
  of the table; places ascend and lie within the postings.
- Where rows of strips begin, and the postings of their terms, is checked when it is read from a
  file, and that pairs of a row ascend within the strips before a search adds it up. Levels may be
  anything: a strip of which they say too much is looked at, and none beyond the documents.
- Texts are UTF-8, perhaps with surrogates, because ``str.encode`` made them. The words of a
  scan and the table of words are what ``scan`` and ``add_words`` left there.
- ``pack`` gets pieces as ``find_pieces`` left them.
- ``fill`` gets as many postings of each term as there is room for behind its cursor, because
  ``build_postings`` counted the same runs. The documents of a run are those that it was counted
  of, and ``DocBlockBuilder`` made the places of their blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from bm25rag.common.arrays import (
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Unsigned,
)
from bm25rag.kernels.checks import check_array, check_rising, lowest_and_highest, require
from bm25rag.kernels.records import (
    Matches,
    Pieces,
    PostingsTarget,
    Queries,
    Rows,
    Run,
    SearchPlan,
    SegmentArrays,
    StringArrays,
    TermArrays,
    TermNumbers,
)
from bm25rag.kernels.term_lists import TermLists, WordTerms, all_terms

if TYPE_CHECKING:
    from bm25rag.kernels.scanner_interface import FoldArrays, Scanned, Scanner, Texts

T = TypeVar("T")

# The longest word whose terms are remembered: no language has longer ones.
LONGEST_WORD = 100
# The most characters of two parts, as in "e-mail", that are also one word; and of a word and a
# number, as in "type 2", that are also asked as one.
LONGEST_JOINED, LONGEST_PAIR = 8, 10
# The least letters before digits, as in "covid19", that are also asked for themselves: of fewer, as
# in "cd44", they are mostly another word. And the least digits behind fewer, as in "fy2018".
SHORTEST_ASKED = 4
# What need not be left to Python; see ``WordRules``.
PAIRS, SINGLES, CLUSTERS, AS_WRITTEN, POSSESSIVES = 1, 2, 4, 8, 16


class KnownWords(Protocol):
    """Remembers the terms of words: the first or the last ones that it is given, or none."""

    def __len__(self) -> int: ...

    def get(self, word: str, /) -> WordTerms | None:
        """Return the terms of a word; ``None`` if it is not known."""
        ...

    def update(self, of_words: Mapping[str, WordTerms], /) -> None:
        """Remember the terms of words."""
        ...

    def clear(self) -> None:
        """Forget all words."""
        ...


class WordRules(NamedTuple):
    """What becomes of words."""

    # The terms of words, as ``Backend.known_words`` makes it; takes those of new ones of at most
    # ``LONGEST_WORD`` letters and digits, all of ASCII, and of numbers with points. Threads may
    # share it, and forget words. What another backend has made stays as it is.
    known: KnownWords
    # Which of those have no term.
    unwanted: frozenset[str]
    # Returns what this thread finds the stem of a word with, if it has any: the term of each of
    # the others; ``None``: all words are left to ``analyze``.
    stemmer: Callable[[], Callable[[str], str]] | None
    # Returns the terms of all other new words.
    analyze: Callable[[list[str]], dict[str, WordTerms]]
    # What of scripts without spaces need not be left to it, a sum: ``PAIRS`` of characters of
    # Chinese, Japanese and Korean, and one; with the first of Han as a term (``SINGLES``);
    # ``CLUSTERS`` of Thai. And ``AS_WRITTEN``, if words of letters and digits are also asked in
    # two, and ``POSSESSIVES``, if an "s" after an apostrophe is dropped from their ends.
    runs: int = 0
    # Returns the token of a word of other letters that are not all ASCII; ``None``: such words are
    # left to ``analyze``.
    letters: Callable[[str], str] | None = None


class Otherwise(NamedTuple):
    """How to find the terms of what is also one word in a question, as "e-mail" and "type 2" are.

    The terms are remembered beside those of words, by the text as written. The rules of words must
    have a stemmer then. ``find`` returns such words of a text, and ``analyze`` their terms.
    """

    find: Callable[[str], list[str]]
    analyze: Callable[[list[str]], list[str]]
    unwanted: frozenset[str]  # words that have no term
    stopwords: frozenset[str]  # words to which no number is joined
    lowercase: bool
    # Letters of ASCII that folding turns into others: of most texts without them a backend may find
    # the words itself. None if it makes letters and digits of ASCII from others than wide ones and
    # capitals.
    lost: str | None
    # Returns a text in which wide links, and hyphens that are not ASCII, are ASCII.
    link: Callable[[str], str]


class Backend(ABC):
    """Runs the hot loops; every backend gives the same ids, order and bits.

    Its methods raise ``TypeError`` or ``ValueError`` for what no caller of ours passes.
    """

    name: ClassVar[str]

    # The loops, which take what the methods of these names take, and return what they return.
    _search: Callable[..., None]
    _search_one: Callable[..., tuple[list[int], list[float]]]
    _find_wrong: Callable[..., str | None]
    _unpack: Callable[..., tuple[UInt8, Int64] | None]
    _number_terms: Callable[..., tuple[Int64, Int64]]
    _checksums: Callable[..., UInt32]
    _count: Callable[..., tuple[Run, UInt32]]
    _divide: Callable[..., tuple[Run, Int64]]
    _fill: Callable[..., None]
    _strip_row: Callable[..., UInt8]

    @property
    def scanner(self) -> Scanner | None:
        """The scanner; ``None`` if texts are analysed word by word in Python."""
        return None

    def search(
        self,
        segments: Sequence[SegmentArrays],
        terms: Sequence[TermArrays],
        rows: Rows,
        queries: Queries,
        floor: float,
        plans: Sequence[SearchPlan | None],
        matches: Matches,
    ) -> None:
        """Find the best k matches of each query in all segments, which ``matches`` takes.

        What the numbers in ``queries`` stand for is in ``terms``; scores must exceed ``floor``.
        Each segment has a plan; ``None``: it is left out.
        """
        check_array("rows", matches.rows, np.int64, dimensions=2)
        _check_parts(segments, terms, rows, plans, matches.rows.shape[1])
        check_array("scores", matches.scores, np.float64, dimensions=2)
        check_array("counts", matches.counts, np.int64)
        require(matches.rows.shape == matches.scores.shape, "rows and scores differ in shape")
        require(matches.counts.shape == (len(queries),) == matches.rows.shape[:1], "wrong counts")
        self._search(segments, terms, rows, queries, floor, plans, matches)

    def search_one(
        self,
        segments: Sequence[SegmentArrays],
        terms: Sequence[TermArrays],
        rows: Rows,
        query: list[int],
        weights: list[float],
        floor: float,
        plans: Sequence[SearchPlan | None],
        k: int,
    ) -> tuple[list[int], list[float]]:
        """Find the best k matches of one query in all segments: ``search`` without arrays.

        ``query`` and ``weights`` are terms and their weights, as ``Queries`` has them; backends
        check the numbers, and that plans and terms are of their segments. It returns rows, by score
        descending, then ascending, and scores.
        """
        _check_parts(segments, terms, rows, plans, k)
        if weights:
            require(len(weights) == len(query), "terms and weights differ in length")
        return self._search_one(segments, terms, rows, query, weights, floor, plans, k)

    def locate(self, rows: Rows, wanted: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the segments of the documents at some rows, and their numbers there."""
        places = np.array(wanted, np.int64)
        known = not len(places) or (places.min() >= 0 and places.max() < rows.bases[-1])
        require(bool(known), "there is no such row")
        segments = np.searchsorted(rows.bases, places, side="right") - 1
        numbers = np.empty_like(places)
        for segment in np.unique(segments).tolist():
            own = segments == segment
            numbers[own] = rows.segments[segment].numbers_at(places[own] - rows.bases[segment])
        return segments.tolist(), numbers.tolist()

    def find_wrong(
        self, documents: UInt16, starts: Int64, block_size: int, size: int
    ) -> str | None:
        """Say what is wrong with the documents of a term, of which there is one at least.

        It is ``"block"`` if one is beyond its block, ``"documents"`` if they do not ascend or one
        is beyond the segment; ``None`` if all is well.

        Parameters
        ----------
        documents
            Its postings' documents, numbered within their blocks, uint16.
        starts
            Where those of each block begin, and where the last end, int64; the first counts as 0.
        block_size, size
            How many documents a block and the segment have.
        """
        check_array("documents", documents, np.uint16)
        check_array("starts", starts, np.int64)
        places = (starts - starts[0]).tolist()
        require(places == sorted(places) and places[-1] == len(documents) > 0, "wrong starts")
        return self._find_wrong(documents, starts, block_size, size)

    @abstractmethod
    def decode(self, strings: StringArrays, numbers: Sequence[int]) -> list[str] | None:
        """Decode the strings of some numbers, of which lone surrogates may be part.

        It returns ``None`` if one is not known to be right, or there is none of a number, and
        raises ``UnicodeDecodeError`` if one is not UTF-8.
        """

    def decode_each(
        self, columns: list[StringArrays], segments: list[int], numbers: Sequence[int]
    ) -> list[str] | None:
        """Decode strings of several columns, given which and their numbers.

        It returns ``None`` if that is left to ``decode``, as strings are that are not UTF-8.
        """
        return None

    def make_hits(
        self,
        kinds: tuple[Any, Any, Any],
        answer: object,
        ids: list[str],
        scores: list[float],
        counts: Iterable[int],
    ) -> list[Any]:
        """Make the hits of each of some queries, of which nothing else has been read yet.

        Parameters
        ----------
        kinds
            The classes of a hit, of the list of a query's, and of their contents; what these do
            when one is made is left out.
        answer
            What the contents of all have in common: they say which of all hits are their own.
        ids, scores
            Of each hit, those of one query after those of the one before.
        counts
            How many hits each query has.
        """
        kind, listing, holding = kinds
        require(len(ids) == len(scores), "hits differ in number")
        made = []
        last = 0
        for number, count in enumerate(counts):
            first, last = last, last + count
            require(first <= last <= len(ids), "queries have other hits than there are")
            contents: Any = holding.__new__(holding)
            contents._answer, contents._query, contents._read = answer, number, {}
            contents._first, contents._last = first, last
            hits = listing.__new__(listing)
            for position, place in enumerate(range(first, last)):
                hit: Any = kind.__new__(kind)
                hit.id, hit.score = ids[place], scores[place]
                hit._contents, hit._position = contents, position
                hits.append(hit)
            made.append(hits)
        return made

    def make_models(self, like: T, columns: Mapping[str, Sequence[object]]) -> list[T]:
        """Make models of Pydantic whose values need no check; see ``models.make_models``."""
        models = []
        for own in zip(*columns.values(), strict=True):
            values = {
                name: copy(value) if type(value) in (dict, list) else value
                for name, value in vars(like).items()
            }
            values.update(zip(columns, own, strict=True))
            model = type(like).__new__(type(like))
            for name, value in (
                ("__dict__", values),
                ("__pydantic_fields_set__", {*columns}),
                ("__pydantic_extra__", None),
                ("__pydantic_private__", None),
            ):
                object.__setattr__(model, name, value)
            models.append(model)
        return models

    def find_pieces(self, data: UInt8, offsets: Int64, often: int) -> Pieces | None:
        """Find byte strings that are frequent in texts; ``None`` if this backend does not pack.

        Parameters
        ----------
        data
            The texts, one after another, and 8 bytes more.
        offsets
            Where each begins, and where the last ends, int64 (n + 1,).
        often
            How often two pieces follow each other that become one.
        """
        _check_texts(data, offsets)
        return self._find_pieces(data, offsets, often)

    def pack(self, pieces: Pieces, data: UInt8, offsets: Int64) -> tuple[UInt16, Int64]:
        """Cut texts into pieces, as ``find_pieces`` returns them and takes texts.

        It returns the numbers of the pieces of all texts, one after another, uint16, and where
        those of each text begin, and where the last end, int64 (n + 1,).
        """
        _check_texts(data, offsets)
        return self._pack(pieces, data, offsets)

    def unpack(
        self, pieces: UInt64, numbers: UInt16, starts: Int64, stops: Int64
    ) -> tuple[UInt8, Int64] | None:
        """Put texts in pieces together, given pieces and numbers as ``pack`` has them.

        Each of some texts lies in ``numbers`` from ``starts`` to ``stops``, int64 (n,). It returns
        their bytes, one after another, and where each begins and the last ends, int64 (n + 1,);
        ``None`` if a number is that of no piece.
        """
        check_array("pieces", pieces, np.uint64)
        check_array("numbers", numbers, np.uint16)
        for name, places in (("starts", starts), ("stops", stops)):
            check_array(name, places, np.int64)
            lowest, highest = lowest_and_highest(places, 0)
            require(lowest >= 0 and highest <= len(numbers), f"{name} are beyond the numbers")
        require(len(starts) == len(stops), "starts and stops differ in length")
        return self._unpack(pieces, numbers, starts, stops)

    def find_words(
        self, table: FoldArrays, text: str, least: int, question: bool, folded: bool = False
    ) -> list[str] | int | None:
        """Find the words of one text; ``None`` if this backend does not find words.

        It returns the page of the table instead that the text needs and that has no entries, or
        ``PECULIAR_TEXT`` if it needs more than the table.

        Parameters
        ----------
        table, text
            The fold table, and the text.
        least
            Of how many characters a word is, at least: 1, 2 or 3.
        question
            Whether it is a question, of which fewer characters and clusters are words.
        folded
            Whether the text was folded as far as it needs more than the table.
        """
        require(least in (1, 2, 3), "least is not 1, 2 or 3")
        return self._find_words(table, text, least, question, folded)

    def find_ascii_words(self, text: str) -> list[str] | None:
        """Find the words of a text in ASCII, as ``scripts.word_pattern`` does.

        It returns ``None`` if this backend does not look for words.
        """
        return None

    def known_words(self) -> KnownWords:
        """Return what remembers the terms of words for this backend, empty."""
        return {}

    def analyze_text(
        self,
        text: str,
        rules: WordRules,
        otherwise: Otherwise | None = None,
    ) -> list[str] | None:
        """Return the terms of a text in ASCII: of the words that ``find_ascii_words`` finds.

        ``rules`` say what becomes of its words, ``otherwise`` how to find the terms of what is also
        one word, which come last, if there are other terms; ``None``: they are not looked for. It
        returns ``None`` if this backend does not look for words.
        """
        return None

    def analyze_words(
        self,
        words: list[str],
        rules: WordRules,
        otherwise: Otherwise | None = None,
        text: str = "",
    ) -> list[str]:
        """Return the terms of words, one after another; as ``analyze_text``.

        ``text`` is what the words are of, for ``otherwise``.
        """
        known = rules.known
        of_words = {word: terms for word in words if (terms := known.get(word)) is not None}
        of_words |= rules.analyze([word for word in dict.fromkeys(words) if word not in of_words])
        own = all_terms(map(of_words.__getitem__, words))
        if otherwise is not None and own and (others := otherwise.find(text)):
            own += otherwise.analyze(others)
        return own

    def analyze_texts(
        self,
        texts: Sequence[str],
        utf8: Texts,
        scanned: Scanned,
        rules: WordRules,
        otherwise: Otherwise | None,
    ) -> tuple[TermLists, list[int]]:
        """Return the terms of each text, and the numbers of those without; as ``analyze_text``.

        ``utf8`` is the texts' UTF-8, ``scanned`` their words, as of questions.
        """
        tokens, counts, _, _ = scanned
        check_array("tokens", tokens, np.uint32)
        check_array("counts", counts, np.uint32)
        require(len(texts) == len(counts), "texts and counts differ in length")
        require(len(texts) == len(utf8.ends), "texts and their ends differ in length")
        of_words, more, bare = self._analyze_texts(texts, utf8, scanned, rules, otherwise)
        return TermLists(of_words, tokens, counts, more), bare

    def number_terms(
        self, queries: Sequence[Collection[str]], numbers: TermNumbers
    ) -> tuple[Int64, Int64]:
        """Return the numbers of the terms of queries: the pointers and terms of ``Queries``.

        ``numbers`` has the number of each term; those that have none are looked up, and added. A
        ``RuntimeError`` says that another thread makes a query longer.
        """
        return self._number_terms(queries, numbers)

    @abstractmethod
    def number_query(self, query: Collection[str], numbers: TermNumbers) -> list[int]:
        """Return the numbers of the terms of one query: ``number_terms`` without arrays."""

    @abstractmethod
    def crc32(self, data: bytes | memoryview, before: int = 0) -> int:
        """Return the CRC-32 of bytes behind those of which it is ``before``, as ``zlib.crc32``."""

    def checksums(self, data: UInt8, offsets: UInt64) -> UInt32:
        """Return the CRC-32 of byte strings, one after another in ``data``, uint32 (n,).

        Where each begins, and where the last ends, is in ``offsets``, uint64 (n + 1,).
        """
        check_array("data", data, np.uint8)
        check_array("offsets", offsets, np.uint64)
        check_rising("offsets", offsets, len(data))
        return self._checksums(data, offsets)

    def count(
        self, tokens: UInt32, counts: UInt32, terms: int, first: int, spare: list[Any]
    ) -> tuple[Run, UInt32]:
        """Count the tokens of some documents; return postings and |d| of each document, uint32.

        Parameters
        ----------
        tokens
            The term of every token, uint32; ``STOPPED`` for a stop word.
        counts
            How many tokens each document has, stop words too, uint32.
        terms
            How many terms there are.
        first
            The number of the first document.
        spare
            Memory of earlier calls, to be used again; any threads may share it.
        """
        check_array("tokens", tokens, np.uint32)
        check_array("counts", counts, np.uint32)
        require(int(counts.sum(dtype=np.int64)) == len(tokens), "counts are not of the tokens")
        # STOPPED is -1 there.
        lowest, highest = lowest_and_highest(tokens.view(np.int32), -1)
        require(lowest >= -1 and highest < terms, "a token has no term")
        require(len(tokens) < 1 << 32, "more tokens than can be counted together")
        return self._count(tokens, counts, terms, first, spare)

    def divide(self, run: Run, groups: UInt8, count: int) -> tuple[Run, Int64]:
        """Put the terms of a run, and their postings, in the order of their groups.

        The group of each term is less than ``count``, uint8. It returns the same postings, and
        where the terms and, in the second row, the postings of each group begin, and where those of
        the last end, int64 (2, count + 1).
        """
        check_array("groups", groups, np.uint8)
        require(lowest_and_highest(run.terms, -1)[1] < len(groups), "a term has no group")
        require(lowest_and_highest(groups, 0)[1] < count, "a group is beyond the last")
        require(int(run.sizes.sum(dtype=np.int64)) == len(run.documents), "a run is ragged")
        return self._divide(run, groups, count)

    def fill(self, run: Run, codes: Unsigned, target: PostingsTarget) -> None:
        """Put the postings of a run into their places, ``target``.

        Their impact ``codes`` are of the type of ``target.codes``.
        """
        check_array("terms", run.terms, np.uint32)
        check_array("sizes", run.sizes, np.uint32)
        check_array("documents", run.documents, np.uint16, np.uint32)
        check_array("cursors", target.cursors, np.int64)
        check_array("documents", target.documents, np.uint16)
        check_array("codes", target.codes, np.uint16, np.uint32)
        check_array("codes", codes, target.codes.dtype.type)
        check_array("targets", target.targets, np.int64)
        check_array("cells", target.cells, np.uint32, dimensions=2)
        check_array("high", target.high, np.uint16)
        total = int(run.sizes.sum(dtype=np.int64))
        require(len(run.terms) == len(run.sizes), "a run is ragged")
        require(total == len(run.documents) == len(codes), "a run is ragged")
        require(lowest_and_highest(run.terms, -1)[1] < len(target.cursors), "a term has no cursor")
        require(len(target.targets) in (0, len(target.cursors)), "a term has no target")
        self._fill(run, codes, target)

    def strip_row(
        self,
        documents: UInt16,
        codes: UInt16,
        starts: Int64,
        levels: UInt8,
        in_block: int,
        limit: int,
    ) -> UInt8:
        """Return what the postings of a term reach in strips of 32 documents.

        It is the largest level of each strip, 0 where the term is not, uint8 (s * in_block,); or
        pairs, see ``StripBounds``, of which a gap of more than 255 is divided, with levels of 0.

        Parameters
        ----------
        documents, codes
            All postings, as in ``SegmentArrays``.
        starts
            Where those of the term begin in each of s blocks, and where they end, int64 (s + 1,).
        levels
            The level of each code, uint8.
        in_block
            How many strips a block has; all documents are in these.
        limit
            The row has pairs if the term is in at most so many strips.
        """
        check_array("documents", documents, np.uint16)
        check_array("codes", codes, np.uint16)
        check_array("starts", starts, np.int64)
        check_array("levels", levels, np.uint8)
        check_rising("starts", starts, len(documents))
        require(len(documents) == len(codes), "documents and codes differ in length")
        return self._strip_row(documents, codes, starts, levels, in_block, limit)

    def _find_words(
        self, table: FoldArrays, text: str, least: int, question: bool, folded: bool
    ) -> list[str] | int | None:
        return None

    def _analyze_texts(
        self,
        texts: Sequence[str],
        utf8: Texts,
        scanned: Scanned,
        rules: WordRules,
        otherwise: Otherwise | None,
    ) -> tuple[list[WordTerms], dict[int, list[str]], list[int]]:
        tokens, counts, _, pool = scanned
        words = pool.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
        of_words = [tuple(self.analyze_words([word], rules)) for word in words]
        numbers, ends = tokens.tolist(), np.cumsum(counts, dtype=np.int64).tolist()
        more: dict[int, list[str]] = {}
        bare: list[int] = []
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if not any(of_words[word] for word in numbers[start:end]):
                bare.append(number)
            elif otherwise is not None and (others := otherwise.find(texts[number])):
                more[number] = otherwise.analyze(others)
        return [*of_words], more, bare

    def _find_pieces(self, data: UInt8, offsets: Int64, often: int) -> Pieces | None:
        return None

    def _pack(self, pieces: Pieces, data: UInt8, offsets: Int64) -> tuple[UInt16, Int64]:
        raise NotImplementedError


def _check_texts(data: UInt8, offsets: Int64) -> None:
    check_array("data", data, np.uint8)
    check_array("offsets", offsets, np.int64)
    check_rising("offsets", offsets, len(data) - 8)


def _check_parts(
    segments: Sequence[SegmentArrays],
    terms: Sequence[TermArrays],
    rows: Rows,
    plans: Sequence[SearchPlan | None],
    k: int,
) -> None:
    """Check that the parts of a search belong together; backends check each segment's."""
    if k < 1:
        require(False, "k must be at least 1")
    if not len(segments) == len(terms) == len(plans) == len(rows.segments):
        require(False, "segments, terms, plans and rows differ in number")

"""What does not fit together reaches no loop: every backend refuses it, with the same words."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bm25rag.kernels import backend as backends
from bm25rag.kernels.records import (
    Allowed,
    FileBlocks,
    Matches,
    PostingsArrays,
    PostingsTarget,
    Queries,
    Rows,
    Run,
    SearchPlan,
    SegmentArrays,
    SegmentRows,
    StringArrays,
    TermArrays,
    TermTable,
)
from bm25rag.kernels.scanner_interface import CODE_POINTS, SEVERAL, FoldArrays, Texts
from support.numbers import Numbers, term_table

pytestmark = pytest.mark.usefixtures("backend")


def segment(**changed: Any) -> SegmentArrays:
    arrays: dict[str, Any] = {
        "documents": np.array([0, 1], np.uint16),
        "codes": np.array([0, 0], np.uint16),
        "weights": np.array([0.5], np.float32),
        "size": 2,
        "block_size": 65_536,
    }
    return SegmentArrays(**arrays | changed)


def terms(starts: Any = ((0, 2),), idf: Any = (1.0,)) -> TermArrays:
    return TermArrays(np.array(starts, np.int64), np.array(idf, np.float32), np.float32(0))


def queries(pointers: Any = (0, 1), numbers: Any = (0,), weights: Any = ()) -> Queries:
    return Queries(np.array(pointers, np.int64), np.array(numbers, np.int64), np.array(weights))


def plan(**changed: Any) -> SearchPlan:
    values: dict[str, Any] = {
        "k": 3,
        "allowed": None,
        "window": 8192,
        "sparse": 10,
        "coarse": 200,
        "filtered_first": 20,
    }
    return SearchPlan(**values | changed)


def matches(queries: int = 1, k: int = 3) -> Matches:
    return Matches(
        np.empty((queries, k), np.int64), np.empty((queries, k)), np.empty(queries, "i8")
    )


def search(*given: Any, places: Rows | None = None) -> Matches:
    """Search one segment."""
    for place, made in enumerate((segment, terms, queries, plan, matches)):
        if len(given) <= place:
            given = (*given, made())
    one, own, asked, wanted, found = given
    places = Rows([rows_of([], one.size)]) if places is None else places
    backends.current().search([one], [own], places, asked, -np.inf, [wanted], found)
    return found


def ask(pointers: list[int], numbers: Any = (0,)) -> Matches:
    count = len(pointers) - 1
    return search(segment(), terms(), queries(pointers, numbers), plan(), matches(count))


def test_what_fits_together_is_searched() -> None:
    found = search()
    assert found.rows.tolist() == [[0, 1, -1]]
    assert found.scores.tolist() == [[0.5, 0.5, -np.inf]]
    assert found.counts.tolist() == [2]
    assert search_one([0]) == ([0, 1], [0.5, 0.5])
    assert search_one([-1]) == search_one([]) == ([], [])
    assert search_one([0, -1, 0], [0.5, 1.0, 1.0], k=1) == ([0], [0.75])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: segment(documents=np.array([0, 1])), TypeError, "documents must be a contiguous"),
        (lambda: segment(codes=np.array([0, 1], "i2")), TypeError, "array of uint16 or uint32"),
        (lambda: segment(weights=np.zeros((1, 1), "f4")), TypeError, "with 1 dimensions"),
        (lambda: segment(codes=np.zeros(4, "u2")[::2]), TypeError, "codes must be a contiguous"),
        (lambda: segment(codes=np.zeros(3, "u2")), ValueError, "documents and codes differ"),
        (lambda: segment(size=0), ValueError, "wrong numbers of documents"),
        (lambda: segment(block_size=65_537), ValueError, "wrong numbers of documents"),
        (lambda: terms(idf=[1.0, 2.0]), ValueError, "starts and idf differ"),
        (lambda: ask([0, 2]), ValueError, "pointers do not ascend from 0 to 1"),
        (lambda: ask([-1, 1]), ValueError, "pointers do not ascend"),
        (lambda: ask([1, 0]), ValueError, "pointers do not ascend"),
        (lambda: ask([0, 2, 1]), ValueError, "pointers do not ascend"),
        (lambda: ask([0] * 600 + [1, 0]), ValueError, "pointers do not ascend"),
        (lambda: ask([0, 1], [-2]), ValueError, "a negative number"),
        (lambda: ask([0, 1, 2], [0, 1]), ValueError, "has no postings"),
        (lambda: queries(weights=[1.0, 2.0]), ValueError, "terms and weights differ"),
        (lambda: search(segment(), terms(), queries(numbers=[1])), ValueError, "has no postings"),
        (lambda: search(segment(), terms([[0, 1, 2]])), ValueError, "not of this segment"),
        (lambda: search(segment(size=3, block_size=2)), ValueError, "not of this segment"),
        (lambda: with_limits(allowed=Allowed(np.ones(3, "?"))), ValueError, "allowed is not of"),
        (lambda: Allowed(np.ones(2)), TypeError, "allowed must be a contiguous"),
        (lambda: allow([0.0]), TypeError, "allowed must be a contiguous"),
        (lambda: allow([1, 1]), ValueError, "allowed do not ascend to 2"),
        (lambda: allow([1, 0]), ValueError, "allowed do not ascend to 2"),
        (lambda: allow([0, 2]), ValueError, "allowed do not ascend to 2"),
        (lambda: with_limits(k=0), ValueError, "k and window"),
        (lambda: with_limits(window=0), ValueError, "k and window"),
        (lambda: into(matches(1, 0)), ValueError, "k must be at least 1"),
        (lambda: into(matches(2)), ValueError, "wrong counts"),
        (lambda: into(matches()._replace(counts=np.zeros(2, "i8"))), ValueError, "wrong counts"),
        (lambda: into(matches()._replace(scores=np.zeros((1, 2)))), ValueError, "differ in shape"),
        (lambda: search(places=Rows([])), ValueError, "differ in number"),
        (lambda: search_one([1]), ValueError, "has no postings"),
        (lambda: search_one([0, -2]), ValueError, "a negative number"),
        (lambda: search_one([0], [1.0, 2.0]), ValueError, "terms and weights differ"),
        (lambda: search_one(["0"]), TypeError, "int|str"),
        (lambda: search_one([0], k=0), ValueError, "k and window"),
        (lambda: search_one([0], window=0), ValueError, "k and window"),
        (
            lambda: search_one([0], allowed=Allowed(np.ones(3, "?"))),
            ValueError,
            "allowed is not of",
        ),
        (lambda: search_some(own=[terms([[0, 1, 2]])]), ValueError, "not of this segment"),
        (lambda: search_some(own=[]), ValueError, "differ in number"),
        (lambda: search_some(query=[-1], k=0), ValueError, "k must be at least 1"),
        (lambda: search_some(places=Rows([])), ValueError, "differ in number"),
        (lambda: rows_of([1, 1]), ValueError, "rows do not ascend to 3"),
        (lambda: rows_of([1, 3]), ValueError, "rows do not ascend to 3"),
        (lambda: backends.current().locate(Rows([rows_of([1])]), [2]), ValueError, "no such row"),
        (lambda: backends.current().locate(Rows([rows_of([1])]), [-1]), ValueError, "no such row"),
        (lambda: wrong([], [0, 0]), ValueError, "wrong starts"),
        (lambda: wrong([0], [0, 2]), ValueError, "wrong starts"),
        (lambda: wrong([0, 1], [2, 1, 4]), ValueError, "wrong starts"),
        (lambda: decode(b"\xff", [0, 1], [0]), UnicodeDecodeError, "utf-8"),
        (lambda: table(terms=[starts(2, 3)]), ValueError, "starts are not of these postings"),
        (lambda: table(terms=[starts(3, 2)]), ValueError, "starts are not of these postings"),
        (lambda: table(terms=[]), ValueError, "not as many postings as terms"),
        (lambda: table(rows=[]), ValueError, "rows are not of these postings"),
        (lambda: table(rows=[rows_of([1])]), ValueError, "rows are not of these postings"),
        (lambda: table(frequencies=np.zeros(3, "i8")), ValueError, "idf and frequencies differ"),
        (lambda: table(frequencies=np.zeros(2)), TypeError, "frequencies must be a contiguous"),
        (lambda: table(idf=np.zeros(2)), TypeError, "idf must be a contiguous"),
        (lambda: table(idfs=np.zeros(4, "f4")[::2]), TypeError, "idfs must be a contiguous"),
        (lambda: count([0, 1], [1], 2), ValueError, "counts are not of the tokens"),
        (lambda: count([0, 2], [2], 2), ValueError, "a token has no term"),
        (lambda: fill([1], [0]), ValueError, "a term has no cursor"),
        (lambda: fill([0, 0], [0]), ValueError, "a run is ragged"),
        (lambda: fill([0], [0, 0]), ValueError, "a run is ragged"),
        (lambda: fill([0], [0], targets=2), ValueError, "a term has no target"),
        (lambda: scan(b"ab", [1, 3]), ValueError, "ends do not ascend from 0 to 2"),
        (lambda: scan(b"ab", [2, 1]), ValueError, "ends do not ascend"),
        (lambda: scan(b"ab", [2], 10), ValueError, "not of all code points"),
        (lambda: scan(b"ab", [2], least=4), ValueError, "least is not 1, 2 or 3"),
        (lambda: find_words(least=0), ValueError, "least is not 1, 2 or 3"),
        (lambda: find_words(points=10), ValueError, "not of all code points"),
        (lambda: find_words(kind=np.int64), TypeError, "fold_table must be"),
        (lambda: expand(tokens=[1]), ValueError, "a token is no word"),
        (lambda: expand(starts=[0, 2]), ValueError, "starts do not ascend from 0 to 1"),
        (lambda: expand(plain=[SEVERAL + 1]), ValueError, "a word has no terms"),
        (lambda: expand(counts=[2]), ValueError, "counts are not of the tokens"),
    ],
)
def test_what_does_not_is_refused(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


def allow(numbers: Any) -> Allowed:
    array = np.array(numbers)
    return Allowed.of_numbers(array.astype(np.uint32) if array.dtype.kind == "i" else array, 2)


def with_limits(**changed: Any) -> Matches:
    return search(segment(), terms(), queries(), plan(**changed))


def into(found: Matches) -> Matches:
    return search(segment(), terms(), queries(), plan(), found)


def search_one(query: Any, weights: Any = (), **changed: Any) -> tuple[list[int], list[float]]:
    wanted = plan(**changed)
    return search_some(query, list(weights), plans=[wanted], k=wanted.k)


def search_some(
    query: Any = (0,),
    weights: Any = (),
    own: Any = None,
    places: Rows | None = None,
    plans: Any = None,
    k: int = 3,
) -> tuple[list[int], list[float]]:
    """Search one segment, or as many as there are plans."""
    plans = [plan()] if plans is None else plans
    own = [terms() for _ in plans] if own is None else own
    places = Rows([rows_of([], 2) for _ in plans]) if places is None else places
    segments = [segment() for _ in places.segments]
    return backends.current().search_one(
        segments, own, places, [*query], [*weights], -np.inf, plans, k
    )


def rows_of(numbers: Any, size: int = 3, kept: bool = False) -> SegmentRows:
    return SegmentRows(np.array(numbers, np.uint32), size, kept)


def test_matches_of_several_segments_are_merged() -> None:
    small = rows_of([], 2), rows_of([0], 2), rows_of([1], 2, kept=True)
    plans = [plan(k=2), None, plan(k=2, allowed=Allowed(np.array([False, True])))]
    weighted = [terms(idf=[idf]) for idf in (1.0, 9.0, 3.0)]
    found = search_some(own=weighted, places=Rows(small), plans=plans, k=3)
    assert found == ([3, 0, 1], [1.5, 0.5, 0.5])
    same = [terms()] * 3
    found = search_some(own=same, places=Rows([small[0]] * 3), plans=[plan(k=2)] * 3, k=3)
    assert found == ([0, 1, 2], [0.5] * 3)
    batch, asked = matches(2, 4), queries([0, 1, 1], [0])
    parts = [segment()] * 3, weighted, Rows(small), asked, -np.inf, plans
    backends.current().search(*parts, batch)
    assert batch.rows.tolist() == [[3, 0, 1, -1], [-1] * 4]
    assert batch.scores.tolist() == [[1.5, 0.5, 0.5, -np.inf], [-np.inf] * 4]
    assert batch.counts.tolist() == [3, 0]


def test_strings_of_several_columns_are_decoded_or_left_to_python() -> None:
    columns = [
        StringArrays(np.array([0, 1, 3], "u8"), np.frombuffer("aé".encode(), np.uint8)),
        StringArrays(np.array([0, 1, 2], "u4"), np.frombuffer(b"b\xff", np.uint8)),
    ]
    decode = backends.current().decode_each
    expected = None if backends.current().name == "numpy" else ["é", "b", "a"]
    assert decode(columns, [0, 1, 0], [1, 0, 0]) == expected
    for segments, numbers in (([0], [2]), ([0], [-1]), ([2], [0]), ([-1], [0]), ([1], [1])):
        assert decode(columns, segments, numbers) is None


def test_rows_lead_to_documents() -> None:
    rows = Rows([rows_of([0, 2], 4), rows_of([], 2), rows_of([], 1, kept=True), rows_of([1, 5], 7)])
    kept = Rows([rows.segments[1], rows_of([1, 5], 7, kept=True)])
    locate = backends.current().locate
    assert rows.bases == (0, 2, 4, 4, 9)
    assert locate(rows, range(9)) == ([0, 0, 1, 1, 3, 3, 3, 3, 3], [1, 3, 0, 1, 0, 2, 3, 4, 6])
    assert locate(rows, [8, 0, 2]) == ([3, 0, 1], [6, 1, 0])
    assert locate(kept, range(4)) == ([0, 0, 1, 1], [0, 1, 1, 5])
    for one in (*rows.segments, *kept.segments):
        ranks = np.arange(one.count)
        assert one.ranks(one.numbers_at(ranks)).tolist() == ranks.tolist()


@pytest.mark.parametrize(
    ("documents", "starts", "expected"),
    [
        ([0, 1], [5, 7, 7], None),
        ([0, 1, 0], [5, 7, 8], None),
        ([1, 2], [0, 2, 2], "block"),
        ([1, 0], [0, 2, 2], "documents"),
        ([1, 1], [0, 2, 2], "documents"),
        ([1, 1], [0, 1, 2], "documents"),  # the second block has one document
    ],
)
def test_wrong_documents_are_found(documents: Any, starts: Any, expected: str | None) -> None:
    assert wrong(documents, starts) == expected


def test_strings_are_decoded() -> None:
    text = "a\ud800\u00e9\U0001f600".encode("utf-8", "surrogatepass")
    assert decode(text, [0, 1, 1, len(text)], [2, 0, 1, 0]) == [
        "\ud800\u00e9\U0001f600",
        "a",
        "",
        "a",
    ]


def test_a_string_that_is_nowhere_is_not_decoded() -> None:
    assert decode(b"ab", [0, 1, 2], [0, 2]) is None
    assert decode(b"ab", [0, 1, 2], [-1]) is None


def test_an_array_beyond_its_file_is_refused() -> None:
    offsets, data = np.array([0, 1], np.uint64), np.frombuffer(b"a", np.uint8)
    for places in ([0, 16], [1, 0], [-1, 0], [0]):
        with pytest.raises(ValueError, match=r"file|place"):
            StringArrays(offsets, data, FileBlocks(np.ones(1, np.uint8), 16, places))


def test_blocks_of_a_file_whose_arrays_do_not_fit_are_refused() -> None:
    offsets, data = np.array([0, 1], np.uint64), np.frombuffer(b"a", np.uint8)
    flags, whole = np.zeros(2, np.uint8), np.zeros(32, np.uint8)
    fixed = np.frombuffer(bytes(2), np.uint8)
    for blocks, wrong in (
        (FileBlocks(flags, 16, [0, 16], whole, np.zeros(1, np.uint32)), "checksum"),
        (FileBlocks(flags, 16, [0, 16], whole, np.zeros(2, np.int64)), "sums"),
        (FileBlocks(flags, 16, [0, 16], whole.view(np.int8), np.zeros(2, np.uint32)), "data"),
        (FileBlocks(fixed, 16, [0, 16]), "written"),
    ):
        with pytest.raises((TypeError, ValueError), match=wrong):
            StringArrays(offsets, data, blocks)


def test_terms_of_queries_get_their_numbers() -> None:
    numbers = Numbers({"red": 0, "sea": -1, "new": 2})
    queries = [["red", "new"], (), ("sea", "red", "new"), {"sea": 2.0}]
    pointers, terms = backends.current().number_terms(queries, numbers)
    assert pointers.tolist() == [0, 2, 2, 5, 6]
    assert terms.tolist() == [0, 2, -1, 0, 2, -1]
    assert pointers.dtype == terms.dtype == np.int64
    each = [backends.current().number_query(query, numbers) for query in queries]
    assert each == [[0, 2], [], [-1, 0, 2], [-1]]


def test_new_terms_are_numbered_with_their_data() -> None:
    """The rest is left to Python: what has no room, and a lone surrogate."""
    if backends.current().name == "numpy":
        pytest.skip("this backend leaves all terms to Python")
    numbers = Numbers()
    numbers.table = table()
    assert backends.current().number_query(["b", "a", "a", ""], numbers) == [-1, 0, 0, -1]
    assert numbers == {"a": 0}
    assert numbers.table.terms[0].starts.tolist() == [[0, 2], [0, 0]]
    assert numbers.table.frequencies.tolist() == [2, 0]
    assert numbers.table.idf.tolist() == [2.0, 0.0]
    for left, free in (("\ud800", [1]), ("a", []), ("a", [2]), ("a", [-1])):
        numbers = Numbers()
        numbers.table = table(free=iter(free))
        with pytest.raises(KeyError, match=repr(left)[1:-1].replace("\\", "\\\\")):
            backends.current().number_query([left], numbers)
        assert numbers == {}
        assert not numbers.table.frequencies.any()


def test_frequencies_and_idf_may_come_from_python() -> None:
    if backends.current().name == "numpy":
        pytest.skip("this backend leaves all terms to Python")

    class Counting(Numbers):
        def count(self, term: str, places: Any) -> int:
            seen.append((term, places.tolist()))
            return found

    for found, idf in ((0, 0.0), (1, 1.0), (2, 2.0), (3, 103.0)):
        seen: list[Any] = []
        numbers = Counting()
        numbers.table = table(rows=None)
        assert backends.current().number_query(["a"], numbers) == [0 if found else -1]
        assert seen == [("a", [0, 2])]
        assert numbers.table.frequencies.tolist() == [found, 0]
        assert numbers.table.idf.tolist() == [idf, 0.0]


def test_a_term_that_cannot_be_looked_up_is_an_error() -> None:
    with pytest.raises(KeyError, match="red"):
        backends.current().number_terms([["red"]], Numbers())
    with pytest.raises(KeyError, match="red"):
        backends.current().number_query(["red"], Numbers())


def test_a_query_that_grows_meanwhile_is_an_error() -> None:
    class Growing(Numbers):
        def __missing__(self, term: str) -> int:
            query.append("red")
            return -1

    query = ["red", "red"]
    with pytest.raises(RuntimeError, match="a query grew"):
        backends.current().number_terms([query], Growing())


def wrong(documents: Any, starts: Any) -> str | None:
    """Of three documents in blocks of two."""
    numbers = np.array(documents, np.uint16)
    return backends.current().find_wrong(numbers, np.array(starts, np.int64), 2, 3)


def decode(data: bytes, offsets: Any, numbers: Any) -> list[str] | None:
    strings = StringArrays(np.array(offsets, np.uint64), np.frombuffer(data, np.uint8))
    return backends.current().decode(strings, numbers)


def starts(count: int, width: int) -> TermArrays:
    return TermArrays(np.zeros((count, width), "i8"), np.zeros(count, "f4"), np.float32(0))


def table(**changed: Any) -> TermTable:
    """Two documents, both with the one term there is."""
    none = np.zeros(0, "u4")
    strings = StringArrays(np.array([0, 1], "u8"), np.frombuffer(b"a", np.uint8))
    documents, codes, high = np.arange(2, dtype="u2"), np.zeros(2, "u2"), np.zeros(0, "u2")
    places = np.array([zlib.crc32(b"a")], "u4"), np.array([0, 2], "u4")
    blocks = none, np.zeros((0, 0), "u4"), none, high
    postings = PostingsArrays(strings, *places, documents, codes, 1, 2, 65_536, *blocks)
    return term_table(postings, **changed)


def count(tokens: Any, counts: Any, terms: int) -> Any:
    return backends.current().count(np.array(tokens, "u4"), np.array(counts, "u4"), terms, 0, [])


def fill(terms: Any, documents: Any, targets: int = 0) -> None:
    codes = np.zeros(1, "u2")
    run = Run(np.array(terms, "u4"), np.ones(1, "u4"), np.array(documents, "u4"), codes, 0)
    blocks = np.zeros(targets, "i8"), np.zeros((0, 1), "u4"), np.zeros(0, "u2")
    target = PostingsTarget(np.zeros(1, "i8"), np.zeros(1, "u2"), codes, 1, *blocks)
    backends.current().fill(run, codes, target)


def scan(data: bytes, ends: Any, points: int = CODE_POINTS, least: int = 1) -> Any:
    scanner = backends.current().scanner
    if scanner is None:
        pytest.skip("this backend has no scanner")
    texts = Texts(np.frombuffer(data, np.uint8), np.array(ends, np.int64))
    return scanner.scan(texts, np.zeros(points, np.uint64), least, False, False, False, [])


def find_words(least: int = 1, points: int = CODE_POINTS, kind: Any = np.uint64) -> Any:
    return backends.current().find_words(FoldArrays(np.zeros(points, kind)), "a", least, True)


def expand(
    tokens: Any = (0,), counts: Any = (1,), plain: Any = (SEVERAL,), starts: Any = (0, 1)
) -> Any:
    scanner = backends.current().scanner
    if scanner is None:
        pytest.skip("this backend has no scanner")
    small = [np.array(one, "u4") for one in (tokens, counts, plain)]
    return scanner.expand(*small, np.array(starts, "i8"), np.zeros(1, "u4"))

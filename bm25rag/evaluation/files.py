"""Files of runs and judgements: TREC's formats, and BEIR's for judgements.

An error in a file is a ``ValueError`` whose message begins with ``file:line:``. Files whose names
end in ``.gz`` or ``.zst`` are unpacked.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path

from bm25rag.common.urls import from_home
from bm25rag.evaluation.measures import Qrels, Run, unrankable
from bm25rag.readers.decoding import numbered_lines
from bm25rag.readers.lines import fail

_BEIR_HEADER = ["query-id", "corpus-id", "score"]


# --- judgements -----------------------------------------------------------------------


def read_qrels(path: str | PathLike[str]) -> dict[str, dict[str, int]]:
    """Read judgements: TREC's ``qid 0 docid grade``, or BEIR's three columns with tabs.

    Repeated lines count once, of which a ``UserWarning`` tells. A ``ValueError`` says that a line
    does not fit the format, two grades of a document differ, or nothing is judged.
    """
    file = Path(from_home(path))
    qrels: dict[str, dict[str, int]] = {}
    seen: set[tuple[str, str]] = set()
    repeated = []
    for number, line in numbered_lines(file):
        if line.split("\t") == _BEIR_HEADER:
            continue
        query, document, grade = _judgement(file, number, line)
        above = qrels.setdefault(query, {}).setdefault(document, grade)
        if above != grade:
            what = f"document {document!r} of query {query!r}"
            fail(file, number, f"{what} is judged {above} above and {grade} here")
        if (query, document) in seen:
            repeated.append(number)
        seen.add((query, document))
    if not qrels:
        fail(file, None, "no judgements in it")
    if repeated:
        message = f"{file}: {len(repeated)} lines repeat others, the first is line {repeated[0]}"
        warnings.warn(message, stacklevel=2)
    return qrels


def _judgement(file: Path, number: int, line: str) -> tuple[str, str, int]:
    # Tabs first: ids in BEIR's files may contain spaces.
    columns = line.split("\t") if line.count("\t") == 2 else line.split()
    if len(columns) not in (3, 4):
        expected = "'qid 0 docid grade' (TREC) or 'qid<TAB>docid<TAB>grade' (BEIR)"
        fail(file, number, f"expected {expected}, found {len(columns)} columns")
    if len(columns) == 3 and "\t" not in line:
        fail(file, number, "expected tabs between the three columns of BEIR's qrels")
    query, document, grade = columns[0], columns[-2], columns[-1]
    try:
        return query, document, int(grade)
    except ValueError as cause:
        fail(file, number, f"the grade must be an integer, got {grade!r}", cause)


def write_qrels(path: str | PathLike[str], qrels: Qrels) -> None:
    """Write judgements: BEIR's three columns if the file's name ends in ``.tsv``, else TREC's.

    A ``ValueError`` names an id that is empty, has a NUL or, in TREC's ``qid 0 docid grade``, white
    space in it; in BEIR's, where ids may have spaces, a tab or a line break.
    """
    judged = [(query, id, grade) for query, grades in qrels.items() for id, grade in grades.items()]
    if Path(path).suffix == ".tsv":
        rows = (f"{_cell(query)}\t{_cell(id)}\t{grade}" for query, id, grade in judged)
        _write(path, ["\t".join(_BEIR_HEADER), *rows])
    else:
        rows = (
            f"{_field('query id', query)} 0 {_field('document id', id)} {grade}"
            for query, id, grade in judged
        )
        _write(path, rows)


def _cell(id: str) -> str:
    """Return an id that a column can hold: read again, it is the same."""
    if not {"\t", "\0"}.isdisjoint(id) or id.splitlines() != [id]:
        raise ValueError(f"id {id!r} is empty or has a tab, a line break or a NUL in it")
    return id


# --- runs -----------------------------------------------------------------------------


def read_run(path: str | PathLike[str]) -> dict[str, dict[str, float]]:
    """Read a run: ``qid Q0 docid rank score tag``, lines in any order; documents best first.

    If ranks contradict scores, the scores count, as in trec_eval, and a ``UserWarning`` says so. A
    ``ValueError`` says that a line does not fit the format, a score is NaN or infinite, a document
    occurs twice for a query, or there are none.
    """
    file = Path(from_home(path))
    rows: dict[str, dict[str, tuple[float, int]]] = {}
    for number, line in numbered_lines(file):
        query, document, rank, score = _result(file, number, line)
        results = rows.setdefault(query, {})
        if document in results:
            fail(file, number, f"document {document!r} of query {query!r} occurs twice")
        results[document] = score, rank
    if not rows:
        fail(file, None, "no results in it")
    crossed = [query for query, results in rows.items() if _ranks_contradict(results.values())]
    if crossed:
        message = f"{file}: ranks contradict scores for {len(crossed)} queries ({crossed[0]!r} ...)"
        warnings.warn(f"{message}; scores count, as in trec_eval", stacklevel=2)
    run = {}
    for query, results in rows.items():
        best = sorted(results.items(), key=lambda one: (-one[1][0], one[1][1]))
        run[query] = {document: score for document, (score, _) in best}
    return run


def _result(file: Path, number: int, line: str) -> tuple[str, str, int, float]:
    columns = line.split()
    if len(columns) not in (5, 6):  # some files omit the tag
        expected = "'qid Q0 docid rank score tag'"
        fail(file, number, f"expected {expected}, found {len(columns)} columns")
    query, _, document, rank, score = columns[:5]
    try:
        value = float(score)
    except ValueError as cause:
        fail(file, number, f"the score must be a number, got {score!r}", cause)
    if wrong := unrankable(value):
        fail(file, number, f"the score {wrong}: document {document!r} of query {query!r}")
    try:
        return query, document, int(rank), value
    except ValueError as cause:
        fail(file, number, f"the rank must be an integer, got {rank!r}", cause)


def _ranks_contradict(results: Iterable[tuple[float, int]]) -> bool:
    by_rank = [score for score, _ in sorted(results, key=lambda one: (one[1], -one[0]))]
    return by_rank != sorted(by_rank, reverse=True)


def write_run(path: str | PathLike[str], run: Run, tag: str = "bm25rag") -> None:
    """Write a run as ``qid Q0 docid rank score tag``, best first, scores with all digits.

    ``tag`` names the system. A ``ValueError`` names what ``run_lines`` refuses.
    """
    best = {query: sorted(run[query].items(), key=lambda pair: -pair[1]) for query in run}
    _write(path, (line for query in run for line in run_lines(query, best[query], tag)))


def run_lines(
    query: str, ranking: Iterable[tuple[str, float]], tag: str, first: int = 1
) -> Iterator[str]:
    """Yield the lines of one query in a run: ``qid Q0 docid rank score tag``.

    A ``ValueError`` names an id or a tag that is empty or has white space or a NUL in it, a query
    id that begins with a byte order mark, and a score that is NaN or infinite.
    """
    id, name = _field("query id", query), _field("tag", tag)
    for rank, (document, score) in enumerate(ranking, start=first):
        if wrong := unrankable(score):
            raise ValueError(f"the score of document {document!r} of query {query!r} {wrong}")
        yield f"{id} Q0 {_field('document id', document)} {rank} {float(score)!r} {name}"


def _field(kind: str, value: str) -> str:
    """Return a value that TREC's formats can hold: white space separates their fields.

    What has a NUL in it is no text to those who read it.
    """
    if value.split() != [value] or "\0" in value:
        message = f"{kind} {value!r} is empty or has white space or a NUL in it"
        raise ValueError(f"{message}, which TREC's formats cannot hold")
    if kind == "query id" and value.startswith("\ufeff"):  # as the first of a file, it would go
        raise ValueError(f"{kind} {value!r} begins with U+FEFF, which readers take for a mark")
    return value


def _write(path: str | PathLike[str], lines: Iterable[str]) -> None:
    # All lines first: an error leaves the file unchanged.
    text = "".join(f"{line}\n" for line in lines)
    Path(from_home(path)).write_text(text, encoding="utf-8", newline="\n")

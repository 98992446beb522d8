"""The Python code that finds what a view shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bm25rag.inspector.asked import PATIENCE, Asked
from bm25rag.inspector.desk import Desk, Side
from bm25rag.inspector.opened import OpenedIndex


def _called(function: str, *given: Any, **named: Any) -> str:
    """Return a call; arguments that are ``None`` are left out."""
    arguments = [repr(one) for one in given]
    arguments += [f"{name}={value!r}" for name, value in named.items() if value is not None]
    return f"{function}({', '.join(arguments)})"


def _opening(opened: OpenedIndex, side: Side, name: str = "index") -> list[str]:
    commit = side.saved.commit_id if side.settings.baseline else side.settings.commit
    call = _called(
        "BM25Index.open", opened.place, untrusted=opened.untrusted or None, commit=commit
    )
    lines = [f"{name} = {call}"]
    if opened.restrict is not None:
        own = None if opened.statistics == "whole" else opened.statistics
        call = _called(f"{name}.restricted", opened.restrict, statistics=own)
        lines.append(f"{name} = {call}")
    arguments = side.settings.arguments(side.saved)
    if arguments:
        lines.append(f"{name} = {_called(f'{name}.tune', **arguments)}")
    return lines


def query_call(asked: Asked, name: str = "index") -> str:
    """Return the question as a string, or the call that reads its signs."""
    if not asked.syntax:
        return repr(asked.question)
    return f"Query.parse({asked.question!r}, fields={name}.fields, timeout={PATIENCE!r})"


def program(desk: Desk, side: Side, asked: Asked, *lines: str, before: Sequence[str] = ()) -> str:
    """Return a program that opens the index as ``index``, after lines ``before``, and does more."""
    return _program(asked, *before, *_opening(desk.opened, side), *lines)


def _program(asked: Asked, *lines: str) -> str:
    names = "BM25Index, Query" if asked.syntax and "Query.parse" in "".join(lines) else "BM25Index"
    return "\n".join([f"from bm25rag import {names}", "", *lines, ""])


def search_call(asked: Asked, name: str = "index") -> str:
    """Return the call that finds the hits of a page."""
    offset = f", offset={asked.offset}" if asked.offset else ""
    filter = "" if asked.filter is None else f", filter={asked.filter!r}"
    return f"{name}.search({query_call(asked, name)}, k={asked.size}{filter}{offset})"


def analysis_code(desk: Desk, side: Side, asked: Asked) -> str:
    """Return a program that analyses the question and the document."""
    lines = [f"print(index.analyzer.query_terms({asked.question!r}))"]
    if asked.text is not None:
        lines.append(f"print(index.analyzer.terms({asked.text!r}))")
    elif asked.id is not None:
        lines += [
            f"for document in index.get([{asked.id!r}]):",
            "    print(index.analyzer.terms(document.text or ''))",
        ]
    return program(desk, side, asked, *lines)


def comparison_code(desk: Desk, a: Side, b: Side, asked: Asked) -> str:
    """Return a program that compares what both sides find."""
    return _program(
        asked,
        *_opening(desk.opened, a, "a"),
        *_opening(desk.opened, b, "b"),
        f"before = [hit.id for hit in {search_call(asked, 'a')}]",
        f"after = [hit.id for hit in {search_call(asked, 'b')}]",
        'print("gained:", [id for id in after if id not in before])',
        'print("lost:", [id for id in before if id not in after])',
    )


def judged_code(desk: Desk, side: Side) -> str:
    """Return a program that evaluates the index with the judgements."""
    name = "judged.tsv" if desk.judgements is None else str(desk.judgements.path)
    return "\n".join(
        [
            "from bm25rag import BM25Index",
            "from bm25rag.evaluation import evaluate, read_qrels, run_of",
            "",
            *_opening(desk.opened, side),
            f"qrels = read_qrels({name!r})",
            "queries = {id: id for id in qrels}  # or the texts that the ids stand for",
            'print(evaluate(run_of(index, queries, k=100), qrels, "nDCG@10").mean)',
            "",
        ]
    )

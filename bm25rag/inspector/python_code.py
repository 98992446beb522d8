"""The Python code that finds what a view shows."""

from __future__ import annotations

from typing import Any

from bm25rag.inspector.asked import PATIENCE, Asked
from bm25rag.inspector.desk import Side
from bm25rag.inspector.judgements import Judgements
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


def _query(asked: Asked, name: str = "index") -> str:
    if not asked.syntax:
        return repr(asked.question)
    return f"Query.parse({asked.question!r}, fields={name}.fields, timeout={PATIENCE!r})"


def _program(asked: Asked, *lines: str, imports: str = "BM25Index") -> str:
    names = f"{imports}, Query" if asked.syntax and "Query.parse" in "".join(lines) else imports
    return "\n".join([f"from bm25rag import {names}", "", *lines, ""])


def _search(asked: Asked, name: str = "index") -> str:
    offset = f", offset={asked.offset}" if asked.offset else ""
    filter = "" if asked.filter is None else f", filter={asked.filter!r}"
    return f"{name}.search({_query(asked, name)}, k={asked.size}{filter}{offset})"


def search_code(opened: OpenedIndex, side: Side, asked: Asked) -> str:
    """Return a program that finds the hits of a page."""
    return _program(
        asked,
        *_opening(opened, side),
        f"hits = {_search(asked)}",
        f"for rank, hit in enumerate(hits, {asked.offset + 1}):",
        "    print(rank, hit.id, hit.score)",
    )


def document_code(opened: OpenedIndex, side: Side, asked: Asked) -> str:
    """Return a program that explains the score of a document."""
    return _program(
        asked, *_opening(opened, side), f"print(index.explain({_query(asked)}, {asked.id or ''!r}))"
    )


def analysis_code(opened: OpenedIndex, side: Side, asked: Asked) -> str:
    """Return a program that analyses the question and the document."""
    lines = [*_opening(opened, side), f"print(index.analyzer.query_terms({asked.question!r}))"]
    if asked.text is not None:
        lines.append(f"print(index.analyzer.terms({asked.text!r}))")
    elif asked.id is not None:
        lines += [
            f"for document in index.get([{asked.id!r}]):",
            "    print(index.analyzer.terms(document.text or ''))",
        ]
    return _program(asked, *lines)


def comparison_code(opened: OpenedIndex, a: Side, b: Side, asked: Asked) -> str:
    """Return a program that compares what both sides find."""
    return _program(
        asked,
        *_opening(opened, a, "a"),
        *_opening(opened, b, "b"),
        f"before = [hit.id for hit in {_search(asked, 'a')}]",
        f"after = [hit.id for hit in {_search(asked, 'b')}]",
        'print("gained:", [id for id in after if id not in before])',
        'print("lost:", [id for id in before if id not in after])',
    )


def judged_code(
    opened: OpenedIndex, side: Side, asked: Asked, judgements: Judgements | None
) -> str:
    """Return a program that evaluates the index with the judgements."""
    name = "judged.tsv" if judgements is None else str(judgements.path)
    return "\n".join(
        [
            "from bm25rag import BM25Index",
            "from bm25rag.evaluation import evaluate, read_qrels, run_of",
            "",
            *_opening(opened, side),
            f"qrels = read_qrels({name!r})",
            "queries = {id: id for id in qrels}  # or the texts that the ids stand for",
            'print(evaluate(run_of(index, queries, k=100), qrels, "nDCG@10").mean)',
            "",
        ]
    )


def cost_code(opened: OpenedIndex, side: Side, asked: Asked) -> str:
    """Return a program that times a search."""
    return _program(
        asked,
        "from timeit import timeit",
        "",
        *_opening(opened, side),
        f"print(timeit(lambda: {_search(asked)}, number=100) / 100)",
    )


def term_code(opened: OpenedIndex, side: Side, asked: Asked) -> str:
    """Return a program that finds the documents of a term."""
    return _program(
        asked,
        *_opening(opened, side),
        f"for hit in index.search([{asked.term or ''!r}], k={asked.size}):",
        "    print(hit.id, hit.score)",
    )


def terms_code(opened: OpenedIndex, side: Side, asked: Asked) -> str:
    """Return a program that lists the most frequent terms."""
    return _program(
        asked,
        *_opening(opened, side),
        "terms = zip(index.document_frequencies().tolist(), index.vocabulary())",
        "for frequency, term in sorted(terms, reverse=True)[:20]:",
        "    print(frequency, term)",
    )


def health_code(opened: OpenedIndex, side: Side, asked: Asked) -> str:
    """Return a program that prints the counts and sizes."""
    return _program(
        asked,
        *_opening(opened, side),
        "for name, value in index.stats().items():",
        "    print(name, value)",
    )

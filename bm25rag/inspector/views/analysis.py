"""Analysis: how the question and a document become terms, side by side, and what is dropped."""

from __future__ import annotations

from itertools import islice
from typing import Any

from bm25rag.analysis import Analyzer
from bm25rag.analysis.steps import analysis_steps, not_words, why_no_word
from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.python_code import analysis_code

# How many characters of a text are analysed, and how many of its words are shown.
_CHARACTERS, _WORDS = 20_000, 2_000


def analysis_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return the words of the question and of a document, with what becomes of each."""
    side = desk.side(asked.settings)
    index, query = side.index, asked.query(side.index)
    question = query if isinstance(query, str) else query.as_text()
    texts: dict[str, str] = {}
    missing = None
    if asked.text is not None:
        texts = {"text": asked.text}
    elif asked.id is not None:
        documents = index.get([asked.id])
        if not documents:
            missing = f"There is no document with the id {asked.id!r}."
        elif documents[0].fields is not None:
            texts = documents[0].fields
        elif documents[0].text is not None:
            texts = {"text": documents[0].text}
        else:
            missing = "The text of this document is not stored; paste it to see its analysis."
    frequencies = _frequencies(index, question)
    weights = [1.0, *(weight for _, weight in index.analyzer.also)]
    pairs = zip(index.analyzer.analyses, weights, strict=True)
    return {
        "question": asked.question,
        "id": asked.id,
        "text": asked.text,
        "missing": missing,
        "analyses": [
            _analysis(own, number, weight, question, texts, frequencies)
            for number, (own, weight) in enumerate(pairs)
        ],
        "python": analysis_code(desk, side, asked),
    }


def _frequencies(index: Any, question: str) -> dict[tuple[int, str], int]:
    """Return in how many documents the terms of the question are, by analysis and term."""
    first = index.ids(k=1)
    if not first:
        return {}
    terms = index.explain(question, first[0]).terms
    return {(term.analysis or 0, term.term): term.document_frequency for term in terms}


def _analysis(
    analyzer: Analyzer,
    number: int,
    weight: float,
    question: str,
    texts: dict[str, str],
    frequencies: dict[tuple[int, str], int],
) -> dict[str, Any]:
    asked = _steps(analyzer, question, True)
    for step in asked["steps"]:
        if step["term"] is not None:
            step["df"] = frequencies.get((number, step["term"]), 0)
            if not step["df"]:
                step["reason"] = "in no document of the index"
    documents = {name: _steps(analyzer, text, False) for name, text in texts.items()}
    held = {step["term"] for one in documents.values() for step in one["steps"]} - {None}
    wanted = {step["term"] for step in asked["steps"]} - {None}
    return {
        "number": number,
        "weight": weight,
        "analyzer": repr(analyzer),
        "question": asked,
        "documents": documents,
        "shared": sorted(held & wanted),
    }


def _steps(analyzer: Analyzer, text: str, question: bool) -> dict[str, Any]:
    part = text[:_CHARACTERS]
    steps = analysis_steps(analyzer, part, question)
    dropped = not_words(analyzer, part)
    return {
        "steps": [step._asdict() for step in islice(steps, _WORDS)],
        "not_words": dropped[:_WORDS],
        "why_not": why_no_word(analyzer) if dropped else None,
        "whole": len(part) == len(text) and len(steps) <= _WORDS,
    }

"""Queries made from your own documents, for a first evaluation without judgements.

Each query comes from one document and asks for that document alone: known-item search. Such
queries have limits, which are reported with them. They share more words with their document than
people's queries do, which favours lexical retrieval; other documents that would answer as well
count as wrong; and documents that cannot be named briefly are not covered. Use them to compare
settings, and replace them by real queries as soon as you have some.
"""

from __future__ import annotations

import json
import random
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bm25rag.documents import Document

LIMITS = (
    "queries made from the documents themselves: they favour documents that share their words, "
    "and each has one known answer; use them to compare settings, not systems"
)
_FEWEST_WORDS, _MOST_WORDS = 2, 25
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
_SENTENCE = re.compile(r"(.+?[.!?。！？])(?:\s|$)", re.DOTALL)

Maker = Callable[[Document], str | None]


class KnownItems(NamedTuple):
    """Queries and judgements made from documents; ``source`` says how, and their limits.

    The id of a query is that of its document, which has the grade 1.
    """

    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    source: str


def from_heading(document: Document) -> str | None:
    """Return the title in the metadata, or the first Markdown heading, or ``None``."""
    title = document.metadata.get("title")
    if isinstance(title, str) and title.strip():
        return title
    heading = _HEADING.search(document.text or "")
    return heading[1] if heading else None


def from_first_sentence(document: Document) -> str | None:
    """Return the first sentence of the text, or its first words if the sentence is long."""
    text = _HEADING.sub("", document.text or "").strip()
    sentence = _SENTENCE.match(text)
    return " ".join((sentence[1] if sentence else text).split()[:_MOST_WORDS]) or None


def ask_model(url: str, model: str, key: str | None = None, timeout: float = 60.0) -> Maker:
    """Return a function that makes queries with a language model.

    It sends the texts of documents to the OpenAI-compatible endpoint whose base is ``url``, such as
    ``http://localhost:11434/v1``, with ``key`` as a bearer token if there is one, and waits
    ``timeout`` seconds for each answer. It raises a ``ConnectionError`` if the model cannot be
    asked, and a ``ValueError`` if what answers is not a chat model.
    """
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"

    def make(document: Document) -> str | None:
        prompt = (
            "Write one short question, in the language of the text, that somebody who does not "
            "know this text would ask and that it answers. Answer with the question alone.\n\n"
        )
        body = {
            "model": model,
            "temperature": 0,
            "messages": [{"role": "user", "content": prompt + (document.text or "")[:8000]}],
        }
        request = urllib.request.Request(
            f"{url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                parsed = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(200).decode("utf-8", "replace")
            message = f"{url}: the model's server answered {error.code}: {said}"
            raise ConnectionError(message) from error
        except (urllib.error.URLError, TimeoutError) as error:
            why = getattr(error, "reason", error)
            raise ConnectionError(f"{url}: the model cannot be asked: {why}") from error
        try:
            return str(parsed["choices"][0]["message"]["content"]).strip() or None
        except (KeyError, IndexError, TypeError) as cause:
            raise ValueError(f"{url}: not an answer of a chat model: {parsed!r:.200}") from cause

    return make


def known_items(
    documents: Iterable[Document], count: int = 200, maker: Maker | None = None, seed: int = 0
) -> KnownItems:
    """Make queries from documents, at most ``count`` of documents that are drawn at random.

    Parameters
    ----------
    documents
        Documents with texts. A query that several documents give is omitted: it names none.
    maker
        A function from a document to a query or ``None``: ``from_heading``,
        ``from_first_sentence``, the result of ``ask_model``, or your own. ``None`` for the
        heading or else the first sentence.

    Raises
    ------
    ValueError
        If no document gives a query.
    """
    pool = list(documents)
    random.Random(seed).shuffle(pool)
    make = maker or (lambda document: from_heading(document) or from_first_sentence(document))
    by_query: dict[str, str] = {}  # the document of each; "" if several give it
    lacking = count
    for document in pool:
        if maker is not None and lacking <= 0:
            break  # ask a model no more than needed
        query = " ".join((make(document) or "").split())
        if len(query.split()) >= _FEWEST_WORDS or not query.isascii():
            before = by_query.get(query)
            by_query[query] = document.id if before is None else ""
            lacking += bool(before) - bool(by_query[query])
    by_query.pop("", None)
    kept = [(id, query) for query, id in by_query.items() if id][:count]
    if not kept:
        raise ValueError("no document gives a query of two words or more")
    name = "headings and first sentences" if maker is None else getattr(maker, "__name__", "maker")
    return KnownItems(dict(kept), {id: {id: 1} for id, _ in kept}, f"{name}: {LIMITS}")

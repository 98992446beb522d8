"""Queries made from one's own documents, for a first look where nothing is judged yet.

Each query comes from one document and asks for that document alone: known-item search. What is
measured by them is limited, and is said with them: such queries share their words with the
document more than people's do, which flatters lexical retrieval; other documents that would
answer as well count as wrong; and nothing is learned of documents that cannot be named shortly.
Compare settings by them, and replace them by real queries as soon as there are some.
"""

from __future__ import annotations

import json
import random
import re
import urllib.request
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bm25rag.documents import Document

__all__ = [
    "LIMITS",
    "KnownItems",
    "ask_model",
    "from_first_sentence",
    "from_heading",
    "known_items",
]

LIMITS = (
    "queries made from the documents themselves: they favour documents that share their words, "
    "and one right answer is known for each; compare settings by them, not systems"
)
_FEWEST_WORDS, _MOST_WORDS = 2, 25
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
_SENTENCE = re.compile(r"(.+?[.!?。！？])(?:\s|$)", re.DOTALL)

Maker = Callable[[Document], str | None]


class KnownItems(NamedTuple):
    """Queries and judgements made from documents.

    Parameters
    ----------
    queries
        Texts by query id, which is the document's.
    qrels
        For each query its document, with grade 1.
    source
        How they were made, and with which limits.
    """

    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    source: str


def from_heading(document: Document) -> str | None:
    """Return the title in the metadata, or the first Markdown heading; ``None`` without."""
    title = document.metadata.get("title")
    if isinstance(title, str) and title.strip():
        return title
    found = _HEADING.search(document.text or "")
    return found[1] if found else None


def from_first_sentence(document: Document) -> str | None:
    """Return the first sentence of the text; its first words where none ends soon."""
    text = _HEADING.sub("", document.text or "").strip()
    found = _SENTENCE.match(text)
    return " ".join((found[1] if found else text).split()[:_MOST_WORDS]) or None


def ask_model(url: str, model: str, key: str | None = None, timeout: float = 60.0) -> Maker:
    """Return a maker of queries that asks a language model.

    Parameters
    ----------
    url
        Base of any OpenAI-compatible endpoint, such as ``http://localhost:11434/v1``. The
        documents' texts are sent there.
    model
        The model's name.
    key
        Sent as a bearer token, if given.
    timeout
        Seconds for each answer.
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
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            parsed = json.load(answer)
        try:
            return str(parsed["choices"][0]["message"]["content"]).strip() or None
        except (KeyError, IndexError, TypeError) as cause:
            raise ValueError(f"{url}: not the answer of a chat model: {parsed!r:.200}") from cause

    return make


def known_items(
    documents: Iterable[Document],
    count: int = 200,
    maker: Maker | None = None,
    seed: int = 0,
) -> KnownItems:
    """Make queries from documents.

    Parameters
    ----------
    documents
        They need texts. A query that several give is left out: it names none of them.
    count
        How many queries at most, of documents drawn by chance.
    maker
        From a document to a query or ``None``: ``from_heading``, ``from_first_sentence``,
        what ``ask_model`` returns, or your own. ``None`` is the offline default: the heading
        or else the first sentence.
    seed
        Of the draw.

    Returns
    -------
    made
        Queries, judgements, and what they are worth.

    Raises
    ------
    ValueError
        If no document gives a query.
    """
    pool = list(documents)
    random.Random(seed).shuffle(pool)
    make = maker if maker is not None else _offline
    found: dict[str, str] = {}  # the document by its query; "" where there are several
    for document in pool:
        if maker is not None and sum(map(bool, found.values())) >= count:
            break  # a model is asked no more than needed
        query = " ".join((make(document) or "").split())
        if len(query.split()) >= _FEWEST_WORDS or not query.isascii():
            found[query] = "" if query in found else document.id
    found.pop("", None)
    kept = [(id, query) for query, id in found.items() if id][:count]
    if not kept:
        raise ValueError("no document gives a query of two words or more")
    name = "headings and first sentences" if maker is None else getattr(maker, "__name__", "maker")
    return KnownItems(dict(kept), {id: {id: 1} for id, _ in kept}, f"{name}: {LIMITS}")


def _offline(document: Document) -> str | None:
    return from_heading(document) or from_first_sentence(document)

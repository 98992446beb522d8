"""What the examples take where no model is named: no key, no download, no model, no understanding.

``offline.haystack``, ``offline.langchain`` and ``offline.llamaindex`` are these functions in the
classes of each framework.
"""

from __future__ import annotations

import re
import zlib

from bm25rag import Analyzer

STAND_IN = "offline stand-in, no model"
_analyzer = Analyzer("english")


def embed(text: str) -> list[float]:
    """Count the trigrams of the words by their hash, in place of an embedding."""
    vector = [1e-9] * 256  # a cosine needs a length
    for word in re.findall(r"\w+", text.lower()):
        for start in range(len(word)):
            vector[zlib.crc32(f" {word} "[start : start + 3].encode()) % 256] += 1
    return vector


def score(question: str, passage: str) -> float:
    """Return how much the best sentence has of the question, in place of a cross-encoder."""
    return _overlap(question, _best_sentence(question, passage))


def answer(prompt: str) -> str:
    """Quote the best sentence of an instruction, passages and a question."""
    passages, _, question = prompt.partition("\n\n")[2].rpartition("Question: ")
    return f'"{_best_sentence(question, passages)}"'


def _best_sentence(question: str, text: str) -> str:
    sentences = re.split(r"(?<=[.!?])\s+|\n\s*\n|^#.*$", text, flags=re.MULTILINE)
    return max(sentences, key=lambda sentence: _overlap(question, sentence)).strip()


def _overlap(question: str, sentence: str) -> float:
    """Return the F1 of the terms of one in the other."""
    asked, said = {*_analyzer.query_terms(question)}, {*_analyzer.terms(sentence)}
    return 2 * len(asked & said) / (len(asked) + len(said) or 1)

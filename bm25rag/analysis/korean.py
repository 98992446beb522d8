"""Korean questions without what is only grammar in them, before words are cut into pairs.

Particles and the endings of questions are written behind a word without a space, so that their
pairs, "교에" in "학교에", would ask for other words with the same particle. Documents keep them.
"""

from __future__ import annotations

import unicodedata

from bm25rag.common.patterns import late_pattern

_QUESTION_WORDS = "무엇 누구 언제 어디 어느 어떤 어떻게 무슨 얼마나 얼마 왜 몇"
# Of verbs, and of the copula.
_ENDINGS = "인가요 인가 는가요 는가 나요 일까요 일까 습니까 입니까"
# Of topic, subject, object and possession; place, direction and means; "to" somebody; "and";
# "also", "only"; "from", "until".
_PARTICLES = "은 는 이 가 을 를 의 에 에서 로(?<!으로) 으로 에게 와 과 도 만 부터 까지"
# A letter of a word, or a quotation mark around it: for a class of Hangul alone, which this pattern
# has sixty times, ``re`` takes half a millisecond each.
_LETTER = r"[^\x00-\x7f]"


def _behind(grammar: str, least: int) -> str:
    """Return a pattern of what is behind at least so many letters.

    It begins with letters, for which ``re`` searches fastest.
    """
    return f"{grammar}(?<={_LETTER}{{{least + len(grammar.partition('(')[0])}}})"


_MAY_FOLLOW = "|".join(f"{_ENDINGS} {_PARTICLES}".split())
_QUESTIONS = [
    f"{word}(?<!{_LETTER}{{{len(word) + 1}}})(?:{_MAY_FOLLOW})?" for word in _QUESTION_WORDS.split()
]
# Before a particle three letters remain: in shorter words what looks like one is often the word's.
_GRAMMAR = late_pattern(
    f"(?:{'|'.join(_QUESTIONS)}"
    f"|{'|'.join(_behind(ending, 1) for ending in _ENDINGS.split())}"
    f"|{'|'.join(_behind(particle, 3) for particle in _PARTICLES.split())})(?![\uac00-\ud7a3])"
)
_WORD = late_pattern(r"\w")


def without_grammar(text: str) -> str:
    """Return a question without its question words, their endings, and particles of long words.

    One of nothing else stays as it is.

    Parameters
    ----------
    text
        Any string. What is returned is in Unicode's normal form C.
    """
    text = unicodedata.normalize("NFC", text)
    rest = _GRAMMAR.sub("", text)
    return rest if _WORD.search(rest) else text

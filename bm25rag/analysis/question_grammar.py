"""Questions without what is only grammar in them, before words are cut into pairs.

Where no spaces stand between words, or particles are written behind them, pairs of question words,
endings and particles, "么是" in "什么是" and "교에" in "학교에", would ask for other texts with the
same. Documents keep them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

from bm25rag.common.patterns import late_pattern

# Each alternative of a pattern begins with a letter, for which ``re`` searches fastest.

# Not in "geometry" (几何), "tea tables" (茶几), names and words with 哪, or "become" (成为).
_CHINESE_WORDS = (
    "什么样 什么 什麼樣 什麼 甚麼 怎么样 怎么 怎樣 怎样 怎麼樣 怎麼 如何 "
    "哪些 哪个 哪個 哪里 哪裡 哪裏 哪儿 哪兒 哪(?![吒咤怕]) "
    "为什么(?<![因认以成作称]为什么) 為什麼(?<![因認以成作稱]為什麼) "
    "為甚麼(?<![因認以成作稱]為甚麼) 为何(?<![因认以成作称]为何) 為何(?<![因認以成作稱]為何) "
    "多少 谁 誰 几(?<!茶几)(?=[个种年人次]) 幾(?<!茶幾)(?=[個種年人次])"
)
# Not of "taxi" (的士); and not "tweed" (毛呢, 花呢).
_CHINESE = "|".join(
    [f"{copula}{word}(?:是|的(?!士))?" for copula in ("是", "") for word in _CHINESE_WORDS.split()]
    + [rf"{end}(?=[?？。，\s]|$)" for end in ("吗", "嗎", "呢(?<![毛花]呢)")]
)

# Within others they stay: あいつ ("he"), などの ("such as"), うどん ("noodles"), ぶどう ("grapes"),
# いくら丼 (roe on rice), 何者 ("who", a novel), 幾何 ("geometry").
_JAPANESE_WORDS = (
    "どのように(?<!などのように)(?<!ほどのように) どのような(?<!などのような)(?<!ほどのような) "
    "どのくらい どれくらい どれぐらい どうやって どうすれば どうして どういう "
    "どう(?<![うぶ]どう)(?=です|でしょ|し[たまよ]|な[のりるんっ]) どこ(?<![うけなほ]どこ) "
    r"どれ(?<![いけなほも]どれ) どの(?<![うけなほ]どの)(?<!^のどの)(?<![\sがで、。はも]のどの) "
    "どんな(?<!うどんな)(?!ど) どちら 誰 なぜ(?<!んなぜ) 何故 "
    "いつ(?<![あこそど]いつ)(?![いきくけこつぶめも]|か(?![ら?？。])|ま(?!で)) "
    "いくつ(?!も)か? いくら(?![丼軍巻寿とのは]) 何(?<![一-龥]何)(?![か者])"
)
_JAPANESE_PARTICLES = (
    "から まで より とは には では へと は が を に で(?!す|しょ) と へ の(?!か|で) も"
)
# Of the copula and of verbs; か alone also ends words, as いるか ("dolphin") and めだか (a fish).
_JAPANESE_ENDINGS = (
    "でしょうか でしょう んですか ですか ますか ませんか ないか ましたか ましょうか だろうか "
    "のか(?<!ほのか) か(?<=たか)(?<![たゆ]たか) か(?<=うか)(?<![ゃゅょ]うか) "
    "か(?<=だか)(?<![はめ]だか) か(?<=るか)(?<![いは]るか)"
)
_MAY_FOLLOW_JAPANESE = "|".join(_JAPANESE_PARTICLES.split())
_JAPANESE = "|".join(
    [f"{word}(?:{_MAY_FOLLOW_JAPANESE})?" for word in _JAPANESE_WORDS.split()]
    + [rf"{ending}(?=[?？。!！、\s]|$)" for ending in _JAPANESE_ENDINGS.split()]
)

_KOREAN_WORDS = "무엇 누구 언제 어디 어느 어떤 어떻게 무슨 얼마나 얼마 왜 몇"
# Of verbs, and of the copula.
_KOREAN_ENDINGS = "인가요 인가 는가요 는가 나요 일까요 일까 습니까 입니까"
# Of topic, subject, object and possession; place, direction and means; "to" somebody; "and";
# "also", "only"; "from", "until".
_KOREAN_PARTICLES = "은 는 이 가 을 를 의 에 에서 로(?<!으로) 으로 에게 와 과 도 만 부터 까지"
# A letter of a word, or a quotation mark around it: for a class of Hangul alone, which this pattern
# has sixty times, ``re`` takes half a millisecond each.
_LETTER = r"[^\x00-\x7f]"


def _behind(grammar: str, least: int) -> str:
    """Return a pattern of what is behind at least so many letters."""
    return f"{grammar}(?<={_LETTER}{{{least + len(grammar.partition('(')[0])}}})"


_MAY_FOLLOW = "|".join(f"{_KOREAN_ENDINGS} {_KOREAN_PARTICLES}".split())
_KOREAN_QUESTIONS = [
    f"{word}(?<!{_LETTER}{{{len(word) + 1}}})(?:{_MAY_FOLLOW})?" for word in _KOREAN_WORDS.split()
]
# Before a particle three letters remain: in shorter words what looks like one is often the word's.
_KOREAN = (
    f"(?:{'|'.join(_KOREAN_QUESTIONS)}"
    f"|{'|'.join(_behind(ending, 1) for ending in _KOREAN_ENDINGS.split())}"
    f"|{'|'.join(_behind(particle, 3) for particle in _KOREAN_PARTICLES.split())})"
    "(?![\uac00-\ud7a3])"
)

_GRAMMAR: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "chinese": late_pattern(_CHINESE),
        "japanese": late_pattern(_JAPANESE),
        "korean": late_pattern(_KOREAN),
    }
)
# What is a letter to ``re`` and of no term by itself does not count.
_WORD = late_pattern("[^\\W_\u02bc\uff9e\uff9f]")


def without_grammar(language: str, text: str) -> str:
    """Return a question without question words, their endings, and, in Korean, some particles.

    One of nothing else stays as it is.

    Parameters
    ----------
    language
        "chinese", "japanese" or "korean".
    text
        Any string. What is returned is in Unicode's normal form C.
    """
    text = unicodedata.normalize("NFC", text)
    rest = _GRAMMAR[language].sub(" ", text)
    return rest if _WORD.search(rest) else text

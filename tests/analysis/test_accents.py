"""Accents: folded where they are decoration, kept where they make another letter."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from bm25rag import Analyzer, BM25Index, Query
from bm25rag.analysis import accents
from bm25rag.analysis.accents import fold_accents, fold_each
from bm25rag.analysis.languages import LANGUAGES, load_stopwords
from bm25rag.analysis.stemming import algorithm_of
from support.analysis import meets, skip_without_stemmer

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("french", "élèves", "eleves"),
        ("french", "cœur", "coeur"),
        ("spanish", "canción", "cancion"),
        ("italian", "città", "citta"),
        ("english", "naïve café", "naive cafe"),
        ("english", "ﬁle", "file"),
        ("german", "café", "cafe"),
        ("greek", "βιβλιοθήκη", "ΒΙΒΛΙΟΘΗΚΗ"),
        ("hindi", "ज़िन्दगी", "जिंदगी"),
        ("hindi", "हिन्दी", "हिंदी"),
        ("hindi", "माँ", "मां"),
        ("hebrew", "שָׁלוֹם", "שלום"),
        ("arabic", "كَتَبَ", "كتب"),
        ("arabic", "كت\u0640\u0640اب", "كتاب"),
        ("persian", "آشیل", "اشیل"),
        ("persian", "خانه\u0654", "خانۀ"),
        ("urdu", "كتاب", "کتاب"),
        ("english", "أحمد في مدرسة", "احمد فی مدرسه"),
    ],
)
def test_forms_that_differ_by_accents_meet(language: str, one: str, other: str) -> None:
    skip_without_stemmer(language)
    assert Analyzer(language).terms(one) == Analyzer(language).terms(other) != []
    assert meets(Analyzer(language), one, other)


UNACCENTED = {
    "bosnian": ("sljedeće učilište", "sljedece uciliste"),
    "croatian": ("žive životinje", "zive zivotinje"),
    "czech": ("žluťoučkého koně", "zlutouckeho kone"),
    "danish": ("grønne læsere", "gronne laesere"),
    "estonian": ("õunad köögis", "ounad koogis"),
    "finnish": ("hyvää yötä", "hyvaa yota"),
    "hungarian": ("árvíztűrő tükörfúró", "arvizturo tukorfuro"),
    "latvian": ("glāžšķūņa rūķīši", "glazskuna rukisi"),
    "lithuanian": ("lietuvių žuvis", "lietuviu zuvis"),
    "norwegian": ("blåbærsyltetøy", "blabaersyltetoy"),
    "polish": ("żółtych łódek", "zoltych lodek"),
    "romanian": ("mașină așteptată", "masina asteptata"),
    "serbian": ("лево ђубриво", "levo dubrivo"),
    "slovak": ("ďalších kôňov", "dalsich konov"),
    "slovenian": ("žabe čakajo", "zabe cakajo"),
    "swedish": ("rött äpple", "rott apple"),
}


@pytest.mark.parametrize("language", UNACCENTED)
def test_stems_meet_that_differ_by_accents_of_letters_of_their_own(language: str) -> None:
    skip_without_stemmer(language)
    text, typed = UNACCENTED[language]
    analyzer, number = Analyzer(language, stopwords=None), len(text.split())
    assert analyzer.terms(text) == analyzer.terms(typed)
    assert analyzer.query_terms(text) == analyzer.query_terms_of_each([typed, text])[0]
    assert "".join(analyzer.terms(text)).isascii()
    runs = Analyzer(None, ngrams=4)
    for index in (
        BM25Index.from_texts(["a", text], analyzer=analyzer),
        BM25Index.from_texts(["a", text], analyzer=Analyzer(language, also=[(runs, 0.1)])),
        BM25Index(analyzer, fields={"title": 2.0, "text": 1.0}),
    ):
        if not len(index):
            index.add([{"text": "a"}, {"text": text}])
        (hit,) = index.search(Query(typed, phrases=[typed]), k=1)
        assert len(hit.spans) == number
        assert hit.spans[-1].end == len(text)


def test_a_misspelt_word_without_accents_is_corrected() -> None:
    skip_without_stemmer("polish")
    index = BM25Index.from_texts(["żółte łódki", "a"], analyzer=Analyzer("polish"))
    assert index.correct("zolte lodkki").corrections == {"lodkk": "lodk"}


@pytest.mark.parametrize("language", UNACCENTED)
def test_other_stemmers_keep_accents(language: str) -> None:
    """As in indexes that were made before."""
    skip_without_stemmer(language)
    analyzer = Analyzer(language)
    saved = {**analyzer.to_dict(), "stemmer": algorithm_of(str(analyzer.stemmer))}
    text, typed = UNACCENTED[language]
    before = Analyzer.from_dict(saved)
    assert before.terms(text) != before.terms(typed)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("swedish", "får", "far"),
        ("german", "schön", "schon"),
        ("spanish", "año", "ano"),
        ("turkish", "açı", "aci"),
        ("finnish", "sääri", "saari"),
        ("danish", "rød", "rod"),
        ("hungarian", "kör", "kor"),
        ("polish", "sąd", "sad"),
        ("czech", "byt", "být"),
        ("russian", "мой", "мои"),
        ("ukrainian", "їх", "іх"),
        ("vietnamese", "má", "ma"),
        ("portuguese", "pão", "pao"),
        ("urdu", "آم", "ام"),
        ("arabic", "كرة", "كره"),
    ],
)
def test_letters_of_their_own_keep_their_accents(language: str, one: str, other: str) -> None:
    analyzer = Analyzer(language, stemmer=None, stopwords=None)
    assert analyzer.terms(one) != analyzer.terms(other)


def test_stop_words_are_folded_as_words_are() -> None:
    analyzer = Analyzer("french")
    assert "même" in load_stopwords("french")
    assert analyzer.terms("même meme MÊME velo") == analyzer.terms("velo") == ["velo"]
    assert Analyzer("french", fold_accents=False).terms("meme") == ["mem"]


@pytest.mark.parametrize(
    "word", ["", "'", "'t", "'s", "n't", "...", "_", "++", "1,", "\u0e48", "a b"]
)
def test_any_string_may_be_a_stop_word(word: str) -> None:
    analyzer = Analyzer(stopwords=[word, "red"], query_stopwords=[word], language=None)
    assert analyzer.terms("red boat") == analyzer.query_terms("red boat") == ["boat"]
    assert Analyzer.from_dict(analyzer.to_dict()) == analyzer


def test_accents_are_folded_where_the_documentation_says_so() -> None:
    kept = {one.name for one in LANGUAGES if not Analyzer(one.name, stemmer=None).fold_accents}
    assert kept == set(UNFOLDED)
    assert not Analyzer(language=None).fold_accents
    assert Analyzer("russian", fold_accents=True).terms("café") == ["cafe"]
    with pytest.raises(TypeError, match="fold_accents must be True, False or 'auto'"):
        Analyzer(fold_accents="yes")


UNFOLDED = [
    "armenian", "bengali", "bosnian", "bulgarian", "croatian", "czech", "hungarian",
    "icelandic", "irish", "latvian", "lithuanian", "macedonian", "polish", "romanian",
    "russian", "serbian", "slovak", "slovenian", "tamil", "telugu", "ukrainian", "vietnamese",
    "yiddish",
]  # fmt: skip


@pytest.mark.parametrize("words", [
    [], [""], ["\n"], ["é\né", "ü"], ["\u0301", "é"], ["e", "\u0301"], ["é", "\n\u0301", ""],
    ["ab"], ["Été", "œuvre", "\u0301\u0302", "हिन्दी", "\ud800é", "e\u0301", "\u1112\u1161"],
    ["\u11ab"], ["e\u0901", "\u0905\u0901"], ["\u0905\u0901", "e\u0901"], ["हिन्दी", "eन्द"],
])  # fmt: skip
def test_words_are_folded_together_as_each_alone(words: list[str]) -> None:
    assert fold_each(words, "é") == [fold_accents(word, "é") for word in words]


def test_words_of_marks_alone_do_not_part_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arabic texts have some, and to fold each word by itself took three times as long."""
    monkeypatch.setattr(accents, "fold_accents", calls := Mock(side_effect=fold_accents))
    assert fold_each(["\u0640\u0640", "\u0623\u0640\u0628", "\u064e"], "") == [
        *("\u0640\u0640", "\u0627\u0628", "\u064e")
    ]
    assert calls.call_count == 1

"""Languages: found by every name and code, with stop words, and an inflected query matches."""

from __future__ import annotations

import unicodedata
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from bm25rag.analysis import Analyzer
from bm25rag.analysis.languages import (
    LANGUAGES,
    STOPWORD_LISTS,
    Language,
    find_language,
    load_stopwords,
)
from bm25rag.analysis.snowball import algorithms
from bm25rag.analysis.stemming import algorithm_of
from tests.support.analysis import skip_without_stemmer

# Algorithms that no language has unless a user names them as `stemmer`.
STEMMERS_ONLY = {"porter", "dutch_porter", "persian"}

UNSTEMMED = [
    "afrikaans", "burmese", "galician", "hebrew", "icelandic", "khmer", "lao", "malay", "sorani",
    "swahili", "tagalog", "telugu", "thai", "urdu", "vietnamese",
]  # fmt: skip

LUCENE_ENGLISH = """
    a an and are as at be but by for if in into is it no not of on or such that
    the their then there these they this to was will with
"""

# Language: a document, an inflected query that it answers, a document that it does not.
# Query and document have no written word in common.
PAIRS = {
    "arabic": ("المكتبات العامة مفتوحة", "مكتبة", "الطقس بارد"),
    "armenian": ("Ուսանողները գնում են տուն", "ուսանողների", "Եղանակը ցուրտ է"),
    "basque": ("Liburutegiak egunero irekitzen dira", "liburutegia", "Eguraldi hotza egiten du"),
    "bengali": ("গ্রন্থাগারগুলো প্রতিদিন খোলা থাকে", "গ্রন্থাগারের", "আজ আবহাওয়া ঠান্ডা"),
    "bosnian": ("Biblioteke su otvorene svaki dan", "biblioteku", "Vrijeme postaje hladno"),
    "bulgarian": ("Библиотеките са отворени всеки ден", "библиотека", "Времето става студено"),
    "catalan": ("Les ciutats creixen cada dia", "ciutat", "Avui fa molt fred"),
    "chinese": ("北京大学的图书馆每天开放", "图书馆", "今天天气很冷"),
    "croatian": ("Knjižnice su otvorene svaki dan", "knjižnicama", "Vrijeme postaje hladno"),
    "czech": ("Nové knihovny otevřely v pondělí", "knihovnu", "Venku mrzne"),
    "danish": ("Bibliotekerne har åbent hver dag", "biblioteket", "Vejret bliver koldt"),
    "dutch": ("De bibliotheken zijn elke dag geopend", "bibliotheek", "Het weer wordt koud"),
    "english": ("The libraries were opened daily", "library opening", "The weather turns cold"),
    "esperanto": ("La bibliotekoj malfermiĝas ĉiutage", "bibliotekon", "La vetero malvarmas"),
    "estonian": ("Raamatukogud avati esmaspäeval", "raamatukogu", "Ilm läheb külmaks"),
    "finnish": ("Kirjastot ovat avoinna joka päivä", "kirjastossa", "Sää on tänään kylmä"),
    "french": ("Les bibliothèques ouvrent chaque jour", "bibliothèque", "Le temps devient froid"),
    "german": ("Die Häuser am Fluss wurden verkauft", "Haus", "Das Wetter wird kalt"),
    "greek": ("Οι βιβλιοθήκες ανοίγουν κάθε μέρα", "βιβλιοθήκη", "Ο καιρός γίνεται κρύος"),
    "hindi": ("शहर में कई किताबें बिक गईं", "किताब", "आज मौसम ठंडा है"),
    "hungarian": ("A könyvtárak minden nap nyitva vannak", "könyvtárban", "Az idő hideg lesz"),
    "indonesian": ("Mereka membaca setiap hari", "bacaan", "Cuaca menjadi dingin"),
    "irish": ("Sheas an cailín ag an bhfuinneog", "fuinneog", "Bhí an aimsir fuar"),
    "italian": ("Le biblioteche aprono ogni giorno", "biblioteca", "Il tempo diventa freddo"),
    "japanese": ("東京都の図書館は毎日開いています", "図書館で", "今日は寒いです"),
    "korean": ("도서관은 매일 열려 있습니다", "도서관에서", "오늘 날씨가 춥습니다"),
    "latvian": ("Bibliotēkas ir atvērtas katru dienu", "bibliotēkā", "Laiks kļūst auksts"),
    "lithuanian": ("Bibliotekos dirba kasdien", "biblioteką", "Oras bus šaltas"),
    "macedonian": ("Библиотеките се отворени секој ден", "библиотека", "Времето е студено"),
    "nepali": ("किताबहरू टेबुलमा छन्", "किताबलाई", "आजको मौसम चिसो छ"),
    "norwegian": ("Bibliotekene er åpne hver dag", "biblioteket", "Været blir kaldt"),
    "persian": ("کتابها روی میز هستند", "کتابهای", "هوا سرد است"),
    "polish": ("Biblioteki otwarto w poniedziałek", "bibliotekach", "Pogoda będzie zimna"),
    "portuguese": ("As bibliotecas abrem todos os dias", "biblioteca", "O tempo fica frio"),
    "romanian": ("Bibliotecile se deschid zilnic", "bibliotecilor", "Vremea devine rece"),
    "russian": ("Библиотеки открыты каждый день", "библиотеку", "Погода становится холодной"),
    "serbian": ("Библиотеке су отворене сваког дана", "biblioteku", "Време постаје хладно"),
    "sesotho": ("Ntate o rekile dikobo", "reka", "Ho a bata kajeno"),
    "slovak": ("Knižnice sú otvorené každý deň", "knižniciach", "Počasie bude chladné"),
    "slovenian": ("Knjižnice so odprte vsak dan", "knjižnico", "Vreme postaja hladno"),
    "spanish": ("Las bibliotecas abren todos los días", "biblioteca", "El tiempo se vuelve frío"),
    "swedish": ("Flickorna läser varje dag", "flicka", "Vädret blir kallt"),
    "tamil": ("நூலகங்கள் திறந்திருக்கும்", "நூலகம்", "வானிலை குளிர்கிறது"),
    # In Turkish, I lower-cases to ı: lower-cased as English it would be another word.
    "turkish": ("IŞIKLAR bütün gece yandı", "ışıkta", "Hava soğuk oluyor"),
    "ukrainian": ("Бібліотеки відкриті щодня", "бібліотеку", "Погода стає холодною"),
    "yiddish": ("די ביכער ליגן אויפֿן טיש", "טישן", "דאָס װעטער איז קאַלט"),
}

# Words that `\w` alone would split at vowel signs, viramas, points and joiners.
WHOLE_WORDS = {
    "hindi": "हिन्दी भाषा सुन्दर किताबें वर्षों ज़िन्दगी",
    "nepali": "नेपाली किताबहरू टेबुलमा छन् अर्थात् गर्‍यो",
    "bengali": "বাংলা ভাষা সুন্দর হয়েছে গ্রন্থাগার",
    "tamil": "தமிழ் மொழி நூலகங்கள் வணக்கம்",
    "telugu": "తెలుగు భాష గ్రంథాలయం",
    "arabic": "كَتَبَ الوَلَدُ الدَّرْسَ",
    "hebrew": "שָׁלוֹם עֲלֵיכֶם סֵפֶר",
    "yiddish": "ייִדישע שפּראַך דאָס",
}


def terms(language: str, text: str) -> set[str]:
    return set(Analyzer(language=language).terms(text))


def words(language: str, text: str) -> set[str]:
    plain = Analyzer(language=language, stopwords=None, stemmer=None, cjk=False)
    return set(plain.terms(text))


@pytest.mark.parametrize("language", PAIRS)
def test_inflected_query_finds_its_document_and_no_other(language: str) -> None:
    skip_without_stemmer(language)
    document, query, other = PAIRS[language]
    assert not words(language, query) & words(language, document)
    assert terms(language, query) & terms(language, document)
    assert not terms(language, query) & terms(language, other)


# A word, and the same in other cases, genders and numbers, and without accents that people leave
# out, by the stemmers that are ours.
INFLECTED = {
    "catalan": [
        "configuració configuracio configuracions configurar",
        "connexió connexio connexions",
    ],
    "czech": [
        "složka složky složce složku složkou slozka slozky slozce slozku slozkou",
        "nový nová nového novému nových novými novy nova noveho novemu novych novymi",
    ],
    "latvian": [
        "lietotājs lietotāja lietotājam lietotāju lietotāji lietotājiem lietotājos",
        "mape mapes mapei mapi mapē mapēm mapēs",
        "jauns jauna jaunam jaunu jaunais jaunajai jaunajā jaunajiem jaunajām",
        "meklēt meklēšana meklēšanas meklēšanu meklet meklesana meklesanas meklesanu",
    ],
    "polish": ["plik pliki plików plikow"],
    "portuguese": [
        "configuração configuracao configurações configuracoes configurar",
        "ordenação ordenacao ordenações ordenacoes ordenar",
        "cordão cordao",
        "cordões cordoes",
        "irmão irmao irmãos irmaos",
    ],
    "slovak": [
        "jazyk jazyka jazyku jazykom jazyky jazykov jazykoch",
        "databáza databázy databáze databázu databázou databázami databázach",
        "nový nová nové nového novému novým novej novú nových novými novych nove",
    ],
}


@pytest.mark.parametrize("language", INFLECTED)
def test_forms_of_a_word_are_one_term(language: str) -> None:
    skip_without_stemmer(language)
    analyzer = Analyzer(language)
    for forms in INFLECTED[language]:
        assert len({tuple(analyzer.terms(form)) for form in forms.split()}) == 1, forms


@pytest.mark.parametrize("language", ["bosnian", "croatian", "latvian", "slovak"])
def test_an_index_of_before_a_language_had_a_stemmer_has_none(language: str) -> None:
    skip_without_stemmer(language)
    saved = {**Analyzer(language).to_dict(), "stemmer": None}
    document = PAIRS[language][0]
    plain = Analyzer(language, stemmer=None)
    assert Analyzer.from_dict(saved).terms(document) == plain.terms(document)
    assert Analyzer(language).terms(document) != plain.terms(document)


@pytest.mark.parametrize("language", ["catalan", "latvian", "portuguese", "slovak"])
def test_an_index_of_before_accents_were_given_back_has_the_stems_that_it_had(
    language: str,
) -> None:
    skip_without_stemmer(language)
    analyzer = Analyzer(language)
    before = algorithm_of(str(analyzer.stemmer))
    saved = Analyzer.from_dict({**analyzer.to_dict(), "stemmer": before})
    forms = " ".join(INFLECTED[language]).split()
    assert saved.terms(" ".join(forms)) == Analyzer(language, stemmer=before).terms(" ".join(forms))
    assert any(saved.terms(form) != analyzer.terms(form) for form in forms)


def test_every_stemmed_language_and_every_bigram_language_has_its_pair() -> None:
    stemmed = {language.name for language in LANGUAGES if language.stemmer}
    assert stemmed | {"chinese", "japanese", "korean"} == set(PAIRS)


@pytest.mark.parametrize("language", WHOLE_WORDS)
def test_marks_inside_a_word_do_not_cut_it(language: str) -> None:
    text = WHOLE_WORDS[language]
    # A zero-width joiner after a virama shapes the letters and is not part of the word.
    expected = unicodedata.normalize("NFC", text).replace("\u200d", "").split()
    plain = Analyzer(language=language, stopwords=None, stemmer=None, fold_accents=False)
    assert plain.terms(text) == expected


def test_every_algorithm_of_the_installed_pystemmer_has_its_language() -> None:
    named = {language.stemmer or "" for language in LANGUAGES}
    covered = {*map(algorithm_of, named)} | STEMMERS_ONLY
    assert set(algorithms()) <= covered


def test_names_and_codes_are_lower_case_and_belong_to_one_language() -> None:
    keys = [key for language in LANGUAGES for key in (language.name, *language.codes)]
    assert len(keys) == len(set(keys))
    assert all(key == key.lower() for key in keys)
    assert [language.name for language in LANGUAGES] == sorted(set(PAIRS) | set(UNSTEMMED))


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_language_is_found_by_its_name_and_every_code(language: Language) -> None:
    for key in (language.name, *language.codes):
        assert find_language(key) is language
        assert find_language(key.upper()) is language


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("English", "english"),
        ("German", "german"),
        ("de-AT", "german"),
        ("pt-BR", "portuguese"),
        ("pt_br", "portuguese"),
        ("zh-Hans-CN", "chinese"),
        ("cmn", "chinese"),
        ("nb", "norwegian"),
        ("nn-NO", "norwegian"),
        ("sr-Latn", "serbian"),
        ("ger", "german"),
        ("gre", "greek"),
        (" fr ", "french"),
    ],
)
def test_case_and_region_do_not_matter(asked: str, name: str) -> None:
    assert find_language(asked).name == name


@pytest.mark.parametrize("asked", ["klingon", "", "-", "xx", "de'", "english german", "porter"])
def test_unknown_language_lists_those_there_are(asked: str) -> None:
    with pytest.raises(ValueError, match="language: expected a name or an ISO 639 code") as error:
        find_language(asked)
    assert repr(asked) in str(error.value)
    assert "german (de)" in str(error.value)
    assert "with language=None" in str(error.value)


@pytest.mark.parametrize("asked", [None, 1, b"de", ["de"]])
def test_language_must_be_a_string(asked: Any) -> None:
    with pytest.raises(TypeError, match="language: expected a str"):
        find_language(asked)


def test_a_stemmer_that_is_no_name_is_named() -> None:
    with pytest.raises(TypeError, match="stemmer must be one of"):
        Analyzer(stemmer=np.array(["english", "german"]))  # type: ignore[arg-type]


def test_there_are_stop_words_for_at_least_25_languages() -> None:
    assert sum(language.stopwords is not None for language in LANGUAGES) >= 25


def test_the_lists_are_the_files() -> None:
    folder = files("bm25rag.analysis").joinpath("stopwords")
    assert sorted(entry.name for entry in folder.iterdir()) == [f"{x}.txt" for x in STOPWORD_LISTS]


@pytest.mark.parametrize("name", STOPWORD_LISTS)
def test_stop_words_are_clean(name: str) -> None:
    listed = load_stopwords(name)
    assert len(listed) >= 33
    for word in listed:
        assert word == unicodedata.normalize("NFC", word)
        assert word == word.lower()
        assert word == "".join(word.split())
        assert word
        assert not word.startswith("#")


@pytest.mark.parametrize("name", STOPWORD_LISTS)
def test_a_file_names_source_and_licence_and_is_sorted(name: str) -> None:
    text = (
        files("bm25rag.analysis").joinpath("stopwords", f"{name}.txt").read_text(encoding="utf-8")
    )
    source, licence, _, *listed = text.splitlines()
    assert "Source: Apache Lucene" in source
    assert licence.startswith(("# Licence: Apache-2.0", "# Licence: BSD-3-Clause"))
    assert listed == sorted(load_stopwords(name))


def test_english_is_the_33_words_of_lucene() -> None:
    assert load_stopwords("english") == set(LUCENE_ENGLISH.split())
    assert len(load_stopwords("english")) == 33


def test_the_long_english_list_is_there_by_name() -> None:
    assert len(load_stopwords("english_long")) == 174
    assert "yourselves" in load_stopwords("english_long")


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("greek", {"της", "είναι", "ειναι", "ή", "αυτούς"}),
        ("persian", {"برای", "براي", "است", "آن", "که"}),
        ("romanian", {"şi", "și", "aţi", "ați"}),
        ("serbian", {"није", "nije"}),
    ],
)
def test_stop_words_are_listed_as_people_write_them(name: str, spellings: set[str]) -> None:
    assert spellings <= load_stopwords(name)


@pytest.mark.parametrize("name", ["klingon", "", "German", "../languages", "chinese"])
def test_unknown_stop_word_list_names_those_there_are(name: str) -> None:
    with pytest.raises(ValueError, match="stopwords: expected the name of a list") as error:
        load_stopwords(name)
    assert repr(name) in str(error.value)
    assert "english_long" in str(error.value)

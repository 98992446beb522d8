"""Settings come back as they were, those of version 0.1 too."""

from __future__ import annotations

import json
import pickle

import pytest

from bm25rag import Analyzer
from bm25rag.analysis import AUTO_0_1, PAPER
from bm25rag.analysis.languages import LANGUAGES

OLD_SETTINGS = {
    "language": "english", "token_pattern": "auto", "normalize": "NFC", "lowercase": True,
    "stopwords": ["the"], "stemmer": "english", "cjk": True, "tokenizer": None,
}  # fmt: skip


def test_settings_of_version_0_1_keep_their_meaning() -> None:
    analyzer = Analyzer.from_dict(OLD_SETTINGS)
    assert analyzer.token_pattern == AUTO_0_1
    text = "The C++ of John's café, how 3.5 猫が好 กรุงเทพ"
    assert analyzer.terms(text) == analyzer.query_terms(text)
    assert analyzer.terms(text) == [
        "of", "john", "café", "how", "猫が", "が好", "กรุงเทพ",
    ]  # fmt: skip
    assert analyzer.to_dict() == OLD_SETTINGS
    assert analyzer == Analyzer(token_pattern=AUTO_0_1, stopwords=["the"])


@pytest.mark.parametrize(
    "analyzer",
    [
        Analyzer(), Analyzer("thai"), Analyzer(None, cjk=False, query_stopwords=None),
        Analyzer(token_pattern=PAPER), Analyzer(token_pattern=AUTO_0_1, fold_accents=True),
        Analyzer(token_pattern=r"\w+", query_stopwords=["red"]), Analyzer(identifiers=True),
        Analyzer("french", fold_accents=False), Analyzer("ja", cjk_characters=False),
        Analyzer(southeast_asian=False), Analyzer("arabic", stemmer="arabic"),
    ],
)  # fmt: skip
def test_settings_come_back_from_json_and_from_pickle(analyzer: Analyzer) -> None:
    text = "What is the café C++ getName 猫が好 กรุง كتابات?"
    saved = json.loads(json.dumps(analyzer.to_dict()))
    for copy in (Analyzer.from_dict(saved), pickle.loads(pickle.dumps(analyzer))):
        assert copy == analyzer
        assert copy.to_dict() == saved
        assert copy.terms(text) == analyzer.terms(text)
        assert copy.query_terms(text) == analyzer.query_terms(text)
        assert repr(copy) == repr(analyzer)


@pytest.mark.parametrize("missing", ["query_stopwords", "identifiers", "fold_accents"])
def test_incomplete_settings_are_refused(missing: str) -> None:
    settings = Analyzer().to_dict()
    del settings[missing]
    with pytest.raises(ValueError, match="settings must have the keys"):
        Analyzer.from_dict(settings)


@pytest.mark.parametrize("language", [None, *sorted({one.name for one in LANGUAGES} - {"thai"})])
def test_an_index_of_version_0_1_has_the_analyzer_that_its_program_names(
    language: str | None,
) -> None:
    given = Analyzer(language, stemmer=None)
    old = {name: value for name, value in given.to_dict().items() if name in SETTINGS_0_1}
    pattern = Analyzer(language, stemmer=None, token_pattern=AUTO_0_1)
    old["stopwords"] = sorted(pattern.stopwords)
    then = Analyzer.from_dict(old)
    assert then.token_pattern == AUTO_0_1
    assert then.satisfies(given)
    assert given.satisfies(given)
    assert not given.satisfies(then)
    assert not then.satisfies(Analyzer(language, stemmer=None, stopwords=["other"]))
    assert not then.satisfies(Analyzer(language, stemmer="porter"))


def test_a_stemmer_that_has_become_another_is_still_the_one_that_was_named() -> None:
    old = Analyzer("arabic", token_pattern=AUTO_0_1, stemmer="arabic")
    assert old.satisfies(Analyzer("arabic"))
    assert not old.satisfies(Analyzer("arabic", stemmer=None))


SETTINGS_0_1 = [
    "language", "token_pattern", "normalize", "lowercase", "stopwords", "stemmer", "cjk",
    "tokenizer",
]  # fmt: skip

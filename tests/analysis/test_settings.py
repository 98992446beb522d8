"""Settings come back as they were."""

from __future__ import annotations

import json
import pickle

import pytest

from bm25rag import Analyzer
from bm25rag.analysis import PAPER


@pytest.mark.parametrize(
    "analyzer",
    [
        Analyzer(), Analyzer("thai"), Analyzer(None, cjk=False, query_stopwords=None),
        Analyzer(token_pattern=PAPER), Analyzer(token_pattern=PAPER, fold_accents=True),
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

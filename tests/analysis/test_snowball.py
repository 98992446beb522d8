"""PyStemmer and its stand-in in pure Python stem alike."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag.analysis.languages import LANGUAGES, load_stopwords
from bm25rag.analysis.snowball import library_name, snowball_version
from bm25rag.analysis.stemming import _ENDINGS, Stemmer, installed_stemmers

pytest.importorskip("snowballstemmer")

BARE = """
import sys
sys.modules["Stemmer"] = None
"""
STEMS = (
    BARE
    + """
from bm25rag.analysis.stemming import Stemmer
import json
asked = json.load(sys.stdin)
json.dump({name: Stemmer(name).stems(words) for name, words in asked.items()}, sys.stdout)
"""
)
ABSENT = (
    BARE
    + """
import tempfile
sys.modules["snowballstemmer"] = None
from bm25rag import Analyzer, BM25Index
from bm25rag.errors import MissingDependencyError
try:
    Analyzer(language="english")
except MissingDependencyError as error:
    print(error)
print(Analyzer(language="english", stemmer=None).terms("two words"))
index = BM25Index.from_texts(["сервери"], analyzer=Analyzer("ukrainian"))
with tempfile.TemporaryDirectory() as folder:
    index.save(folder + "/index")
    print(ascii(BM25Index.open(folder + "/index").search("сервером")[0].text))
"""
)
OLD = (
    BARE
    + """
import snowballstemmer
snowballstemmer.algorithms = lambda: ["english"]
from bm25rag import Analyzer
try:
    Analyzer(language="polish")
except ValueError as error:
    print(error)
"""
)


def said_by(script: str, given: str = "") -> str:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return done.stdout


# What to stem: the stop words and names of each algorithm's language, and what is no word of any.
def words_of(algorithm: str) -> list[str]:
    lists = [one.stopwords for one in LANGUAGES if one.stemmer == algorithm and one.stopwords]
    words = sorted(load_stopwords(lists[0] if lists else "english"))[::5]
    endings = ["", "ing", "ungen", "ement", "ская", "ları", "ων", "ات"]
    odd = ["", "a" * 300, "x\ud800y", "\ud800", "12", "naïve", "I'm", "a\0b", "👍"]
    return [word + ending for word in words for ending in endings] + odd


@pytest.mark.skipif(library_name() != "PyStemmer", reason="there is nothing to compare with")
def test_the_stand_in_stems_as_pystemmer_does() -> None:
    installed = version("snowballstemmer").split(".")[:2]
    if snowball_version().split(".")[:2] != installed:
        pytest.skip("both are of one version where they are installed together, but not here")
    asked = {name: words_of(name) for name in installed_stemmers()}
    assert json.loads(said_by(STEMS, json.dumps(asked))) == {
        name: Stemmer(name).stems(words) for name, words in asked.items()
    }


@pytest.mark.skipif(library_name() != "PyStemmer", reason="the stand-in allocates in Python")
def test_a_stemmer_for_which_there_is_no_memory_is_a_memory_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def starve(algorithm: str, size: int) -> None:  # as PyStemmer does where malloc fails
        raise KeyError(f"Stemming algorithm '{algorithm}' not found")

    monkeypatch.setattr("Stemmer.Stemmer", starve)
    with pytest.raises(MemoryError, match="no memory for PyStemmer's english"):
        Stemmer("english").stems(["running"])


def test_without_either_an_error_names_both_and_what_does_without() -> None:
    said = said_by(ABSENT).splitlines()
    assert "pip install PyStemmer, or snowballstemmer" in said[0]
    assert "stemmer=None" in said[0]
    assert said[1] == "['two', 'words']"
    assert said[2] == ascii("сервери")  # a light stemmer needs neither


def test_an_algorithm_that_the_stand_in_lacks_is_refused_with_its_name() -> None:
    assert f"the installed snowballstemmer is {version('snowballstemmer')}" in said_by(OLD)


LETTERS = {
    "arabic_light": "الوفبكهتأيةٱندـَ",
    **{name: "".join(one.pattern for one in ends) for name, ends in _ENDINGS.items()},
}


@pytest.mark.parametrize("name", LETTERS)
@given(data=st.data())
def test_words_are_stemmed_together_as_each_alone(name: str, data: st.DataObject) -> None:
    pieces = [*sorted({one for one in LETTERS[name] if one > "\x7f"}), "a", "\n", "ال", "ات", "لل"]
    words = data.draw(st.lists(st.lists(st.sampled_from(pieces), max_size=9).map("".join)))
    words += ["سياراتها", "کتابها", "والبيتكوين"]
    stemmer = Stemmer(name)
    alone = [stem for word in words for stem in stemmer.stems([word])]
    assert stemmer.stems(words) == alone
    assert [stemmer.of_words()(word) or word for word in words] == alone

"""PyStemmer and its stand-in in pure Python stem alike."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bm25rag.analysis.languages import LANGUAGES
from bm25rag.analysis.snowball import algorithms, library_name, snowball_version

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
sys.modules["snowballstemmer"] = None
from bm25rag import Analyzer
from bm25rag.errors import MissingDependencyError
try:
    Analyzer(language="english")
except MissingDependencyError as error:
    print(error)
print(Analyzer(language="english", stemmer=None).terms("two words"))
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

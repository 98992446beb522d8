"""Words as they are written: what a query finds, and what it must not, in a table."""

from __future__ import annotations

import pytest

from bm25rag import BM25Index

# What a document says, what is asked, and whether the document must be the first that is found.
PROBES = [
    # Hyphens, in the document, in the query, in neither.
    ("send an e-mail today", "email", True), ("send an email today", "e-mail", True),
    ("the e-mails were read", "email", True), ("free wi-fi upstairs", "wifi", True),
    ("free wifi upstairs", "wi-fi", True), ("a covid-19 ward", "covid19", True),
    ("a covid19 ward", "covid-19", True), ("an x-ray of a hand", "xray", True),
    ("an xray of a hand", "x-ray", True), ("a long-term plan", "long term", True),
    ("a long term plan", "long-term", True), ("the co-op shop", "coop", True),
    ("state-of-the-art methods", "state of the art", True),
    ("a pre\u2011war house", "prewar", True),
    ("a 20\u201130-year loan", "30-year", True), ("Baden-W\u00fcrttemberg wine", "baden", True),
    ("the years 12-15", "1215", False), ("call 555-1234", "5551234", False),
    ("a long-term plan", "termplan", False), ("a-b-c", "abc", False),
    # Letters and digits.
    ("a covid 19 ward", "covid19", True), ("a covid19 ward", "covid 19", True),
    ("windows 11 update", "windows11", True), ("windows11 update", "windows 11", True),
    ("16 GB of memory", "16GB", True), ("16GB of memory", "16 gb", True),
    ("an iPhone15 case", "iphone 15", True), ("type 2 diabetes", "type2", True),
    ("an MP3 player", "mp3", True), ("the 19th hole", "19", False),
    ("the p53 gene", "53", False), ("vitamin B12", "b12", True),
    ("certified to ISO 9001", "iso9001", True), ("sales in 2018", "FY2018 sales", True),
    # Numbers and versions.
    ("python 3.11.4 is out", "3.11", True), ("python 3.11 is out", "3.11.4", True),
    ("python 3.11.4 is out", "python3.11", True), ("python3.11 is out", "3.11", True),
    ("release v2.0", "2.0", True), ("release 2.0", "v2.0", True),
    ("at 192.168.1.1", "192.168", True), ("about 1,000 ships", "1000", True),
    ("python 3.11.4 is out", "3.1", False), ("pi is 3.14", "314", False),
    ("7.000.000 Einwohner", "7.000", False), ("version 13.11", "3.11", False),
    # Hosts, files, names with points.
    ("see docs.python.org for more", "docs.python.org", True),
    ("see docs.python.org for more", "python.org", True), ("written in Node.js", "nodejs", True),
    ("written in nodejs", "Node.js", True), ("ASP.NET pages", "aspnet", True),
    ("the file notes.txt", "notes.txt", True), ("a Ph.D. student", "phd", True),
    ("a PhD student", "Ph.D.", True), ("the U.S.A. team", "usa", True),
    ("the U.S.-led team", "US", True), ("by J.K. Rowling", "JK Rowling", True),
    ("it ends.Then more", "ends", True), ("a .NET app", ".net", True),
    ("def read_json_file(path):", "read a JSON file", True), ("call snake_case", "snake", True),
    ("call snake_case", "snakecase", False), ("the __init__ method", "init", True),
    ("the end. Start again", "endstart", False), ("see docs.python.org", "cspy", False),
    # Ampersands, apostrophes, signs.
    ("AT&T shares", "AT&T", True), ("AT&T shares", "att", True), ("the R&D unit", "r&d", True),
    ("a Q&A page", "qa", True), ("Conan O'Brien", "obrien", True),
    ("Conan OBrien", "O'Brien", True),
    ("we can't go", "cant", True), ("in C++ alone", "c++", True), ("in C# alone", "c#", True),
    ("in C++ alone", "c", False), ("salt & pepper", "saltpepper", False),
    # Emoji, and digits above and below the line.
    ("great \U0001f600", "\U0001f600", True), ("I \u2764\ufe0f it", "\u2764", True),
    ("rockets\U0001f680\U0001f680", "\U0001f680", True),
    ("coder \U0001f468\u200d\U0001f4bb", "\U0001f4bb", True),
    ("great \U0001f600", "\U0001f622", False), ("CO\u2082 levels", "co2", True),
    ("9 m\u00b2 of floor", "m2", True), ("10\u00b2 is more", "102", False),
    # Stop words.
    ("the Who played", "the who", True), ("to be or not to be", "to be or not to be", True),
]  # fmt: skip
OTHERS = [
    "a mail box and a ray of light", "fie and why", "no war before this house", "levels of water",
    "python pages about snakes and birds", "a team of students who sail", "plain text",
]  # fmt: skip


def test_there_are_eighty_six_probes() -> None:
    assert len(PROBES) == len(set(PROBES)) == 86


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("text", "query", "found"), PROBES)
def test_a_probe_is_found_or_not(text: str, query: str, found: bool) -> None:
    index = BM25Index.from_texts([*OTHERS, text], ids=[*map(str, range(len(OTHERS))), "it"])
    first = [hit.id for hit in index.search(query, k=1)]
    assert (first == ["it"]) == found, (
        index.analyzer.terms(text),
        index.analyzer.query_terms(query),
    )

"""Reading documents from files: good and bad input for each reader."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import Document
from bm25rag.readers import (
    Fields,
    Query,
    find_beir_corpus,
    find_files,
    read_csv,
    read_jsonl,
    read_lines,
    read_passages,
    read_queries,
    read_text,
)
from support.environment import collection


def write(name: str, content: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
    return path


# --- JSON lines -----------------------------------------------------------------

BEIR = """{"_id": "a", "title": "One", "text": "first", "year": 2020}

{"_id": 7, "title": "", "text": "second"}
"""


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz"])
def test_title_and_text_are_joined_by_a_space_and_the_rest_is_metadata(name: str) -> None:
    assert list(read_jsonl(write(name, BEIR))) == [
        Document("a", "One first", {"year": 2020}, None),
        Document("7", "second", {}, None),
    ]


def test_fields_can_be_named() -> None:
    line = {"url": "u", "head": "h", "body": "b", "lang": "en", "junk": 1}
    path = write("c.jsonl", json.dumps(line))
    (document,) = read_jsonl(path, Fields("url", ("head", "body"), ("lang", "absent")))
    assert document == Document("u", "h b", {"lang": "en"}, None)


def test_a_record_without_an_id_is_named_by_file_and_line() -> None:
    path = write("c.jsonl", '\n{"text": "x"}\n{"id": "y", "text": "x"}')
    assert [document.id for document in read_jsonl(path)] == ["c.jsonl#2", "y"]


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_text() -> None:
    path = write("c.jsonl", b'\xef\xbb\xbf{"id": "a", "text": "x"}\r\n{"id": "b", "text": "y"}\r\n')
    assert [document.text for document in read_jsonl(path)] == ["x", "y"]


def test_other_line_separators_do_not_end_a_line() -> None:
    path = write("c.jsonl", '{"id": "a", "text": "x\u2028y\x85z"}')
    assert [document.text for document in read_jsonl(path)] == ["x\u2028y\x85z"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "c.jsonl:2: invalid JSON at column 2"),
        ("[1]", "c.jsonl:2: expected a JSON object, got list"),
        ('{"id": "b", "text": NaN}', "c.jsonl:2: invalid JSON: NaN is not JSON"),
        ('{"id": "b", "n": ' + "9" * 5000 + "}", "c.jsonl:2: invalid JSON"),
        ("[" * 100_000, "c.jsonl:2: invalid JSON"),
        ('{"id": "b"}', "c.jsonl:2: no text field 'title' or 'text'; fields are ['id']"),
        ('{"id": "b", "text": null}', "c.jsonl:2: no text field"),
        ('{"id": "b", "text": 3}', "c.jsonl:2: text field 'text': expected a string, got int"),
        ('{"id": 1.5, "text": ""}', "c.jsonl:2: id field 'id': expected a string or an integer"),
        ('{"id": true, "text": ""}', "c.jsonl:2: id field 'id': expected a string or an integer"),
        ('{"id": null, "text": ""}', "c.jsonl:2: id field 'id': expected a string or an integer"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(line: str, complaint: str) -> None:
    path = write("c.jsonl", '{"id": "a", "text": "x"}\n' + line)
    with pytest.raises(ValueError, match="^" + re.escape(complaint)):
        list(read_jsonl(path))


def test_an_id_field_that_was_named_must_be_there() -> None:
    path = write("c.jsonl", '{"id": "a", "text": "x"}')
    with pytest.raises(ValueError, match=r"c\.jsonl:1: no id field 'url'"):
        list(read_jsonl(path, Fields("url")))


def test_bytes_that_are_not_utf8_are_named_by_file_and_line() -> None:
    path = write("c.jsonl", b'{"id": "a", "text": "x"}\n{"id": "b", "text": "\xff"}')
    with pytest.raises(ValueError, match=r"c\.jsonl:2: not UTF-8 text: byte 0xff"):
        list(read_jsonl(path))


@pytest.mark.parametrize("raw", [b"no gzip at all", gzip.compress(b"{}" * 999, mtime=0)[:-9]])
def test_a_damaged_archive_is_named(raw: bytes) -> None:
    Path("c.jsonl.gz").write_bytes(raw)
    with pytest.raises(ValueError, match=r"c\.jsonl\.gz: not a complete gzip file"):
        list(read_jsonl(Path("c.jsonl.gz")))


def test_a_dash_is_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b'{"text": "x"}\n{'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    documents = read_jsonl(Path("-"))
    assert next(documents).id == "<stdin>#1"
    with pytest.raises(ValueError, match="<stdin>:2: invalid JSON"):
        next(documents)


def test_a_beir_folder_is_known_by_its_corpus() -> None:
    assert find_beir_corpus(Path()) is None
    packed = write("b/corpus.jsonl.gz", BEIR)
    assert find_beir_corpus(Path("b")) == packed
    plain = write("b/corpus.jsonl", BEIR)
    assert find_beir_corpus(Path("b")) == plain


@pytest.mark.parametrize(
    ("name", "count"), [("scifact", 5183), ("xquad-ru", 240), ("cmrc2018-zh", 1104)]
)
def test_the_shared_collections_are_read_whole(name: str, count: int) -> None:
    folder = collection(name)
    corpus = find_beir_corpus(folder)
    assert corpus is not None
    documents = list(read_jsonl(corpus))
    assert len({document.id for document in documents}) == len(documents) == count
    assert len(list(read_queries(folder / "queries.jsonl"))) > 0


# --- plain text -----------------------------------------------------------------


def test_a_text_file_is_one_document() -> None:
    path = write("notes/a.txt", b"\xef\xbb\xbfone\r\ntwo\n")
    assert list(read_text(path)) == [
        Document("notes/a.txt", "one\ntwo\n", {"source": "notes/a.txt"}, None)
    ]


def test_a_text_file_can_be_a_document_a_line() -> None:
    path = write("a.txt", "one\n\n  \nfour\n")
    assert [(document.id, document.text) for document in read_lines(path)] == [
        ("a.txt#1", "one"),
        ("a.txt#4", "four"),
    ]


def test_a_text_file_that_is_not_utf8_is_named() -> None:
    path = write("a.txt", "fine\ngr\u00fcn".encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.txt:2: not UTF-8 text: byte 0xfc"):
        list(read_text(path))


# --- passages -------------------------------------------------------------------

GUIDE = """Before any heading.

# Guide

## Install ##
With pip.

Or with
conda.

```sh
# no heading

pip install it
```

### Linux
apt.

Use
===
Import it.

## Empty
"""


def test_markdown_is_cut_at_headings_but_not_inside_of_code() -> None:
    path = write("docs/guide.md", GUIDE)
    passages = list(read_passages(path))
    assert [passage.id for passage in passages] == [f"docs/guide.md#{n}" for n in range(1, 6)]
    assert [passage.metadata["heading"] for passage in passages] == [
        "",
        "Guide > Install",
        "Guide > Install > Linux",
        "Use",
        "Use > Empty",
    ]
    assert {passage.metadata["source"] for passage in passages} == {"docs/guide.md"}
    assert passages[0].text == "Before any heading."
    code = "```sh\n# no heading\n\npip install it\n```"
    assert passages[1].text == f"Guide > Install\n\nWith pip.\n\nOr with\nconda.\n\n{code}"
    assert passages[4].text == "Use > Empty"


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# One", "One"),
        ("#\tOne \t", "One"),
        ("## One ## ", "One"),
        ("# One \t#", "One"),
        ("# C#", "C#"),
        ("# One # #", "One #"),
        ("# #", "#"),
        ("#  ", ""),
    ],
)
def test_signs_that_close_a_heading_are_no_part_of_it(line: str, heading: str) -> None:
    (passage,) = read_passages(write("a.md", f"{line}\ntext"))
    assert passage.metadata["heading"] == heading


def test_every_word_of_a_file_is_in_a_passage() -> None:
    words = set(GUIDE.replace("#", " ").replace("=", " ").split())
    texts = " ".join(str(passage.text) for passage in read_passages(write("g.md", GUIDE), size=12))
    assert words <= set(texts.split())


def test_a_passage_says_where_in_its_file_it_begins() -> None:
    path = write("a.md", GUIDE)
    for size in (5, 20, 1000):
        for passage in read_passages(path, size):
            metadata = passage.metadata
            body = (passage.text or "").removeprefix(metadata["heading"]).lstrip("\n")
            first = body.split("\n")[0]
            assert GUIDE[metadata["offset"] :].startswith(first)
            assert GUIDE.count("\n", 0, metadata["offset"]) == metadata["line"] - 1


def test_the_end_of_a_line_counts_as_one_character_before_a_passage() -> None:
    unix, windows = write("a.md", GUIDE), write("b.md", GUIDE.replace("\n", "\r\n"))
    places = [
        [(one.metadata["line"], one.metadata["offset"]) for one in read_passages(path, 20)]
        for path in (unix, windows)
    ]
    assert places[0] == places[1]
    assert len(places[0]) > 2


def test_files_of_old_macs_are_read_as_others_are() -> None:
    unix = [*read_passages(write("a.md", GUIDE), 20, "guide")]
    assert [*read_passages(write("b.md", GUIDE.replace("\n", "\r")), 20, "guide")] == unix
    assert max(one.metadata["line"] for one in unix) > 5
    records = '{"id": "a", "text": "x"}\r\r{"id": "b", "text": "y"}\r{"text": "z"}'
    for encoding in ("utf-8-sig", "utf-16"):
        path = write("c.jsonl", records.encode(encoding))
        assert [one.id for one in read_jsonl(path)] == ["a", "b", "c.jsonl#4"]
        path = write("c.csv", 'id,text\ra,"x\ry"\rb,z\r'.encode(encoding))
        assert [(one.id, one.text) for one in read_csv(path)] == [("a", "x\ry"), ("b", "z")]
    with pytest.raises(ValueError, match=r"c.jsonl:3: "):
        [*read_jsonl(write("c.jsonl", '{"text": "x"}\r\r{"text"'))]
    # A bar of progress in a log does not end its lines.
    log = write("log.jsonl", '{"id": "a", "text":\r "x"}\n{"id": "b", "text": "y"}\n')
    assert [one.id for one in read_jsonl(log)] == ["a", "b"]


@given(st.text(st.sampled_from("ab# -=\n\t`"), max_size=80), st.integers(1, 20))
def test_what_a_passage_begins_with_is_where_it_says(text: str, size: int) -> None:
    for suffix in (".txt", ".md"):
        for passage in read_passages(write(f"a{suffix}", text), size):
            line, offset = passage.metadata["line"], passage.metadata["offset"]
            assert text.count("\n", 0, offset) == line - 1
            body = (passage.text or "")[len(passage.metadata["heading"]) :].lstrip("\n")
            if body:
                assert text[offset:].startswith(body.split("\n\n")[0])


def test_paragraphs_are_packed_up_to_the_size() -> None:
    path = write("a.txt", "\n\n".join(["x" * 40] * 5))
    assert [len(passage.text or "") for passage in read_passages(path, size=100)] == [82, 82, 40]


def test_a_long_paragraph_is_cut_at_white_space_or_hard() -> None:
    path = write("a.txt", "aaa bbb ccc dddddddddddd")
    assert [passage.text for passage in read_passages(path, size=8)] == [
        "aaa bbb",
        "ccc",
        "dddddddd",
        "dddd",
    ]


def test_signs_of_markdown_mean_nothing_in_a_text_file() -> None:
    path = write("a.txt", "# not a heading\ntext")
    (passage,) = read_passages(path)
    assert passage.text == "# not a heading\ntext"
    assert passage.metadata == {"source": "a.txt", "heading": "", "line": 1, "offset": 0}


def test_an_empty_file_has_no_passages() -> None:
    assert list(read_passages(write("a.md", "\n \n"))) == []


def test_a_paragraph_of_many_megabytes_is_cut_in_no_time() -> None:
    """Each split used to copy the rest: hours for a log of 50 MB without a blank line."""
    path = write("log.txt", "word " * 2_000_000)
    start = process_time()
    assert sum(1 for _ in read_passages(path)) == 10_000
    assert process_time() - start < 10


def test_a_line_of_signs_and_spaces_is_read_in_no_time() -> None:
    path = write("a.md", "#" + " " * 50_000 + "x" + " #" * 20_000 + "x\n# x" + " " * 50_000 + "y")
    start = process_time()
    assert list(read_passages(path))
    assert process_time() - start < 10


def test_a_name_takes_the_place_of_the_path() -> None:
    path = write("docs/guide.md", "# One\ntext")
    (passage,) = read_passages(path, name="guide.md")
    assert (passage.id, passage.metadata["source"]) == ("guide.md#1", "guide.md")
    (line,) = read_lines(write("docs/a.txt", "one"), "a.txt")
    assert (line.id, line.metadata) == ("a.txt#1", {"source": "a.txt"})


# --- folders --------------------------------------------------------------------


def test_a_folder_is_walked_in_order_and_what_is_hidden_is_left_out() -> None:
    for name in ("d/b.md", "d/a/z.txt", "d/A.MD", "d/c.py", "d/.git/x.md", "d/.y.md"):
        write(name, "x")
    write("d/node_modules/p/readme.md", "x")
    write("d/index/manifest.json", "x")
    found = [(one.name, one.problem) for one in find_files(Path("d"), Path("d/../d/index"))]
    assert found == [
        (".y.md", "hidden"),
        ("A.MD", None),
        ("b.md", None),
        ("c.py", None),
        (".git", "hidden"),
        ("index", "the index itself"),
        ("node_modules", "node_modules"),
        ("a/z.txt", None),
    ]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there, and there are no pipes")
def test_links_to_folders_broken_links_and_pipes_are_not_followed() -> None:
    write("d/a.md", "x")
    Path("d/loop").symlink_to("..")
    Path("d/self.md").symlink_to("self.md")
    Path("d/gone.md").symlink_to("nowhere.md")
    Path("d/there.md").symlink_to("a.md")
    os.mkfifo("d/pipe.md")
    found = {one.name: (one.problem, one.expected) for one in find_files(Path("d"))}
    assert found.pop("self.md")[1]
    assert found == {
        "a.md": (None, False),
        "there.md": (None, False),
        "gone.md": ("No such file or directory", True),
        "pipe.md": ("not a regular file", False),
        "loop": ("a link that leads out of the folder", False),
    }


# --- queries --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.jsonl", '{"_id": "a", "text": "one two"}\n{"_id": 2, "text": "three"}'),
        ("q", '{"_id": "a", "text": "one two", "metadata": {}}\n{"_id": 2, "text": "three"}'),
        ("q.tsv", "a\tone two\n\n2\tthree\n"),
        ("q.tsv.gz", "a\tone two\r\n2\tthree\r\n"),
    ],
)
def test_queries_are_json_lines_or_separated_by_tabs(name: str, content: str) -> None:
    assert list(read_queries(write(name, content))) == [Query("a", "one two"), Query("2", "three")]


def test_plain_queries_have_their_line_number_as_id() -> None:
    assert list(read_queries(write("q.txt", "one two\n\nthree\n"))) == [
        Query("1", "one two"),
        Query("3", "three"),
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a\tx\nno tab", "q:2: expected 'id<TAB>text', found no tab"),
        ("a\tx\n\na\ty", "q:3: query id 'a' is on line 1 already"),
        ('{"_id": "a"}', "q:1: a query has a field 'text', here fields are ['_id']"),
        ('{"_id": "a", "text": "x"}\nplain', "q:2: invalid JSON"),
    ],
)
def test_bad_queries_are_named_by_file_and_line(content: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(complaint)):
        list(read_queries(write("q", content)))

"""JSON arrays, CSV and TSV to documents."""

from __future__ import annotations

import re

import pytest

from bm25rag import Document
from bm25rag.readers import Fields, OtherContentError, read_csv, read_json, read_jsonl, read_tsv
from support.commands import write

# --- JSON arrays ----------------------------------------------------------------


def test_a_json_array_is_a_document_an_object() -> None:
    path = write(
        "a.json", '\ufeff[{"id": 7, "title": "One", "text": "x", "n": 1},\n {"text": "y"}]'
    )
    assert list(read_json(path)) == [Document("7", "One x", {"n": 1}), Document("a.json#2", "y")]


def test_fields_of_an_array_can_be_named() -> None:
    path = write("a.json", '[{"url": "u", "body": "b", "lang": "en", "junk": 1}]')
    fields = Fields("url", ("body",), ("lang",))
    assert list(read_json(path, fields)) == [Document("u", "b", {"lang": "en"})]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('[{"text": "x"},\n {"text": ]', "a.json:2: invalid JSON at column 11"),
        ("[1]", "a.json: item 1: expected a JSON object, got int"),
        ('[{"text": "x"}, {"id": "b"}]', "a.json: item 2: no text field 'title' or 'text'"),
        ("[NaN]", "a.json: invalid JSON: NaN is not JSON"),
        ("[" * 100_000, "a.json: invalid JSON"),
        ('{"version": 1}', "a.json: expected a JSON array of objects, got dict"),
    ],
)
def test_a_wrong_array_is_named_by_file_and_item(content: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(complaint)):
        list(read_json(write("a.json", content)))


def test_json_that_is_no_array_is_told_from_a_damaged_one() -> None:
    with pytest.raises(OtherContentError):
        list(read_json(write("package.json", "{}")))


# --- tables ---------------------------------------------------------------------

CSV = """id,title,text,year
a,One,first,2020

7,,"second, with a comma
and a line",2021
"""


def test_the_header_of_a_csv_file_names_the_fields() -> None:
    assert list(read_csv(write("a.csv", CSV))) == [
        Document("a", "One first", {"year": "2020"}),
        Document("7", "second, with a comma\nand a line", {"year": "2021"}),
    ]


def test_columns_can_be_named_and_a_row_without_an_id_is_named_by_its_first_line() -> None:
    path = write("a.csv", 'body,who,junk\n"one\ntwo",me,x\nthree,you\n')
    assert list(read_csv(path, Fields(None, ("body",), ("who", "junk")))) == [
        Document("a.csv#2", "one\ntwo", {"who": "me", "junk": "x"}),
        Document("a.csv#4", "three", {"who": "you"}),
    ]


def test_tsv_has_tabs_and_a_spreadsheet_may_have_semicolons() -> None:
    expected = [Document("1", "a, b", {"n": "2"})]
    assert list(read_tsv(write("a.tsv", "id\ttext\tn\r\n1\ta, b\t2\r\n"))) == expected
    assert list(read_csv(write("b.csv", "\ufeffid;text;n\r\n1;a, b;2\r\n"))) == expected
    assert list(read_csv(write("c.csv", 'id\ttext\tn\n1\t"a, b"\t2\n'))) == expected


def test_the_header_may_have_a_comma_where_semicolons_separate_and_the_other_way_round() -> None:
    expected = [Document("1", "a; b", {"price, net; in euro": "2,50"})]
    assert (
        list(read_csv(write("a.csv", 'id;text;"price, net; in euro"\n1;"a; b";2,50\n'))) == expected
    )
    assert (
        list(read_csv(write("b.csv", 'id,text,"price, net; in euro"\n1,a; b,"2,50"\n'))) == expected
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "a.csv: no header"),
        ("id,text,id\n", "a.csv:1: the header has 'id' twice"),
        ("id,text\n1,x,y\n", "a.csv:2: 3 cells, but the header has 2"),
        ("id,name\n1,x\n", "a.csv:2: no text field 'title' or 'text'; fields are ['id', 'name']"),
        ('id,text\n1,x\n2,"never ends\n3,y\n', "a.csv:3: unexpected end of data"),
        (b"id,text\n1,gr\xfcn\n", "a.csv:2: not UTF-8 text: byte 0xfc"),
    ],
)
def test_a_wrong_row_is_named_by_file_and_line(content: str | bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(complaint)):
        list(read_csv(write("a.csv", content)))


def test_quotes_in_tsv_are_as_they_stand() -> None:
    path = write("a.tsv", 'id\ttext\n1\t"Hello" she said\n2\t"never ends\n3\t"a ""b"""\n')
    assert [document.text for document in read_tsv(path)] == [
        '"Hello" she said',
        '"never ends',
        '"a ""b"""',
    ]


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (read_csv, "id,text\n,x\n \t,y\n7,z\n"),
        (read_tsv, "id\ttext\n\tx\n  \ty\n7\tz\n"),
        (read_jsonl, '\n{"id": "", "text": "x"}\n{"id": " ", "text": "y"}\n{"id": 7, "text": "z"}'),
    ],
)
def test_a_record_with_a_blank_id_is_named_by_its_line(read: type[read_csv], content: str) -> None:
    path = write("a", content)
    assert list(read(path)) == [Document("a#2", "x"), Document("a#3", "y"), Document("7", "z")]
    with pytest.raises(ValueError, match=r"^a:2: id field 'id' is blank$"):
        list(read(path, Fields(id="id")))


def test_a_record_with_one_blank_id_field_takes_the_other() -> None:
    path = write("a.csv", "_id,id,text\n,7,x\n")
    assert [document.id for document in read_csv(path)] == ["7"]


@pytest.mark.parametrize("name", ["_id", "id", "ID", "Id"])
@pytest.mark.parametrize(
    ("read", "content"),
    [
        (read_csv, "{},Text,n\n7,A red boat,1\n"),
        (read_tsv, "{}\tText\tn\n7\tA red boat\t1\n"),
        (read_jsonl, '{{"{}": 7, "Text": "A red boat", "n": "1"}}'),
    ],
)
def test_an_id_may_be_in_capitals(read: type[read_csv], content: str, name: str) -> None:
    assert list(read(write("a", content.format(name)))) == [Document("7", "A red boat", {"n": "1"})]


def test_beside_an_id_in_small_letters_capitals_are_metadata() -> None:
    path = write("a.csv", "ID,id,text\n1,7,x\n2,,y\n")
    assert list(read_csv(path)) == [
        Document("7", "x", {"ID": "1"}),
        Document("a.csv#3", "y", {"ID": "2"}),
    ]


# --- in a folder ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "content", "line"),
    [
        (read_csv, "id,text\n7,x\n", 2),
        (read_json, '[{"id": 7, "text": "x"}]', 1),
        (read_jsonl, '{"id": 7, "text": "x"}\n', 1),
    ],
)
def test_in_a_folder_the_files_name_begins_the_id_and_is_the_source(
    read: type[read_csv], content: str, line: int
) -> None:
    path = write("d/a", content)
    assert list(read(path, name="sub/a")) == [Document("sub/a#7", "x", {"source": "sub/a"})]
    without_id = write("d/b", content.replace("id", "_"))
    (document,) = read(without_id, name="sub/b")
    assert document.id == f"sub/b#{line}"


def test_a_source_that_a_record_has_itself_is_kept() -> None:
    path = write("a.csv", "text,source\nx,the web\n")
    (document,) = read_csv(path, name="a.csv")
    assert document.metadata == {"source": "the web"}

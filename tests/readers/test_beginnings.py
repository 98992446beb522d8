"""Files whose first bytes say little: blank lines, broken headers, packed documents."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from bm25rag.readers import read_csv, read_docx, read_lines
from bm25rag.readers.decoding import Tolerance

DOCUMENT = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    "<w:body><w:p><w:r><w:t>Red tea.</w:t></w:r></w:p></w:body></w:document>"
)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("begin", ["\n\n", "a\n", ""])
def test_utf_16_without_a_mark_is_told_by_more_than_the_first_line(
    tmp_path: Path, encoding: str, begin: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(f"{begin}some words here\n".encode(encoding))
    texts = [one.text for one in read_lines(path, "a", Tolerance(lenient=True))]
    assert texts == [*begin.split(), "some words here"]


def test_a_header_that_cannot_be_read_is_no_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,"te"xt\n1,hello there\n', "utf-8")
    with pytest.raises(ValueError, match=r"a\.csv:1: "):
        list(read_csv(path, tolerance=Tolerance(lenient=True)))


def test_a_packed_word_document_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", DOCUMENT)
    packed = tmp_path / "a.docx.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.docx").read_bytes()))
    assert [one.text for one in read_docx(packed)] == ["Red tea."]


@pytest.mark.parametrize("begin", ["\n", "\r\n\n", ""])
def test_semicolons_separate_below_blank_lines(tmp_path: Path, begin: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{begin}id;text\n1;red tea\n", "utf-8", newline="")
    (found,) = read_csv(path)
    assert (found.id, found.text) == ("1", "red tea")

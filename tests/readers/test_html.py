"""HTML pages to passages."""

from __future__ import annotations

import re
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag.readers import read_html
from bm25rag.readers.html_tokens import tokens
from support.cases import first
from support.commands import write
from support.timing import takes_linear_time

PAGE = """<!DOCTYPE html>
<html><head><title>Guide &mdash; Site</title><style>p { color: red }</style></head>
<body>
<nav><a href="/">Home</a></nav>
<h1>The <em>Guide</em></h1>
<p>First   paragraph, with <b>bold</b> and <a href="x">a link</a>.<br>Next line.
<h2>Tables &amp; code</h2>
<table><tr><th>name</th><th>value</th></tr><tr><td>one</td><td>1</td></tr></table>
<pre>
def f():
    return 1
</pre>
<script>alert("no text")</script><!-- nor this -->
<ul><li>apple<li>pear</ul>loose words
</body></html>"""


def test_a_page_is_cut_at_its_headings_and_paragraphs() -> None:
    first, second = read_html(write("page.html", PAGE))
    assert (first.id, second.id) == ("page.html#1", "page.html#2")
    assert first.metadata == {"source": "page.html", "heading": "The Guide"}
    assert first.text == ("The Guide\n\nFirst paragraph, with bold and a link. Next line.")
    assert second.metadata["heading"] == "The Guide > Tables & code"
    assert second.text == (
        "The Guide > Tables & code\n\nname value\n\none 1\n\n"
        "def f():\n    return 1\n\napple\n\npear\n\nloose words"
    )


def test_the_title_is_the_heading_of_a_page_that_has_none() -> None:
    page = "<title>All about tea</title><body><p>Water is boiled."
    (passage,) = read_html(write("tea.html", page), name="drinks/tea.html")
    assert passage.text == "All about tea\n\nWater is boiled."
    assert (passage.id, passage.metadata) == (
        "drinks/tea.html#1",
        {"source": "drinks/tea.html", "heading": "All about tea"},
    )


@pytest.mark.parametrize(
    "raw",
    [
        '<meta charset="iso-8859-1"><p>gr\u00fcn'.encode("latin-1"),
        '<?xml version="1.0" encoding="latin-1"?><html><p>gr\u00fcn</html>'.encode("latin-1"),
        "<p>gr\u00fcn".encode(),
        "\ufeff<p>gr\u00fcn".encode(),
        "<p>gr\u00fcn".encode("utf-16"),
        '<meta charset="utf-16"><p>gr\u00fcn'.encode(),
        '<meta http-equiv="Content-Type" content="text/html; charset=UTF-16LE">gr\u00fcn'.encode(),
        '<?xml version="1.0" encoding="utf-16"?><html><p>gr\u00fcn</html>'.encode(),
        '<meta charset="koi8-u"><p>gr\u00fcn'.replace("\u00fc", "&uuml;").encode(),
    ],
)
def test_a_page_is_decoded_as_it_declares_or_else_as_utf8(raw: bytes) -> None:
    (passage,) = read_html(write("a.html", raw))
    assert passage.text == "gr\u00fcn"


@pytest.mark.parametrize("declared", ["iso-8859-1", "latin1", "us-ascii", "windows-1252"])
def test_latin_1_is_windows_1252_as_browsers_have_it(declared: str) -> None:
    raw = b"<meta charset=%s><p>\x93gr\xfcn\x94 \x80 5" % declared.encode()
    (passage,) = read_html(write("a.html", raw))
    assert passage.text == "\u201cgr\u00fcn\u201d \u20ac 5"


@pytest.mark.parametrize(
    ("declared", "codec"),
    [("shift_jis", "cp932"), ("x-sjis", "cp932"), ("gb2312", "gbk"), ("big5", "big5"),
     ("euc-kr", "euc_kr"), ("euc-jp", "euc_jp"), ("iso-2022-jp", "iso2022_jp")],
)  # fmt: skip
def test_pages_from_east_asia_are_read(declared: str, codec: str) -> None:
    text = "\ud55c\uad6d" if codec == "euc_kr" else "\u5317\u4eac"
    raw = f"<meta charset={declared}><p>{text}".encode(codec)
    (passage,) = read_html(write("a.html", raw))
    assert passage.text == text


@pytest.mark.parametrize("declared", ["punycode", "idna", "utf-7", "unicode_escape", "rot13"])
def test_what_is_no_encoding_of_the_web_is_not_tried(declared: str) -> None:
    write("a.html", f"<meta charset={declared}><p>" + "b" * 400_000)
    start = process_time()
    complaint = f"a.html: cannot be read as {declared}, which the page declares: it is not used"
    with pytest.raises(ValueError, match="^" + re.escape(complaint)):
        list(read_html(Path("a.html")))
    assert process_time() - start < 5


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"<p>gr\xfcn", "a.html:1: not UTF-8 text"),
        (
            b"<meta charset=klingon><p>x",
            "a.html: cannot be read as klingon, which the page declares",
        ),
        (b"<meta charset=idna><p>\xff", "a.html: cannot be read as idna, which the page"),
        (b'<meta charset="utf-8"><p>\xff', "a.html: cannot be read as utf-8, which the page"),
    ],
)
def test_a_page_in_another_encoding_is_named(raw: bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(complaint)):
        list(read_html(write("a.html", raw)))


@pytest.mark.parametrize(
    ("page", "texts"),
    [("", []), ("no tags at all", ["no tags at all"]), ("a < b && c > d", ["a < b && c > d"])],
)
def test_a_page_need_not_be_written_well(page: str, texts: list[str]) -> None:
    assert [passage.text for passage in read_html(write("a.html", page))] == texts


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("a<![bad<p>x", "ax"),
        ("a<![if IE]>x<![endif]>", "ax"),
        ("<p>a<!-- > <b>no --!>b<!-->c<!--->d<!-- never closed <p>no", "abcd"),
        ("a<?php echo 1 ?>b<!DOCTYPE x [ > c", "ab c"),
        ("a<![CDATA[ no > ]]>b", "ab"),
        ("a</>b</ no>c</", "abc</"),
        ("a<b title='>' x=\"a'>b\" y=z/>c</b d='>'>d", "acd"),
        ('a<b =">no">c', 'ano">c'),
        ("a<b c='never closed>no", "a"),
        ("a <b no", "a"),
        ("<title>A <b> c</title>", "A <b> c"),
        ("<title>never closed<p>x", "never closed\n\nx"),
        ("<textarea><b>x</textareas></TEXTAREA >y", "<b>x</textareas>y"),
        ("<script>'</scripts>' <b></SCRIPT\n>x<style/>y<script/>z", "xyz"),
        ("<script>never closed <p>x", ""),
        ("AT&T &amp; &lt;b&gt; &#65;&#x42; &#0000000000000000067 &notin; &#" + "9" * 5000, None),
        ("<ruby>\u6f22<rp>(</rp><rt>kan</rt><rp>)</rp>\u5b57</ruby>", "\u6f22\u5b57"),
        ("<p>a<nav>no<p>no</nav>b</p></b></p>c", "ab\n\nc"),
    ],
)
def test_what_is_not_closed_or_not_right_is_read_as_the_standard_has_it(
    page: str, text: str | None
) -> None:
    expected = "AT&T & <b> AB C \u2209 \ufffd" if text is None else text
    passages = list(read_html(write("a.html", page)))
    assert [passage.text for passage in passages] == ([expected] if expected else [])


# Each is repeated; what stands before "..." is there once.
HOSTILE = [
    *("<a ", "</a ", "<a b='", "<a b=\"x'>", "<a ... x='y' ", "<a ... =", "<a ... / ", "<a ...  "),
    *(
        "<!--",
        "<!-- ... -",
        "<!",
        "<?",
        "<![CDATA[",
        "</",
        "<",
        "&",
        "&#",
        "&# ... 9",
        "&# ... 0",
        "&a",
    ),
    *(
        "<script>",
        "<style>",
        "<title>",
        "<textarea>",
        "<nav>",
        "<svg><title>",
        "<h1>",
        "<h1>x<h6>y",
    ),
    *("<div>", "<p><b>", "<b></p>", "<td>", "<br>", "<li><br/>", "<pre>\n", "<meta charset="),
]


@pytest.mark.parametrize("form", first(9, HOSTILE))
def test_hostile_pages_take_linear_time(form: str) -> None:
    once, _, unit = form.rpartition(" ... ")

    def read(size: int) -> None:
        for _ in read_html(write("a.html", once + unit * (size // len(unit)))):
            pass

    assert takes_linear_time(read, 15_000)


@given(st.lists(st.sampled_from([*HOSTILE, "'", '"', ">", "-->", "]]>", "x", "\n", "</title>"])))
def test_a_page_of_any_pieces_is_read(pieces: list[str]) -> None:
    page = "".join(pieces).replace(" ... ", "")
    shown = "".join(token for token in tokens(page) if isinstance(token, str))
    assert len(shown) <= len(page)


def test_a_heading_is_not_repeated_without_end() -> None:
    page = f"<h1>{'long ' * 10_000}</h1>" + "<h2>part</h2><p>text" * 1_000
    assert sum(len(passage.text) for passage in read_html(write("a.html", page))) < 100_000
    page = "".join(f"<h{n}>{'word ' * 100}</h{n}>" for n in range(1, 6)) + "<h6>part</h6>x" * 1_000
    assert sum(len(passage.text) for passage in read_html(write("a.html", page))) < 200_000


def test_tags_that_are_nested_without_end_are_no_trouble() -> None:
    start = process_time()
    (passage,) = read_html(write("a.html", "<div>" * 20_000 + "<b>" * 500 + "deep"))
    assert passage.text == "deep"
    assert process_time() - start < 20


@pytest.mark.parametrize(
    "tag", ["<p>", "<nav>", "<p><b>", "<td>", "<tr><td>", "<br>", "<li><br/>", "<script></script>"]
)
def test_tags_that_are_not_closed_are_no_trouble_either(tag: str) -> None:
    write("a.html", "<table>" + f"{tag}x" * 4_000)
    start = process_time()
    words = [word for passage in read_html(Path("a.html")) for word in passage.text.split()]
    assert process_time() - start < 4
    assert "".join(words) == ("" if tag == "<nav>" else "x" * 4_000)

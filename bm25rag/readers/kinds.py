"""Which kinds of files are read, and how each is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bm25rag import Document
from bm25rag.readers.arrow import read_arrow, read_parquet
from bm25rag.readers.decoding import STRICT, Tolerance
from bm25rag.readers.html_pages import read_html
from bm25rag.readers.jsonl import read_json, read_jsonl
from bm25rag.readers.lines import PACKED, suffix_of
from bm25rag.readers.notebooks import read_notebook
from bm25rag.readers.passages import PassageReader, read_passages
from bm25rag.readers.pdf import read_pdf
from bm25rag.readers.plain import read_lines, read_text
from bm25rag.readers.records import Fields, RecordReader, with_fields
from bm25rag.readers.tables import read_csv, read_tsv
from bm25rag.readers.word import read_docx

_ENDINGS = {
    "passages": (
        # prose
        "md markdown rst txt text log adoc org tex bib "
        # source code
        "py pyi pyx pxd ipy js mjs cjs jsx ts mts cts tsx vue svelte css scss sass less "
        "c h cc cpp cxx hh hpp hxx m mm cu cuh cs fs vb java kt kts scala groovy gradle clj cljs "
        "go rs swift zig d dart rb php pl pm lua r jl hs ml mli ex exs erl elm lisp el scm nim "
        "f f90 f95 pas ada adb ads asm s v sv vhd vhdl sol sh bash zsh fish ps1 bat cmd awk tcl "
        "sql graphql proto thrift cmake mk make nix tf hcl jinja j2 tmpl "
        # configuration
        "yaml yml toml ini cfg conf properties xml xsd xsl dtd service"
    ),
    "html": "html htm xhtml",
    "notebook": "ipynb",
    "pdf": "pdf",
    "docx": "docx",
    "csv": "csv",
    "tsv": "tsv",
    "json": "json",
    "jsonl": "jsonl ndjson",
    "parquet": "parquet",
    "arrow": "arrow arrows feather",
}
# How a file is read, by the ending of its name; .gz or .zst may follow.
KINDS = {f".{ending}": kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
# Names that say it without an ending, in small letters: text, split into passages.
NAMES = frozenset(
    (
        *("makefile", "gnumakefile", "dockerfile", "containerfile", "jenkinsfile", "vagrantfile"),
        *("rakefile", "gemfile", "procfile", "justfile", "brewfile", "pipfile", "readme"),
        *("license", "licence", "copying", "copyright", "notice", "authors", "contributors"),
        *("contributing", "credits", "maintainers", "thanks", "changelog", "changes", "history"),
        *("news", "todo", "install", "faq"),
        *("readme.debian", "news.debian", "changelog.debian", "todo.debian"),
    )
)

_RECORDS: dict[str, RecordReader] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
    "arrow": read_arrow,
}
_PASSAGES: dict[str, PassageReader] = {
    "html": read_html,
    "passages": read_passages,
    "notebook": read_notebook,
    "pdf": read_pdf,
    "docx": read_docx,
}
_PLAIN = {"text": read_text, "lines": read_lines}
FORMATS = (*_RECORDS, *_PASSAGES, *_PLAIN)


def kind_of(path: Path) -> str | None:
    """Return how a file is read, by its name; None if the name does not tell."""
    name = path.stem if path.suffix.lower() in PACKED else path.name
    return KINDS.get(suffix_of(path)) or ("passages" if name.lower() in NAMES else None)


def kind_alone(path: Path) -> str | None:
    """Return how a file is read that is given itself: a text as one document."""
    kind = kind_of(path)
    return "text" if kind == "passages" else kind


def kind_among(path: Path, format: str, is_wanted: bool) -> str | None:
    """Return how one of several files is read; None if it is left out.

    ``format`` is one of ``FORMATS``, or "auto": by the file's name. ``is_wanted`` says that a
    pattern names it; otherwise it is one of a folder, of which other kinds are left out.
    """
    if is_wanted and format != "auto":
        return format
    kind = kind_of(path)
    if format in _PLAIN:
        return format if kind == "passages" else None
    is_read = format in ("auto", kind) or (format == "passages" and kind == "html")
    return kind if is_read else None


def read_file(
    path: Path,
    kind: str,
    name: str,
    in_folder: bool,
    fields: Fields,
    passage_size: int,
    tolerance: Tolerance = STRICT,
) -> Iterator[Document]:
    """Read the documents of a file of a kind, one of ``FORMATS``; raise as the reader of the kind.

    ``name`` is the file's name in ids; those of its records begin with it if the file is one of a
    folder (``in_folder``). ``passage_size`` is the maximum of characters of a passage.
    """
    if kind in _RECORDS:
        return _RECORDS[kind](path, fields, name, not in_folder, tolerance)
    if kind in _PASSAGES:
        documents = _PASSAGES[kind](path, passage_size, name, tolerance)
    else:
        documents = _PLAIN[kind](path, name, tolerance)
    if fields.weighted is None:
        return documents
    return (with_fields(document, path, document.id, fields) for document in documents)

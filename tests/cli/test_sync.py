"""``sync``, ``delete`` and canonical ids: an index that mirrors a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bm25rag import BM25Index, Document
from bm25rag.cli.findings import Findings
from bm25rag.cli.sync import _Changes
from support.commands import fails, ok, run, write, write_jsonl
from support.timing import takes_linear_time

LONG = "# Guide\n\n## One\nfirst\n\n## Two\nsecond\n\n## Three\nthird\n"
COUNTS = "{} added, {} replaced, {} unchanged, {} deleted, {} skipped\n"


@pytest.fixture
def docs() -> Path:
    write("docs/guide.md", LONG)
    write("docs/sub/note.txt", "a note")
    write("docs/people.csv", "id,text\n7,Ada\n8,Grace\n")
    ok("index", "docs", "-o", "saved")
    return Path("docs")


def ids() -> list[str]:
    return sorted(BM25Index.open("saved").ids())


def synced(*words: object, code: int = 0) -> str:
    result = run("sync", "docs", "saved", *words)
    assert result.exit_code == code, result.output
    return result.stderr.rpartition(" s: ")[2]


def counts(*numbers: int, files: str = "0 files") -> str:
    return COUNTS.format(*numbers, files)


# --- ids ------------------------------------------------------------------------


def test_ids_are_paths_below_the_folder(docs: Path) -> None:
    assert ids() == [
        "guide.md#1",
        "guide.md#2",
        "guide.md#3",
        "people.csv#7",
        "people.csv#8",
        "sub/note.txt#1",
    ]
    assert BM25Index.open("saved").get(["sub/note.txt#1"])[0].metadata["source"] == "sub/note.txt"


@pytest.mark.parametrize(
    "spelt", ["docs", "./docs", "docs/", "docs//", "docs/sub/..", "other/../docs", "{}/docs"]
)
def test_ids_do_not_depend_on_how_the_path_was_spelt(docs: Path, spelt: str) -> None:
    write("other/x", "")
    before = BM25Index.open("saved").get(ids())
    spelt = spelt.format(Path.cwd())
    assert counts(0, 0, 6, 0) in ok("sync", spelt, "saved").stderr
    ok("index", spelt, "-o", "again")
    assert BM25Index.open("again").get(ids()) == before


def test_ids_are_the_same_from_within_the_folder(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(docs)
    assert counts(0, 0, 6, 0) in ok("sync", ".", "../saved").stderr


@pytest.mark.parametrize("spelt", ["a.txt", "./a.txt", "sub/../a.txt", "{}/a.txt"])
def test_a_file_that_stands_alone_is_called_by_its_name(spelt: str) -> None:
    write("a.txt", "one")
    write("sub/b", "")
    ok("index", spelt.format(Path.cwd()), "-o", "saved")
    assert ids() == ["a.txt"]
    assert BM25Index.open("saved").get(["a.txt"])[0].metadata == {"source": "a.txt"}


def test_records_without_ids_are_called_by_the_files_name_too() -> None:
    write_jsonl(Path("sub/c.jsonl"), [{"text": "one"}])
    ok("index", "sub/../sub/c.jsonl", "-o", "saved")
    assert ids() == ["c.jsonl#1"]


def test_names_of_files_in_two_folders_begin_at_their_common_root() -> None:
    write("a/README.md", "one")
    write("b/README.md", "two")
    ok("index", "a", "b", "-o", "saved")
    assert ids() == ["a/README.md#1", "b/README.md#1"]


# --- sync -----------------------------------------------------------------------


def test_an_index_follows_its_folder_and_the_changes_are_counted(docs: Path) -> None:
    assert synced() == counts(0, 0, 6, 0)
    write("docs/guide.md", LONG.replace("second", "wholly"))
    write("docs/new.txt", "new")
    Path("docs/sub/note.txt").unlink()
    assert synced() == counts(1, 1, 4, 1)
    index = BM25Index.open("saved")
    assert "sub/note.txt#1" not in index
    assert "wholly" in str(index.get(["guide.md#2"])[0].text)
    assert [hit.id for hit in index.search("second")] == []


def test_passages_behind_a_change_get_their_new_places(docs: Path) -> None:
    write("docs/guide.md", LONG.replace("first", "first\nof all", 1))
    before = BM25Index.open("saved").get(["guide.md#3"])[0].metadata
    assert synced() == counts(0, 3, 3, 0)
    after = BM25Index.open("saved").get(["guide.md#3"])[0].metadata
    assert after == before | {"line": before["line"] + 1, "offset": before["offset"] + 7}


def test_a_shortened_file_leaves_no_old_passages(docs: Path) -> None:
    write("docs/guide.md", "# Guide\n\n## One\nfirst\n")
    assert synced() == counts(0, 0, 4, 2)
    assert [id for id in ids() if id.startswith("guide")] == ["guide.md#1"]


def test_after_a_sync_the_index_equals_one_made_afresh(docs: Path) -> None:
    write("docs/guide.md", LONG.replace("first", "first of all"))
    write("docs/people.csv", "id,text\n8,Grace Hopper\n9,Ada\n")
    synced()
    ok("index", "docs", "-o", "fresh")
    one, other = BM25Index.open("saved"), BM25Index.open("fresh")
    assert one.get(ids()) == other.get(ids())
    assert len(one) == len(other)
    for query in ("first", "Ada Grace", "guide"):
        assert {(hit.id, hit.score) for hit in one.search(query)} == {
            (hit.id, hit.score) for hit in other.search(query)
        }


def test_a_value_that_python_calls_equal_is_a_change_all_the_same() -> None:
    write("docs/a.json", '[{"id": "a", "text": "x", "n": 1}]')
    ok("index", "docs", "-o", "saved")
    write("docs/a.json", '[{"id": "a", "text": "x", "n": true}]')
    assert synced() == counts(0, 1, 0, 0)
    assert BM25Index.open("saved").get(["a.json#a"])[0].metadata["n"] is True


def test_documents_that_are_not_from_the_folder_go(docs: Path) -> None:
    ok("add", "saved", "-", input='{"id": "other", "text": "from elsewhere"}')
    assert synced() == counts(0, 0, 6, 1)
    assert "other" not in ids()


def test_an_index_with_ids_of_another_kind_is_made_anew(docs: Path) -> None:
    """Earlier versions made ids from the path as given."""
    with BM25Index.open("saved", mode="w") as index:
        old = index.get(index.ids())
        index.delete(index.ids())
        for document in old:
            source = f"./docs/{document.metadata['source']}"
            index.add([document.text or ""], [f"./docs/{document.id}"], [{"source": source}])
    assert synced() == counts(6, 0, 0, 6)
    assert ids()[0] == "guide.md#1"


def files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path("saved").iterdir()}


def test_a_sync_without_changes_commits_nothing(docs: Path) -> None:
    synced()  # from here on the lock file exists
    before, reader = files(), BM25Index.open("saved")
    assert synced() == counts(0, 0, 6, 0)
    assert files() == before
    assert not reader.refresh()


def test_a_dry_run_counts_and_writes_no_file(docs: Path) -> None:
    write("docs/guide.md", "# Guide")
    before, reader = files(), BM25Index.open("saved")
    assert synced("--dry-run") == counts(0, 1, 3, 2)
    assert files() == before
    assert not reader.refresh()


def test_a_dry_run_needs_no_lock(docs: Path) -> None:
    write("docs/new.txt", "new")
    with BM25Index.open("saved", mode="w"):
        assert synced("--dry-run") == counts(1, 0, 6, 0)


def test_the_options_of_index_say_how_to_read(docs: Path) -> None:
    write("docs/people.csv", "name,about\nAda,a poet\n")
    assert run("sync", "docs", "saved").exit_code == 4
    words = ["--id-field", "name", "--text-field", "about", "--passage-size", 1000]
    assert synced(*words) == counts(1, 0, 4, 2)
    assert BM25Index.open("saved").get(["people.csv#Ada"])[0].text == "a poet"


def test_what_lies_beside_the_corpus_of_a_beir_folder_is_reported(docs: Path) -> None:
    write("docs/corpus.jsonl", '{"_id": "a", "text": "x"}')
    told = "Left out 3 paths (beside the corpus.jsonl of a BEIR folder): guide.md, people.csv, sub/"
    assert told in run("sync", "docs", "saved", "--dry-run").stderr


def test_the_index_may_lie_in_its_folder() -> None:
    write("docs/a.md", "one")
    ok("index", "docs", "-o", "docs/saved")
    result = ok("sync", "docs", "docs/saved")
    assert counts(0, 0, 1, 0) in result.stderr
    assert "Left out 1 path (the index itself): saved" in result.stderr


# --- what cannot be read --------------------------------------------------------


def test_documents_of_a_file_that_cannot_be_read_stay(docs: Path) -> None:
    write("docs/guide.md", b"a\0b")
    write("docs/new.txt", "new")
    assert synced(code=4) == counts(1, 0, 3, 0, files="1 file")
    assert [id for id in ids() if id.startswith("guide")] == [
        "guide.md#1",
        "guide.md#2",
        "guide.md#3",
    ]
    assert "docs/guide.md:1: not a text" in run("sync", "docs", "saved").stderr


def test_documents_of_a_folder_that_cannot_be_looked_into_stay(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert synced(code=4) == counts(0, 0, 5, 0, files="1 file")
    assert "sub/note.txt#1" in ids()


def test_documents_of_another_file_whose_name_begins_like_one_that_cannot_be_read_go() -> None:
    write("docs/n.md", "one")
    write("docs/n.md#x.md", "two")
    ok("index", "docs", "-o", "saved")
    write("docs/n.md", b"a\0b")
    write("docs/z.md", "three")
    Path("docs/n.md#x.md").unlink()
    assert synced(code=4) == counts(1, 0, 0, 1, files="1 file")
    assert ids() == ["n.md#1", "z.md#1"]


def test_records_with_a_source_of_their_own_stay_if_their_file_cannot_be_read() -> None:
    write("docs/a.csv", "id,text,source\n1,x,web\n")
    write("docs/b.md", "one")
    ok("index", "docs", "-o", "saved")
    write("docs/a.csv", b"id,text\0\n1,x\n")
    assert synced(code=4) == counts(0, 0, 1, 0, files="1 file")


def test_on_error_stop_changes_nothing(docs: Path) -> None:
    before = ids()
    write("docs/new.txt", "new")
    write("docs/sub/note.txt", b"gr\xfcn")
    fails(3, "docs/sub/note.txt:1: not UTF-8", "sync", "docs", "saved", "--on-error", "stop")
    assert ids() == before


def test_an_empty_folder_does_not_empty_the_index(docs: Path) -> None:
    """The folder may be on a disk that is not mounted."""
    Path("empty").mkdir()
    before = ids()
    fails(3, "empty: no file is of a kind that is read", "sync", "empty", "saved")
    fails(3, "gone: No such file", "sync", "gone", "saved")
    fails(3, "docs/guide.md: Not a directory", "sync", "docs/guide.md", "saved")
    assert ids() == before


def test_a_file_with_an_id_twice_is_skipped_and_its_documents_stay(docs: Path) -> None:
    before = ids()
    write("docs/people.csv", "id,text\n7,Ada\n7,Grace\n")
    write("docs/new.txt", "new")
    complaint = "docs/people.csv: the id 'people.csv#7' occurs twice; ids must differ"
    fails(3, complaint, "sync", "docs", "saved", "--on-error", "stop")
    assert ids() == before
    assert f"Skipped {complaint}" in run("sync", "docs", "saved", "--dry-run").stderr
    assert synced(code=4) == counts(1, 0, 4, 0, files="1 file")
    assert ids() == sorted([*before, "new.txt#1"])


def test_what_has_gone_beside_skipped_files_is_found_in_linear_time() -> None:
    def find(size: int) -> None:
        ids = [f"{number}.csv#1" for number in range(size)]
        index = BM25Index.from_texts([["red"]] * (size + 1), ids=[*ids, "folder/a.csv#1"])
        findings = Findings()
        findings.skipped = dict.fromkeys(["folder", *(f"of/{n}.csv" for n in range(size))], "")
        changes = _Changes(index, SimpleNamespace(findings=findings))  # type: ignore[arg-type]
        assert changes._gone() == ids

    assert takes_linear_time(find, 1_000)


def test_an_id_that_two_files_have_changes_nothing(docs: Path) -> None:
    before = ids()
    write("docs/people.csv", "id,text\nx.md#1,Ada\n")
    write("docs/people.csv#x.md", "Grace")
    fails(3, "the id 'people.csv#x.md#1' occurs twice in the folder", "sync", "docs", "saved")
    assert ids() == before


_KILLED = """
import os, sys
from bm25rag import BM25Index
from bm25rag.cli import main

def die(self, ids):
    os._exit(9)

BM25Index.delete = die
main(["sync", "docs", "saved"])
"""


def test_a_crash_before_the_end_leaves_the_index_as_it_was(docs: Path) -> None:
    before = BM25Index.open("saved").get(ids())
    write("docs/guide.md", "# Guide\n\nrewritten")
    write("docs/new.txt", "new")
    assert subprocess.run([sys.executable, "-c", _KILLED], check=False).returncode == 9
    BM25Index.verify("saved")
    assert BM25Index.open("saved").get(ids()) == before
    assert synced() == counts(1, 1, 3, 2)


# --- delete ---------------------------------------------------------------------


def test_delete_takes_a_filter(docs: Path) -> None:
    result = ok("delete", "saved", "--filter", '{"heading": {"$startswith": "Guide > T"}}')
    assert result.stderr == "Deleted 2 documents from saved.\n"
    assert [id for id in ids() if id.startswith("guide")] == ["guide.md#1"]


@pytest.mark.parametrize(
    ("sources", "left"),
    [
        (["guide.md"], ["people.csv#7", "people.csv#8", "sub/note.txt#1"]),
        (["./sub/../guide.md"], ["people.csv#7", "people.csv#8", "sub/note.txt#1"]),
        (["sub"], ["guide.md#1", "guide.md#2", "guide.md#3", "people.csv#7", "people.csv#8"]),
        (["sub/", "guide.md"], ["people.csv#7", "people.csv#8"]),
        (["people.csv", "sub/note.txt", "guide.md"], []),
    ],
)
def test_delete_takes_a_file_or_a_folder(docs: Path, sources: list[str], left: list[str]) -> None:
    ok("delete", "saved", *[word for source in sources for word in ("--source", source)])
    assert ids() == left


def test_a_source_is_found_as_it_is_spelt_too() -> None:
    spelt = ["./docs/a.md", "./docs/b/c.md", "https://site//page", "docs2/a.md"]
    index = BM25Index()
    index.add_documents([Document(source, "x", {"source": source}) for source in spelt])
    index.save("saved")
    ok("delete", "saved", "--source", "https://site//page")
    assert ids() == ["./docs/a.md", "./docs/b/c.md", "docs2/a.md"]
    ok("delete", "saved", "--source", "./docs/")
    assert ids() == ["docs2/a.md"]


def test_a_source_is_no_prefix_of_another(docs: Path) -> None:
    before = ids()
    result = ok("delete", "saved", "--source", "guide", "--source", "su")
    assert result.stderr.startswith("Deleted 0 documents from saved.\nSources are paths below")
    assert ids() == before


@pytest.mark.parametrize(
    "words", [[], ["guide.md#1", "--source", "sub"], ["--filter", "{}", "--source", "sub"]]
)
def test_delete_takes_one_of_its_three_ways(docs: Path, words: list[str]) -> None:
    before = ids()
    fails(2, "give either ID... or --filter JSON or --source PATH", "delete", "saved", *words)
    fails(2, "Error: --filter at", "delete", "saved", "--filter", '{"$and": 1}')
    assert ids() == before


def test_an_empty_filter_deletes_nothing(docs: Path) -> None:
    before = ids()
    fails(2, "--filter {} would delete every document", "delete", "saved", "--filter", " {} ")
    assert ids() == before


def test_delete_by_id_is_as_it_was(docs: Path) -> None:
    assert ok("delete", "saved", "guide.md#1", "x").stderr == (
        "Deleted 1 of 2 documents from saved.\n"
    )
    document = Document("-dash", "text")
    with BM25Index.open("saved", mode="w") as index:
        index.add_documents([document])
    ok("delete", "saved", "--", "-dash")
    assert "-dash" not in ids()

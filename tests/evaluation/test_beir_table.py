"""The table of the BM25S paper, with columns of this machine: made on tiny collections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the checkout only")

from benchmarks import beir
from bm25rag.evaluation import load_beir
from bm25rag.evaluation.beir import BEIR
from support.environment import ROOT
from support.evaluation import QUERIES, TEXTS, write_tiny_collection


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which the tiny collection stands for SciFact."""
    monkeypatch.chdir(tmp_path)
    for variable in ("ELASTICSEARCH_URL", "OPENSEARCH_URL"):
        monkeypatch.delenv(variable, raising=False)
    made = tmp_path / "beir"
    made.mkdir()
    Path(write_tiny_collection()).rename(made / "scifact")
    return made


@pytest.mark.slow
def test_a_collection_is_measured_and_has_its_columns_beside_the_published_ones(
    folder: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table 1 --> old <!-- /table 1 -->\nafter\n", encoding="utf-8")
    at = tmp_path / "beir.json"
    systems = ["--system", "bm25rag lucene", "--system", "Elasticsearch"]
    beir.main(["scifact", "--folder", str(folder), *systems], at, page, tmp_path)
    lines = page.read_text("utf-8").splitlines()
    assert "bm25rag lucene, here" in lines[3]
    assert "Elasticsearch, here" not in lines[3], "what was not measured has no column"
    (row,) = (line for line in lines if line.startswith("| scifact |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:7] == ["scifact", "4", "4", "47.6", "184.3", "20.81", "1,317"]
    assert float(cells[7].replace(",", "")) > 0
    (row,) = (line for line in lines if line.startswith("| msmarco |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:] == ["8.84M", "6,980", "0.07", "no memory", "11.88", "12.2", ""]
    said = page.read_text("utf-8")
    assert "Not measured: Elasticsearch: no server: set ELASTICSEARCH_URL" in said
    assert "before" in said
    assert "after" in said
    kept = json.loads(at.read_text("utf-8"))["scifact"]
    assert kept["rows"]["bm25rag lucene"]["nDCG@10"] > 0.5


def test_rows_of_another_machine_are_not_kept(tmp_path: Path) -> None:
    at = tmp_path / "beir.json"
    beir.keep("scifact", {"machine": {"cores": 1}, "rows": {"a": 1}}, at)
    beir.keep("scifact", {"machine": {"cores": 1}, "rows": {"b": 2}}, at)
    assert json.loads(at.read_text("utf-8"))["scifact"]["rows"] == {"a": 1, "b": 2}
    beir.keep("scifact", {"machine": {"cores": 2}, "rows": {"c": 3}}, at)
    assert json.loads(at.read_text("utf-8"))["scifact"]["rows"] == {"c": 3}


def test_the_forums_of_cqadupstack_are_one_collection(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = folder / "cqadupstack"
    whole.mkdir()
    for forum in ("android", "unix"):
        (folder / "scifact").rename(whole / forum) if forum == "unix" else _copy(
            folder / "scifact", whole / forum
        )
    joined = load_beir(beir.folder_of("cqadupstack", folder))
    assert len(joined.queries) == 2 * len(QUERIES)
    assert joined.queries["unix-1"] == joined.queries["android-1"] == QUERIES["1"]
    assert joined.qrels["unix-1"] == {"unix-apple": 1}
    assert [document.id for document in joined.read()] == [
        f"{forum}-{id}" for forum in ("android", "unix") for id in TEXTS
    ]
    again = beir.folder_of("cqadupstack", folder)
    assert (again / "done").exists()


def _copy(source: Path, target: Path) -> None:
    (target / "qrels").mkdir(parents=True)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (target / file).write_bytes((source / file).read_bytes())


def test_what_is_not_there_is_downloaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(beir, "download", lambda name, folder, progress: asked.append(name))
    beir.folder_of("nfcorpus", folder)
    beir.folder_of("scifact", folder)
    assert asked == ["nfcorpus"]


def test_the_table_has_every_collection_of_beir_that_may_be_passed_on() -> None:
    assert beir.PUBLISHED.keys() == BEIR.keys()
    with pytest.raises(SystemExit):
        beir.main(["cranfield"])


def test_the_page_shows_what_was_measured() -> None:
    kept = json.loads(beir.KEPT.read_text("utf-8"))
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    assert beir.speeds_table(kept) in page
    assert beir.about(kept) in page

"""Runs and judgements as files, and test collections."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bm25rag import BM25Index
from bm25rag.evaluation import (
    evaluate,
    load_beir,
    load_ir_dataset,
    read_qrels,
    read_run,
    run_of,
    write_qrels,
    write_run,
)
from bm25rag.evaluation.runs import judged_queries


def written(tmp_path: Path, text: str, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_runs_and_judgements_come_back_as_they_were(tmp_path: Path) -> None:
    run = {"q1": {"d1": 0.1 + 0.2, "d2": 5.0, "ü": -1e-30}, "q2": {"d1": 1.0}}
    write_run(tmp_path / "a.run", run, tag="mine")
    assert read_run(tmp_path / "a.run") == run
    assert list(read_run(tmp_path / "a.run")["q1"]) == ["d2", "d1", "ü"]
    first = (tmp_path / "a.run").read_text(encoding="utf-8").splitlines()[0]
    assert first == "q1 Q0 d2 1 5.0 mine"
    qrels = {"q1": {"d1": 1, "ü": 0, "d9": -1}}
    write_qrels(tmp_path / "a.qrels", qrels)
    assert read_qrels(tmp_path / "a.qrels") == qrels


def test_judgements_in_beir_s_columns_keep_ids_with_spaces(tmp_path: Path) -> None:
    qrels = {"my notes/a.md#1": {"my notes/a.md#1": 1, " b ": 0}, "0": {"query-id": -2}}
    path = tmp_path / "a.tsv"
    write_qrels(path, qrels)
    assert read_qrels(path) == qrels
    assert path.read_text(encoding="utf-8").startswith("query-id\tcorpus-id\tscore\nmy notes/")
    for id in ("", "a\tb", "a\n", "a\u2028b", "a\0"):
        with pytest.raises(ValueError, match="is empty or has a tab, a line break or a NUL"):
            write_qrels(path, {"q": {id: 1}})
    assert read_qrels(path) == qrels


def test_trec_eval_s_own_parser_reads_what_is_written(tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = {"q1": {"d1": 0.25, "d2": 5.0}}, {"q1": {"d1": 2}}
    write_run(tmp_path / "a.run", run)
    write_qrels(tmp_path / "a.qrels", qrels)
    with (tmp_path / "a.run").open() as file:
        assert pytrec_eval.parse_run(file) == run
    with (tmp_path / "a.qrels").open() as file:
        assert pytrec_eval.parse_qrel(file) == qrels


@pytest.mark.parametrize("id", ["", "a b", "a\tb", " a", "a\n", "a\0"])
def test_ids_that_trec_cannot_hold_are_refused_and_the_file_stays(tmp_path: Path, id: str) -> None:
    path = written(tmp_path, "before")
    with pytest.raises(ValueError, match="is empty or has white space"):
        write_run(path, {"q": {"d": 2.0, id: 1.0}})
    with pytest.raises(ValueError, match="is empty or has white space"):
        write_qrels(path, {"q": {"d": 1}, id: {"d": 1}})
    assert path.read_text(encoding="utf-8") == "before"


def test_an_id_that_readers_would_take_for_a_byte_order_mark_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "before")
    with pytest.raises(ValueError, match=r"query id '\\ufeffq' begins with U\+FEFF"):
        write_run(path, {"\ufeffq": {"d": 1.0}})
    with pytest.raises(ValueError, match="U\\+FEFF"):
        write_qrels(path, {"\ufeffq": {"d": 1}})
    assert path.read_text(encoding="utf-8") == "before"
    write_run(path, {"q": {"\ufeffd": 1.0}})
    assert read_run(path) == {"q": {"\ufeffd": 1.0}}


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), float("nan")])
def test_scores_that_no_run_can_hold_are_refused_and_the_file_stays(
    tmp_path: Path, score: float
) -> None:
    path = written(tmp_path, "before")
    with pytest.raises(ValueError, match="the score of document 'd' of query 'q' is"):
        write_run(path, {"q": {"d": score}})
    assert path.read_text(encoding="utf-8") == "before"


def test_qrels_are_read_in_trecs_and_in_beirs_format(tmp_path: Path) -> None:
    trec = written(tmp_path, "q1 0 d1 1\nq1\t0\td2\t2\n\nq2 Q0 d1 0\n")
    assert read_qrels(trec) == {"q1": {"d1": 1, "d2": 2}, "q2": {"d1": 0}}
    beir = "query-id\tcorpus-id\tscore\nq 1\td 1\t1\n"
    assert read_qrels(written(tmp_path, beir, "test.tsv")) == {"q 1": {"d 1": 1}}
    (tmp_path / "test.tsv.gz").write_bytes(gzip.compress(beir.encode()))
    assert read_qrels(tmp_path / "test.tsv.gz") == {"q 1": {"d 1": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 0 d1\n", r"file.txt:1: expected tabs between the three columns"),
        ("q1 0 d1 1\nq1 d1\n", r"file.txt:2: expected 'qid 0 docid grade' .*, found 2 columns"),
        ("q1 0 d1 high\n", r"file.txt:1: the grade must be an integer, got 'high'"),
        ("q1 0 d1 0.5\n", r"file.txt:1: the grade must be an integer, got '0.5'"),
        ("q1 0 d1 1\nq1 0 d1 2\n", r"file.txt:2: document 'd1' .* is judged 1 above and 2 here"),
        ("", r"file.txt: no judgements in it"),
        ("query-id\tcorpus-id\tscore\n", r"file.txt: no judgements in it"),
    ],
)
def test_wrong_qrels_are_told_by_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_qrels(written(tmp_path, text))


def test_repeated_lines_of_qrels_are_told_and_count_once(tmp_path: Path) -> None:
    path = written(tmp_path, "q 0 d 1\nq 0 e 0\nq 0 d 1\n")
    with pytest.warns(UserWarning, match="1 lines repeat others, the first is line 3"):
        assert read_qrels(path) == {"q": {"d": 1, "e": 0}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 d1 1\n", r"file.txt:1: expected 'qid Q0 docid rank score tag', found 4 columns"),
        ("q Q0 d 1 high t\n", r"file.txt:1: the score must be a number, got 'high'"),
        ("q Q0 d first 1.0 t\n", r"file.txt:1: the rank must be an integer, got 'first'"),
        ("q Q0 d 1 nan t\n", r"file.txt:1: the score is NaN"),
        ("q Q0 d 1 inf t\n", r"file.txt:1: the score is infinite.*: document 'd' of query 'q'"),
        ("q Q0 d 1 -Infinity t\n", r"file.txt:1: the score is infinite"),
        ("q Q0 d 1 1e999 t\n", r"file.txt:1: the score is infinite"),
        ("q Q0 d 1 2 t\nq Q0 d 2 1 t\n", r"file.txt:2: document 'd' of query 'q' occurs twice"),
        ("\n", r"file.txt: no results in it"),
    ],
)
def test_wrong_runs_are_told_by_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_run(written(tmp_path, text))


def test_an_unsorted_run_is_sorted_by_its_scores(tmp_path: Path) -> None:
    path = written(tmp_path, "q Q0 b 2 1.0 t\nr Q0 x 1 1.0 t\nq Q0 a 1 2.0 t\n")
    assert list(read_run(path)["q"]) == ["a", "b"]


def test_ranks_that_contradict_scores_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, "q Q0 a 1 1.0 t\nq Q0 b 2 2.0 t\n")
    with pytest.warns(UserWarning, match="ranks contradict scores for 1 queries"):
        assert list(read_run(path)["q"]) == ["b", "a"]


def test_a_run_of_an_index_keeps_its_order_where_documents_tie() -> None:
    index = BM25Index.from_texts(["same words"] * 9, ids=list("abcdefghi"))
    run = run_of(index, {"q": "words"}, k=5)
    assert list(run["q"]) == list("abcde")
    assert sorted(run["q"].values(), reverse=True) == list(run["q"].values())
    # trec_eval puts the larger id first where scores tie, so the scores must not.
    found = evaluate(run, {"q": {"a": 1}}, "RR")
    assert found.mean == {"RR": 1.0}


def test_a_run_holds_the_scores_of_the_index() -> None:
    index = BM25Index.from_texts(["red apple", "green apple tree", "boat"], ids=["a", "b", "c"])
    run = run_of(index, {"q": "apple", "none": "zebra"})
    assert run["none"] == {}
    hits = index.search("apple")
    assert run["q"] == pytest.approx({hit.id: hit.score for hit in hits}, rel=1e-6)


def test_what_of_queries_and_judgements_cannot_be_evaluated_is_told() -> None:
    index = BM25Index.from_texts(["red apple"], ids=["a"])
    queries = {"1": "apple", "2": "unjudged"}
    asked = judged_queries(index, queries, {"1": {"a": 1, "gone": 1, "zero": 0}, "3": {"a": 1}})
    assert asked.queries == {"1": "apple"}
    assert asked.qrels == {"1": {"a": 1, "gone": 1, "zero": 0}}
    assert asked.notes == (
        "1 queries have no judgements and are left out",
        "1 judged queries have no text and are left out",
        "1 relevant documents are not in the index: ['gone']",
    )
    with pytest.raises(ValueError, match="no query is judged"):
        judged_queries(index, queries, {"q1": {"a": 1}})


# --- collections ------------------------------------------------------------------------


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    written(folder, '{"_id": "d1", "title": "Red", "text": "apple"}\n', "corpus.jsonl")
    written(folder, '{"_id": "q1", "text": "apple"}\n{"_id": "q2", "text": "x"}\n', "queries.jsonl")
    written(folder, "query-id\tcorpus-id\tscore\nq1\td1\t1\n", "qrels/test.tsv")
    return folder


def test_a_beir_folder_is_loaded(beir: Path) -> None:
    collection = load_beir(beir)
    assert collection.name == "tiny"
    assert [(one.id, one.text) for one in collection.read()] == [("d1", "Red apple")]
    assert list(collection.read()), "the documents can be read again"
    assert collection.queries == {"q1": "apple"}
    assert collection.qrels == {"q1": {"d1": 1}}


def test_what_a_beir_folder_lacks_is_told(beir: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such split; those .* are \['test'\]"):
        load_beir(beir, split="dev")
    written(beir, "query-id\tcorpus-id\tscore\nq7\td1\t1\n", "qrels/dev.tsv")
    with pytest.raises(ValueError, match=r"1 judged queries have no text \('q7' \.\.\.\)"):
        load_beir(beir, split="dev")
    (beir / "queries.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"no queries\.jsonl"):
        load_beir(beir)
    with pytest.raises(FileNotFoundError, match=r"no corpus\.jsonl"):
        load_beir(beir / "qrels")


def test_a_dataset_of_ir_datasets_is_loaded(tmp_path: Path) -> None:
    ir_datasets = pytest.importorskip("ir_datasets")
    docs = written(tmp_path, "d1\tred apple\nd2\tboat\n", "docs.tsv")
    queries = written(tmp_path, "q1\tapple\nq2\tunjudged\n", "queries.tsv")
    qrels = written(tmp_path, "q1 0 d1 2\nq1 0 d2 0\n", "qrels.txt")
    local = ir_datasets.create_dataset(
        docs_tsv=str(docs), queries_tsv=str(queries), qrels_trec=str(qrels)
    )
    ir_datasets.registry.register("bm25rag-test", local)
    collection = load_ir_dataset("bm25rag-test")
    assert [(one.id, one.text) for one in collection.read()] == [
        ("d1", "red apple"),
        ("d2", "boat"),
    ]
    assert collection.queries == {"q1": "apple"}
    assert collection.qrels == {"q1": {"d1": 2, "d2": 0}}
    with pytest.raises(ValueError, match="no dataset 'no/such/set'"):
        load_ir_dataset("no/such/set")
    ir_datasets.registry.register("bm25rag-bare", ir_datasets.create_dataset(docs_tsv=str(docs)))
    with pytest.raises(ValueError, match="has no queries and no qrels"):
        load_ir_dataset("bm25rag-bare")

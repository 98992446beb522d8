"""A benchmark of systems: each in its own process, whatever happens to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index, Document
from bm25rag.evaluation import evaluate, load_beir, run_of, worker
from bm25rag.evaluation.bench import benchmark
from bm25rag.evaluation.systems import SYSTEMS, CannotRunError, Made, make_system
from bm25rag.evaluation.systems.base import Found, SavedSystem, System
from bm25rag.evaluation.worker import Measurement
from support.cases import first
from support.commands import fails, ok
from support.environment import collection as folder_of
from support.evaluation import QUERIES, TEXTS, write_tiny_collection

pytest.importorskip("pytrec_eval")

FACTORIES = """
import os
import time

def alphabet(documents):
    ids = sorted(one.id for one in documents)
    return lambda query, k: ids[:k]

def crashing(documents):
    calls = []
    def answer(query, k):
        calls.append(query)
        if len(calls) > 2:
            os.abort()
        return []
    return answer

def raising(documents):
    def answer(query, k):
        raise RuntimeError("out of luck")
    return answer

def hanging(documents):
    return lambda query, k: time.sleep(60)

def inventing(documents):
    return lambda query, k: ["apple", "no such document"]

def needing(documents):
    import a_package_that_nobody_has

def greedy(documents):
    return bytearray(2 << 30)
"""


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def collection() -> str:
    """Write a BEIR folder of four documents, and a module of factories next to it."""
    folder = write_tiny_collection()
    Path("factories.py").write_text(FACTORIES, encoding="utf-8")
    return folder


def measure(collection: str, *systems: str, **settings: Any) -> dict[str, Any]:
    settings = {"trials": 1, "warmup": 1, "measures": ["RR@10", "AP"]} | settings
    return benchmark(collection, "measured", systems, **settings)


@pytest.mark.parametrize("name", first(1, ["bm25rag lucene", "bm25rag on disk"]))
def test_a_system_is_measured_from_end_to_end(
    collection: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(variable, str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    report = measure(collection, name, cpus=1, trials=2)
    assert not list((tmp_path / "temporary").iterdir()), "what is built on disk is removed"
    [row] = report["rows"]
    tiny = load_beir(collection)
    index = BM25Index()
    index.add_documents(tiny.read())
    assert row["measures"] == evaluate(run_of(index, QUERIES), tiny.qrels, ["RR@10", "AP"]).mean
    time = row["latency"]
    assert 0 < time["percentiles"][0] <= time["median"] <= time["p95"] <= time["p99"]
    assert time["p99"] == time["percentiles"][-1], "of eight times, the 99th percentile is the most"
    assert time["least_trial"] <= time["mean"] <= time["largest_trial"]
    assert row["throughput"]["1"] > 0
    assert row["build_seconds"] > 0
    assert row["disk"] > 1000
    assert row["cold_start"] > 0.01
    assert report["setting"]["queries"] == 4
    if row["peak"] is not None:  # where the platform reports it
        assert row["resident"] <= row["peak"]
        assert row["instance"] == "c7g.medium"
        assert row["cost"] == pytest.approx(0.0363 / 3600 * time["mean"] / 1000 * 1e6)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "bm25s numba" else n for n in SYSTEMS]
)
def test_every_known_system_that_is_installed_answers(name: str, tmp_path: Path) -> None:
    try:
        system = make_system(name)
    except (ImportError, CannotRunError) as error:
        pytest.skip(f"cannot run: {error}")
    system.build([Document(id, text) for id, text in TEXTS.items()])
    found = system.search("red boat", 3)
    assert found[0][0] == "boat"
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert system.search("red boat", 1) == found[:1]
    if name in ("LangChain BM25Retriever", "LlamaIndex BM25Retriever"):
        assert len(system.search("zebra", 3)) == 3, "they return k documents, whatever is asked"
    else:
        assert {id for id, _ in found} <= {"boat", "apple"}
        assert system.search("zebra", 3) == system.search("", 3) == []
    system.search_batch(["red boat", "", "green car"], 3, 2)
    assert system.version()
    if isinstance(system, SavedSystem):
        system.save(tmp_path / "saved")
        again = make_system(name)
        assert isinstance(again, SavedSystem)
        again.load(tmp_path / "saved")
        assert again.search("red boat", 3) == found
        again.close()
    system.close()


def test_every_known_system_has_all_methods_whether_installed_or_not() -> None:
    for name, made in SYSTEMS.items():
        kind: Any = made.func if isinstance(made, partial) else made
        assert issubclass(kind, System), name
        assert not kind.__abstractmethods__, name


def test_a_job_is_measured_as_it_was_ordered(collection: str, tmp_path: Path) -> None:
    job: dict[str, Any] = {
        "collection": (collection, "test"),
        "k": 2,
        "depth": 4,
        "warmup": 1,
        "trials": 3,
    }
    job |= {"threads": [1, 2], "saved": str(tmp_path / "saved"), "query": "sea"}
    raw = worker.measured(make_system("bm25rag bm25+"), job)
    assert [len(trial) for trial in raw["trials"]] == [4, 4, 4]
    assert set(raw["throughput"]) == {"1", "2"}
    assert max(len(found) for found in raw["run"].values()) > 2, "as deep as the measures look"
    job |= {"system": "bm25rag bm25+", "folder": ".", "cpus": 64, "memory": None}
    Measurement(job).first()
    assert raw["disk"] > 1000
    assert json.loads(Measurement(job).measure())["version"] == version("bm25rag")
    assert Made("os.path:exists").version() is None


def test_memory_is_that_of_the_system_without_the_rankings_that_are_kept(
    collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Asked(System):
        def build(self, documents: Sequence[Document]) -> None:
            """Index nothing."""

        def search(self, query: str, k: int) -> Found:
            asked.append(k)
            return []

    def memory(name: str) -> int:
        assert set(asked) == {2}
        return 7

    monkeypatch.setattr(worker, "memory", memory)
    job: dict[str, Any] = {"collection": (collection, "test"), "k": 2, "depth": 1000}
    raw = worker.measured(Asked(), job | {"warmup": 1, "trials": 1, "threads": [1]})
    assert (raw["resident"], raw["peak"]) == (7, 7)
    assert asked[-4:] == [1000] * 4


@pytest.mark.slow
def test_what_goes_wrong_in_a_system_is_in_its_row_and_the_others_go_on(collection: str) -> None:
    expected = {
        "factories:crashing": "ended by signal 6",
        "factories:raising": "failed: RuntimeError: out of luck",
        "factories:inventing": "returned nonsense: 'no such document', found for query '1'",
        "factories:needing": "a_package_that_nobody_has",
        "nothing:here": "not installed: No module named 'nothing'",
        "best engine": "failed: ValueError: unknown system 'best engine'; systems are",
    }
    report = measure(collection, *expected, "factories:alphabet", timeout=60)
    *failed, last = report["rows"]
    for row, (system, error) in zip(failed, expected.items(), strict=True):
        assert row["system"] == system
        assert error in row["error"]
        assert "measures" not in row
    assert last["measures"]["RR@10"] == pytest.approx((1 + 1 / 2 + 1 / 4 + 1 / 4) / 4)


@pytest.mark.slow
def test_a_system_that_hangs_is_ended(collection: str) -> None:
    [row] = measure(collection, "factories:hanging", timeout=3)["rows"]
    assert row["error"] == "not done after 3 s"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is limited on Linux")
def test_a_system_that_needs_more_memory_than_allowed_fails_alone(collection: str) -> None:
    [row] = measure(collection, "factories:greedy", memory=1.0)["rows"]
    assert "MemoryError" in row["error"]


@pytest.mark.slow
def test_systems_save_one_after_the_other_and_each_has_its_own_size(collection: str) -> None:
    names = ("bm25rag lucene", "bm25s numpy", "bm25rag atire")
    first, between, last = measure(collection, *names)["rows"]
    assert first["disk"] == pytest.approx(last["disk"], rel=0.05)
    assert between["cold_start"] > 0
    assert last["cold_start"] > 0


@pytest.mark.slow
def test_an_interrupted_benchmark_goes_on_where_it_was(collection: str) -> None:
    first = measure(collection, "factories:alphabet")
    kept = {one.name: one.read_bytes() for one in Path("measured").glob("*.row.json")}
    said: list[str] = []
    both = measure(collection, "factories:alphabet", "factories:raising", log=said.append)
    assert both["rows"][0] == first["rows"][0]
    for name, before in kept.items():
        assert (Path("measured") / name).read_bytes() == before
    assert len(list(Path("measured").glob("*.row.json"))) == 2
    assert said[0].startswith("factories:alphabet: measured before, 20")
    assert said[1] == "factories:raising: failed: RuntimeError: out of luck"
    # What failed is tried again when it is mended.
    mended = FACTORIES.replace('raise RuntimeError("out of luck")', 'return ["apple"]')
    Path("factories.py").write_text(mended, encoding="utf-8")
    assert "measures" in measure(collection, "factories:raising")["rows"][0]


@pytest.mark.slow
def test_a_benchmark_that_is_killed_in_the_middle_of_a_system_loses_that_row_alone(
    collection: str,
) -> None:
    script = (
        "from bm25rag.evaluation import benchmark\n"
        f"benchmark({collection!r}, 'measured', ['factories:alphabet', 'factories:hanging'],"
        " trials=1, warmup=1, measures=['RR@10', 'AP'], log=lambda line: print(line, flush=True))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "factories:alphabet: measured\n"
        running.kill()
    said: list[str] = []
    report = measure(collection, "factories:alphabet", "factories:raising", log=said.append)
    assert said[0].startswith("factories:alphabet: measured before")
    assert [one.suffix for one in Path("measured").iterdir()] == [".json"] * 3, "nothing is left"
    assert len(report["rows"]) == 2


def test_results_of_other_settings_and_machines_are_never_mixed(collection: str) -> None:
    measure(collection, "factories:alphabet")
    with pytest.raises(
        ValueError, match="different setting: k was 10 and is 5; use a different folder"
    ):
        measure(collection, "factories:alphabet", k=5)
    with Path(collection, "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write('\n{"_id": "plum", "text": "A plum."}')
    with pytest.raises(ValueError, match="different setting: documents was 4 and is 5"):
        measure(collection, "factories:alphabet")
    whole = Path(collection, "corpus.jsonl").read_text(encoding="utf-8")
    Path(collection, "corpus.jsonl").write_text(
        whole.rpartition("\n")[0].replace("red apple", "ripe apple"), encoding="utf-8"
    )
    with pytest.raises(ValueError, match="different setting: digest was"):
        measure(collection, "factories:alphabet")
    Path(collection, "corpus.jsonl").write_text(whole.rpartition("\n")[0], encoding="utf-8")
    measure(collection, "factories:alphabet")
    file = Path("measured/setting.json")
    setting = json.loads(file.read_text(encoding="utf-8"))
    setting["machine"]["processor"] = "another"
    file.write_text(json.dumps(setting), encoding="utf-8")
    with pytest.raises(ValueError, match="different machine: processor was 'another'"):
        measure(collection, "factories:alphabet")
    file.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"setting\.json: not what a benchmark writes; remove it"):
        measure(collection, "factories:alphabet")


@pytest.mark.slow
def test_recall_at_100_is_measured_deeper_than_the_timed_searches(collection: str) -> None:
    [row] = measure(collection, "factories:alphabet", k=1, measures=["R@100"])["rows"]
    assert row["measures"] == {"R@100": 1.0}


# --- the command ----------------------------------------------------------------------------


def test_the_command_writes_three_reports_and_refuses_what_is_wrong(collection: str) -> None:
    arguments = ("bench", collection, "-o", "out", "--trials", 1)
    systems = ("--system", "factories:alphabet", "--system", "nothing:here")
    result = ok(*arguments, *systems)
    assert "| factories:alphabet |" in result.stdout
    assert "nothing:here: not installed" in result.stderr
    report = json.loads(Path("out/report.json").read_text(encoding="utf-8"))
    assert [one["system"] for one in report["rows"]] == ["factories:alphabet", "nothing:here"]
    written = Path("out/report.md").read_text(encoding="utf-8")
    assert written.startswith(result.stdout)
    assert "4 documents, 4 queries, k=10; 1 trials" in written
    assert "factories:alphabet" in Path("out/report.html").read_text(encoding="utf-8")
    Path(collection, "qrels", "dev.tsv").write_text("1\tapple\t1\n1\tplum\t1\n", encoding="utf-8")
    other = ok("bench", collection, "--split", "dev", "-o", "dev", "--trials", 1, *systems[:2])
    assert "4 documents, 1 queries" in other.stderr
    assert (
        "Note: documents that are judged relevant and not in the collection: 1 ('plum' ...)."
        in other.stderr
    )
    fails(3, "no such split; those in this folder are ['dev', 'test']", *arguments, "--split", "x")
    fails(2, "unknown measure", *arguments, "-m", "best")
    for missing, parent in (("scifact", "."), ("data/beir/scifact", Path("data/beir"))):
        get = f"{missing}: no such folder; 'bm25rag download scifact {parent}' makes it"
        fails(3, get, "bench", missing, "-o", "x")
    fails(2, "0.0 is not in the range x>0", *arguments, "--memory", 0)
    fails(3, "no dataset 'nowhere'", "bench", "nowhere", "-o", "out2")
    fails(3, "prices.json: No such file", *arguments, "--prices", "prices.json")


@pytest.mark.slow
def test_the_engines_that_are_installed_agree_on_a_real_collection() -> None:
    real = load_beir(folder_of("cranfield"))
    found = {}
    for name in ("bm25rag lucene", "bm25s numpy", "rank_bm25"):
        system = make_system(name)
        system.build(list(real.read()))
        run = run_of(system.search, real.queries, 10)
        found[name] = evaluate(run, real.qrels, "nDCG@10").mean["nDCG@10"]
    assert found["bm25rag lucene"] == pytest.approx(found["bm25s numpy"], abs=0.02)
    assert found["rank_bm25"] < found["bm25rag lucene"], "it neither stems nor drops stop words"

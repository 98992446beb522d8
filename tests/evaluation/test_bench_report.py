"""The report of a benchmark: its table, and the page that Chromium shows."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bm25rag.evaluation.report import dynascores, to_html, to_markdown


def row(system: str, accuracy: float, latency: float, cost: float | None) -> dict[str, Any]:
    """Make a row as a benchmark writes it."""
    times = {"mean": latency, "median": latency, "p95": 2 * latency, "p99": 3 * latency}
    spread = {"least_trial": latency, "largest_trial": latency, "percentiles": [latency] * 51}
    return {
        "system": system,
        "measures": {"nDCG@10": accuracy},
        "latency": times | spread,
        "throughput": {"1": 1000 / latency},
        "build_seconds": 1.0,
        "resident": 1 << 20,
        "peak": 1 << 20,
        "disk": None,
        "cold_start": None,
        "cost": cost,
        "cost_in_batches": cost,
    }


HOSTILE = "</script><script>document.title='taken'</script>|x"


def some_report(**change: Any) -> dict[str, Any]:
    """Make a report of three systems and one that failed."""
    rows = [
        row("fast", 0.30, 10.0, 1.0),
        row("good", 0.40, 110.0, 11.0),
        row(HOSTILE, 0.41, 400.0, 40.0),
        {"system": "gone", "error": "not installed: <b>gone</b>", "cost": None},
    ]
    setting = {"collection": "a <tiny> one", "documents": 4, "queries": 4, "k": 10, "trials": 2}
    setting |= {"cpus": 1, "memory": 4, "measures": ["nDCG@10"]}
    machine = {"processor": "P", "cores": 2, "system": "Linux x86_64", "python": "3.11"}
    return {"setting": setting, "machine": machine, "rows": rows} | change


def test_the_table_has_the_best_first_and_says_why_a_row_is_empty() -> None:
    lines = to_markdown(some_report()).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:4]] == [
        "good",
        "</script><script>document.title='taken'</script>\\",
    ]
    assert lines[2].startswith("| good | 19.63 | 0.4 | 110 | 220 | 330 |")
    assert lines[4].startswith("| fast | 14.97 |")
    assert lines[5].startswith("| gone | not installed: <b>gone</b> | |")
    columns = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    assert set(columns) == {columns[0]}


def test_without_costs_or_differences_there_is_no_dynascore() -> None:
    rows = [row("a", 0.3, 1.0, None), row("b", 0.4, 2.0, 1.0)]
    assert dynascores(some_report(rows=rows)) == {}
    assert dynascores(some_report(rows=[row("a", 0.3, 1.0, 1.0)])) == {}
    assert "| a |  | 0.3 |" in to_markdown(some_report(rows=rows))


def chromium() -> str:
    """Find Chromium, or skip the test."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium on this machine to open the page in")
    return found


def opened(page: str, tmp_path: Path, *options: str) -> str:
    """Open a page in Chromium and return the rendered document without its scripts."""
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", *options]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True)
    assert "Uncaught" not in done.stderr
    return re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["0", "1"], ids=["dark", "light"])
def test_the_page_in_chromium_shows_the_scores_that_python_computes(
    tmp_path: Path, scheme: str
) -> None:
    report = some_report()
    dom = opened(to_html(report), tmp_path, f"--blink-settings=preferredColorScheme={scheme}")
    rows = re.findall(r'data-system="([^"]*)" data-score="([^"]*)"', dom)
    shown = {html.unescape(system): float(score) for system, score in rows}
    assert list(shown) == list(dynascores(report)), "the best first"
    assert shown == pytest.approx(dynascores(report))
    assert "<title>Retrievers on a &lt;tiny&gt; one</title>" in dom
    assert dom.count("<svg") == 4
    assert dom.count("<circle") == 6
    assert "not installed: &lt;b&gt;gone&lt;/b&gt;" in dom
    assert 'id="weight-latency"' in dom


@pytest.mark.slow
def test_the_page_of_a_benchmark_where_nothing_ran_says_so(tmp_path: Path) -> None:
    failed = [{"system": "gone", "error": "not installed", "cost": None}]
    dom = opened(to_html(some_report(rows=failed)), tmp_path)
    assert dom.count("<p>Not measured.</p>") == 3
    assert "not installed" in dom


@pytest.mark.slow
def test_sliders_change_the_scores(tmp_path: Path) -> None:
    script = """<script>
for (const [name, value] of [["accuracy", 0], ["latency", 100], ["cost", 0]]) {
  const slider = document.getElementById("weight-" + name);
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
}
</script></body>"""
    report = some_report()
    dom = opened(to_html(report).replace("</body>", script), tmp_path)
    rows = re.findall(r'data-system="([^"]*)" data-score="([^"]*)"', dom)
    expected = dynascores(report, {"accuracy": 0.0, "latency": 1.0, "cost": 0.0})
    assert [html.unescape(system) for system, _ in rows] == list(expected)
    assert [float(score) for _, score in rows] == pytest.approx(list(expected.values()))


def test_the_page_needs_nothing_beside_itself() -> None:
    page = to_html(some_report())
    assert re.findall(r'(?:src|href)="|https?://|@import|url\(', page) == []

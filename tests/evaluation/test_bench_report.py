"""The report of a benchmark: its table, and the page that Chromium shows."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bm25rag.evaluation.published import read_published
from bm25rag.evaluation.report import about, dynascores, to_html, to_markdown
from support.evaluation import GONE, HOSTILE, row, some_report


def test_the_table_has_the_best_first_and_says_why_a_row_is_empty() -> None:
    lines = to_markdown(some_report()).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:4]] == [
        "good",
        "</script><script>document.title='taken'</script>\\",
    ]
    assert lines[2].startswith("| good | 19.63 | 0.4 | 110 | 110 to 110 | 110 | 220 | 330 | 9.09")
    assert lines[4].startswith("| fast | 14.97 |")
    assert lines[5].startswith("| gone | not installed: <b>gone</b> | |")
    columns = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    assert set(columns) == {columns[0]}


def test_what_has_no_cost_has_no_dynascore_and_the_others_have_theirs() -> None:
    priced = some_report()["rows"]
    rows = [row("server", 0.45, 1.0, None), *priced]
    assert dynascores(some_report(rows=rows)) == dynascores(some_report())
    assert "| server |  | 0.45 |" in to_markdown(some_report(rows=rows))
    assert dynascores(some_report(rows=[row("a", 0.3, 1.0, 1.0)])) == {}


def test_where_no_cost_is_known_accuracy_and_latency_count() -> None:
    rows = [row("a", 0.30, 10.0, None), row("b", 0.40, 110.0, None)]
    expected = {"a": 0.5 * 40 - 1 / 3, "b": 80 / 3 - 11 / 3}  # a point costs 10 ms
    assert dynascores(some_report(rows=rows)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "Expecting value"),
        ("{}", "there is no 'source'"),
        ('{"source": "x", "rows": [{"system": 1}]}', "system must be a text, got 1"),
        ('{"source": "x", "rows": [{"system": "a", "measures": {}}]}', r"a has no nDCG@10"),
        ('{"source": "x", "rows": 3}', "not iterable"),
        ('{"source": "x", "rates": {"latency": 0, "cost": 1}, "rows": []}', "above 0"),
        (
            '{"source": "x", "rows": [{"system": "a", "measures": {"nDCG@10": 1}, "latency": -1}]}',
            "latency must be",
        ),
    ],
)
def test_a_wrong_file_of_published_rows_is_told(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "published.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"published\.json: .*{why}"):
        read_published(file, "nDCG@10")


def test_published_rows_without_rates_are_scored_with_the_others() -> None:
    published = {"system": "p", "measures": {"nDCG@10": 0.35}, "latency": {"mean": 60.0}, "cost": 6}
    report = some_report(beside={"source": "a paper", "rates": None, "rows": [published]})
    assert list(dynascores(report)) == ["good", HOSTILE, "p", "fast"]
    assert "Published, not measured here: p (a paper)." in about(report)


def test_what_was_measured_where_and_under_which_limits_is_said() -> None:
    said = about(some_report(notes=["3 odd judgements"]))
    assert said == [
        "4 documents, 4 queries, k=10; 2 trials of single queries, each system in a process of its "
        "own with 1 CPU and 4 GiB.",
        "Measured on P, 2 cores, 8 GiB, Linux, Python 3.11; 2026-11-21 to 2026-11-22.",
        "Prices: some.",
        "Versions: fast 1.0, good 1.0, </script><script>document.title='taken'</script>|x 1.0.",
        "Note: 3 odd judgements.",
    ]
    free = some_report()
    for one in free["rows"]:
        one["limits"] = ["2 CPU"]
    assert "This platform limited processes to 2 CPU." in about(free)


def chromium() -> str:
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
    failed = [GONE | {"error": "not installed"}]
    dom = opened(to_html(some_report(rows=failed)), tmp_path)
    assert dom.count("<p>Not measured.</p>") == 3
    assert "not installed" in dom


@pytest.mark.slow
@pytest.mark.parametrize("rest", [None, 7.0], ids=["no cost at all", "one of them without"])
def test_the_page_and_python_agree_on_what_has_no_cost(tmp_path: Path, rest: float | None) -> None:
    rows = [row("a", 0.3, 1.0, None), row("b", 0.4, 2.0, rest), row("c", 0.5, 4.0, rest)]
    report = some_report(rows=rows)
    dom = opened(to_html(report), tmp_path)
    found = re.findall(r'data-system="([^"]*)" data-score="([^"]*)"', dom)
    scores = dynascores(report)
    assert len(scores) == (3 if rest is None else 2)
    assert [system for system, _ in found] == [*scores, *({"a", "b", "c"} - set(scores))]
    assert {one: float(score) for one, score in found if score != "null"} == pytest.approx(scores)


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


def data_of(page: str) -> Any:
    (found,) = re.findall(r'<script id="report" type="application/json">(.*?)</script>', page, re.S)

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(found, parse_constant=refuse)


def with_numbers_that_are_none() -> dict[str, Any]:
    odd = row("odd", math.nan, 1.0, math.inf)
    slow = row("slow", 0.3, math.nan, math.nan)
    return some_report(rows=[odd, slow, row("a", 0.3, 1.0, 2.0), row("b", 0.4, 2.0, 3.0)])


def test_what_is_no_number_is_null_in_the_page_and_empty_in_the_table() -> None:
    report = with_numbers_that_are_none()
    odd, *_ = data_of(to_html(report))["rows"]
    assert (odd["measures"]["nDCG@10"], odd["cost"]) == (None, None)
    assert sorted(dynascores(report)) == ["a", "b"]
    assert not re.search(r"\b(nan|inf)\b", to_markdown(report))


@pytest.mark.parametrize(
    "name",
    [
        "__REPORT__",
        "__TITLE__",
        "__TITLE____REPORT__",
        "</title><script>x",
        "\\1 \u2028 '\"&<!--",
        "\ud800",
    ],
)
def test_the_name_of_a_collection_is_only_that(name: str) -> None:
    report = some_report()
    report["setting"]["collection"] = name
    page = to_html(report)
    page.encode()
    assert data_of(page)["setting"]["collection"] == name
    titles = re.findall(r"<(?:title|h1)>Retrievers on (.*?)</(?:title|h1)>", page)
    assert list(map(html.unescape, titles)) == [name.replace("\ud800", "?")] * 2


@pytest.mark.slow
def test_the_page_is_drawn_where_some_numbers_are_none(tmp_path: Path) -> None:
    report = with_numbers_that_are_none()
    dom = opened(to_html(report), tmp_path)
    assert dom.count("<svg") == 4
    found = re.findall(r'data-system="([^"]*)" data-score="([^"]*)"', dom)
    scores = {one: float(score) for one, score in found if score != "null"}
    assert scores == pytest.approx(dynascores(report))


def test_the_page_needs_nothing_beside_itself() -> None:
    page = to_html(some_report())
    assert re.findall(r'(?:src|href)="|https?://|@import|url\(', page) == []

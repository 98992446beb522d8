"""The inspector in a real browser: Chromium without a window, of this machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from support.inspected import (
    HOSTILE,
    VIEWS,
    Inspected,
    address,
    asking_for,
    inspecting,
    save_hostile,
    save_kind,
)

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.untraced,
    pytest.mark.skipif(CHROMIUM is None, reason=f"there is no browser: none of {', '.join(NAMES)}"),
]
Start = Callable[..., Inspected]
Page = Any


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        # As root, in containers, Chromium runs only without its sandbox; all pages are ours.
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Page]]:
    """Return what opens pages; what goes wrong in them fails the test."""
    contexts, troubles = [], []

    def open_page(**options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        # A page of an error is a message of the console, too, and so is a policy that was broken.
        page.on(
            "console",
            lambda message: (
                troubles.append(message.text)
                if message.type == "error" and "net::ERR_FAILED" not in message.text
                else None
            ),
        )
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def ids(page: Page) -> list[str]:
    found: list[str] = page.locator(".hit a.id").all_inner_texts()
    return found


def expect(shown: Any) -> Any:
    """Return the assertions that wait until they hold: a click does not wait for the next page."""
    from playwright.sync_api import expect

    return expect(shown)


@pytest.mark.parametrize("view", VIEWS)
def test_no_script_of_a_document_runs_and_no_policy_is_broken(
    view: str, tmp_path: Path, start: Start, opened: Callable[..., Page]
) -> None:
    save_hostile(tmp_path / "hostile")
    inspected = start(tmp_path / "hostile", qrels=tmp_path / "judged.tsv")
    page = opened()
    for own in HOSTILE:
        page.goto(inspected.base + address(view, **asking_for(own)))
        page.locator("header nav a[aria-current], main").first.wait_for()
        assert page.title() != "owned"
        assert page.locator("main script, main img, main style").count() == 0


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_view_fits_its_window_in_both_themes(
    view: str, width: int, theme: str, tmp_path: Path, start: Start, opened: Callable[..., Page]
) -> None:
    save_kind("fields", tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as index:
        long = {"title": "t" * 300, "text": "red " + "w" * 500 + " sea " * 50}
        index.add([long], ids=["i" * 200], metadata=[{"k" * 100: "v" * 500}])
    inspected = start(tmp_path / "index", qrels=tmp_path / "judged.tsv")
    inspected.judge(1, q="red sea", id="boat")
    page = opened(viewport={"width": width, "height": 800}, color_scheme=theme)
    given = {"q": "red sea", "id": "i" * 200, "t": "red", "k1": 0.4, "b_b": 0.1}
    page.goto(inspected.base + address(view, **given))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    red, green, blue = map(
        int,
        re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3],
    )
    assert (red + green + blue > 600) is (theme == "light")


def test_ranks_move_with_a_slider_and_the_address_follows(
    tmp_path: Path, start: Start, opened: Callable[..., Page]
) -> None:
    texts = ["red " * n + "grey " * (n * n) for n in range(1, 10)]
    index = BM25Index.from_texts(texts)
    index.save(tmp_path / "index")
    inspected, page = start(tmp_path / "index"), opened()
    page.goto(f"{inspected.base}/search?q=red")
    assert ids(page) == [hit.id for hit in index.search("red")]
    slider = page.locator(".slider input[name=b]")
    slider.focus()
    page.keyboard.press("Home")
    page.locator(".move").first.wait_for()
    assert ids(page) == [hit.id for hit in index.tune(b=0.0).search("red")]
    page.wait_for_url("**/search?q=red&b=0")
    assert page.locator(".move.up").count() > 0
    assert "b=0.0" in page.locator("#python").text_content()
    page.reload()
    assert ids(page) == [hit.id for hit in index.tune(b=0.0).search("red")]
    page.locator("select[name=variant]").select_option("bm25l")
    page.wait_for_url("**variant=bm25l**")
    assert ids(page) == [hit.id for hit in index.tune("bm25l", b=0.0).search("red")]
    page.locator("#reset").click()
    page.wait_for_url("**/search?q=red")
    expect(page.locator(".move")).to_have_count(0)


def test_everything_is_done_with_keys(inspected: Inspected, opened: Callable[..., Page]) -> None:
    page = opened()
    page.goto(inspected.base)
    page.keyboard.press("/")
    page.keyboard.type("red sea")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=red+sea")
    first, second, _ = ids(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.locator(".hit.at a.id").inner_text() == second
    page.keyboard.press("ArrowUp")
    page.keyboard.press("2")
    page.locator(".hit:first-child .judge button[aria-pressed=true]").wait_for()
    assert inspected.desk.judgements.grades("red sea") == {first: 2}
    assert page.locator(".hit.at a.id").inner_text() == first
    page.keyboard.press("j")
    page.keyboard.press("0")
    page.locator(".hit:nth-child(2) .judge button[aria-pressed=true]").wait_for()
    page.keyboard.press("k")
    page.keyboard.press("x")
    page.locator(".hit:first-child .judge button[aria-pressed=true]").wait_for(state="detached")
    assert inspected.desk.judgements.grades("red sea") == {second: 0}
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("Enter")
    page.wait_for_url("**/document?**")
    expect(page.locator("h1")).to_have_text(first)
    views = {"s": "search", "c": "compare", "a": "analysis", "t": "terms", "j": "judged"}
    views |= {"o": "cost", "h": "health"}
    for key, view in views.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/{view}?**")
        assert "q=red" in page.url


def test_pages_are_turned_with_the_arrows(
    tmp_path: Path, start: Start, opened: Callable[..., Page]
) -> None:
    BM25Index.from_texts([f"word {n}" for n in range(10_000)]).save(tmp_path / "index")
    inspected, page = start(tmp_path / "index"), opened()
    page.goto(f"{inspected.base}/search?q=word&page=999")
    assert ids(page) == [str(n) for n in range(9980, 9990)]
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**page=1000")
    assert ids(page) == [str(n) for n in range(9990, 10_000)]
    assert page.locator("a[rel=next]").count() == 0
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**page=999")


def test_without_script_there_are_results_through_a_plain_form(
    inspected: Inspected, opened: Callable[..., Page]
) -> None:
    page = opened(java_script_enabled=False)
    page.goto(inspected.base)
    page.locator("input[name=q]").fill("red sea")
    page.locator("button.main").click()
    expect(page.locator(".hit")).to_have_count(3)
    page.locator(".slider input[name=b]").focus()
    page.keyboard.press("Home")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**b=0**")
    assert page.locator(".move").count() == 3
    page.locator(".hit .judge button").nth(1).click()
    expect(page.locator("button[aria-pressed=true]")).to_have_count(1)
    assert len(inspected.desk.judgements.grades("red sea")) == 1
    page.locator(".hit a.id").first.click()
    expect(page.locator(".verdict")).to_contain_text("Found at rank 1 of 3")
    page.locator("input[name=id]").fill("bird")
    page.locator("button.main").click()
    expect(page.locator(".verdict")).to_contain_text("none of the terms")


def test_a_value_of_the_metadata_narrows_the_results_and_its_filter_can_be_copied(
    inspected: Inspected, opened: Callable[..., Page]
) -> None:
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"{inspected.base}/search?q=red+sea+bird")
    page.locator("#facets a", has_text="vehicle").click()
    page.wait_for_url("**filter=**")
    assert sorted(ids(page)) == ["boat", "car"]
    assert page.locator("textarea[name=filter]").input_value() == '{"kind": "vehicle"}'
    page.locator("[data-copy='textarea[name=filter]']").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == '{"kind": "vehicle"}'
    page.keyboard.press("Escape")
    page.locator("h3").first.click()
    page.keyboard.press("y")
    page.wait_for_function(
        "async () => (await navigator.clipboard.readText()).startsWith('from bm25rag')"
    )


def test_two_sides_are_compared_and_a_baseline_is_kept(
    tmp_path: Path, start: Start, opened: Callable[..., Page]
) -> None:
    texts = ["red " * n + "grey " * (n * n) for n in range(1, 20)]
    BM25Index.from_texts(texts).save(tmp_path / "index")
    inspected, page = start(tmp_path / "index"), opened()
    page.goto(f"{inspected.base}/compare?q=red")
    assert "Both find the same" in page.locator(".summary").inner_text()
    page.locator("input[name=b_b]").focus()
    page.keyboard.press("Home")
    page.locator(".ranking .only").first.wait_for()
    page.wait_for_url("**b_b=0")
    page.get_by_role("button", name="Keep A").click()
    page.wait_for_url("**commit=baseline**")
    with BM25Index.open(tmp_path / "index", mode="w") as index:
        index.add(["red " * 50], ids=["new"])
    page.reload()
    assert "new" not in page.locator(".ranking").first.inner_text()
    assert "new" in page.locator(".ranking").last.inner_text()


def test_the_way_from_a_hit_over_its_analysis_to_a_term_and_its_neighbours(
    inspected: Inspected, opened: Callable[..., Page]
) -> None:
    page = opened()
    page.goto(f"{inspected.base}/search?q=deep+seas")
    page.locator(".hit a.id").first.click()
    page.get_by_role("link", name="Its analysis").click()
    expect(page.locator(".steps .shared")).to_have_count(5)
    assert page.locator(".steps .dropped").count() > 3
    page.go_back()
    page.go_back()
    page.locator(".legend a").first.click()
    expect(page.locator("h1")).to_have_text("deep")
    page.locator(".terms a", has_text="drive").first.click()
    page.wait_for_url("**t=drive**")
    page.locator("input[name=t]").fill("nothing-like-this")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_contain_text("No document has this term")


def test_costs_health_and_judgements_are_shown(
    inspected: Inspected, opened: Callable[..., Page]
) -> None:
    inspected.judge(1, q="red sea", id="boat")
    page = opened()
    page.goto(f"{inspected.base}/cost?q=red+sea")
    assert page.locator("tbody tr").count() == 4
    page.goto(f"{inspected.base}/health")
    assert "5" in page.locator(".facts").inner_text()
    assert page.locator("table.bars tr").count() > 5
    page.goto(f"{inspected.base}/judged")
    page.locator("td a").click()
    page.wait_for_url("**/search?q=red**")
    assert page.locator(".tag").first.inner_text().startswith("nDCG@10")


def test_judging_faster_than_the_inspector_answers_loses_nothing(
    inspected: Inspected, opened: Callable[..., Page]
) -> None:
    page = opened()
    page.goto(f"{inspected.base}/search?q=red+sea")
    found = ids(page)
    for grade in "123":
        page.keyboard.press("j")
        page.keyboard.press(grade)
    page.wait_for_function(
        "() => document.querySelectorAll('.judge button[aria-pressed=true]').length === 3"
    )
    assert inspected.desk.judgements.grades("red sea") == dict(zip(found, (1, 2, 3), strict=True))
    assert page.locator(".hit.at a.id").inner_text() == found[2]


def test_an_inspector_that_has_ended_is_told_as_such(
    folder: Path, opened: Callable[..., Page]
) -> None:
    with inspecting(folder) as inspected:
        page = opened()
        page.goto(f"{inspected.base}/search?q=red")
        page.route("**/search?**", lambda route: route.abort())
        page.locator(".slider input[name=b]").focus()
        page.keyboard.press("Home")
        page.get_by_text("The inspector does not answer").wait_for()

"""What registries and package indexes read of the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.environment import ROOT

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(
    not (ROOT / "integrations").exists(), reason="the adapters are in the checkout only"
)
DISTRIBUTIONS = [
    ROOT,
    *(ROOT / "integrations" / name for name in ("haystack", "langchain", "llamaindex")),
]


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


REPOSITORY = project(ROOT)["tool"]["bm25rag"]["repository"]


def test_haystacks_page_has_the_front_matter_that_its_site_needs() -> None:
    _, front, page = (
        (ROOT / "integrations/haystack/listing.md").read_text("utf-8").split("---\n", 2)
    )
    fields = yaml.safe_load(front)
    needed = "layout name description authors pypi repo type report_issue logo version toc"
    assert set(needed.split()) <= set(fields)
    assert fields["pypi"].endswith(
        f"/{project(ROOT / 'integrations/haystack')['project']['name']}/"
    )
    assert fields["repo"] == REPOSITORY
    headings = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"^- \[(\w+)\]", page, re.MULTILINE)) == headings


def test_langchains_rows_name_the_distribution_and_classes_that_are_there() -> None:
    listing = yaml.safe_load((ROOT / "integrations/langchain/listing.yml").read_text("utf-8"))
    source = (ROOT / "integrations/langchain/langchain_bm25rag/__init__.py").read_text("utf-8")
    for row in (row for rows in listing["rows"].values() for row in rows):
        assert row["pypi"] == listing["pypi_package"] == "langchain-bm25rag"
        assert f'"{row["name"]}"' in source
        assert (ROOT / row["docs_url"].removeprefix(f"{REPOSITORY}/blob/main/")).exists()


def test_llamahubs_table_names_classes_that_are_there() -> None:
    hub = project(ROOT / "integrations/llamaindex")["tool"]["llamahub"]
    folder = ROOT / "integrations/llamaindex" / hub["import_path"].replace(".", "/")
    source = (folder / "__init__.py").read_text("utf-8") + (
        folder.parents[1] / "vector_stores/bm25rag/__init__.py"
    ).read_text("utf-8")
    assert all(f'"{name}"' in source for name in hub["class_authors"])


def test_all_distributions_have_one_version_and_are_described_alike() -> None:
    projects = [project(folder)["project"] for folder in DISTRIBUTIONS]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {one["version"] for one in projects} == {citation["version"]}
    assert citation["repository-code"] == REPOSITORY
    assert len({tuple(one["classifiers"]) for one in projects}) == 1
    assert all(len(one["keywords"]) >= 5 for one in projects)

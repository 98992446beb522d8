"""Build the site: gather the pages, run Sphinx with warnings as errors, and add Markdown twins.

``build_site.py FOLDER`` writes FOLDER/site. Pages stay where they are in the repository, so that
their links hold there, too; links to what is no page lead to the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath

from building import ROOT
from publishing import absolute, links_of, repository
from sphinx.cmd.build import main as sphinx

PATTERNS = (
    "docs/*.md",
    "docs/*.png",
    "docs/*.svg",
    "integrations/README.md",
    "integrations/*/README.md",
    "benchmarks/results/*.svg",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
)
# Read in the repository, where the site has its own.
HIDDEN = {"docs/index.md", "README.md", "integrations/README.md", "CODE_OF_CONDUCT.md"}
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def gather(target: Path) -> None:
    """Copy all that the site is made of; pages that no list names are marked so."""
    shutil.copytree(ROOT / "docs" / "site", target)
    paths = [path for pattern in PATTERNS for path in sorted(ROOT.glob(pattern))]
    names = {path.relative_to(ROOT).as_posix() for path in paths}
    for name in names:
        made = target / name
        made.parent.mkdir(parents=True, exist_ok=True)
        if made.suffix != ".md":
            shutil.copy(ROOT / name, made)
            continue
        folder = PurePosixPath(name).parent
        text = (ROOT / name).read_text(encoding="utf-8")
        for link in links_of(text):
            if normpath(folder / link.partition("#")[0]) not in names:
                text = text.replace(f"]({link})", f"]({absolute_link(link, folder)})")
        made.write_text(("---\norphan: true\n---\n" if name in HIDDEN else "") + text, "utf-8")


def absolute_link(link: str, folder: PurePosixPath) -> str:
    """Return the address in the repository of a link of a page."""
    return absolute(f"[]({link})", folder, "main")[3:-1]


def write_twins(source: Path, site: Path) -> None:
    """Put a page of Markdown next to each of HTML, and write ``llms.txt``, which lists them."""
    listed = []
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).with_suffix(".md")
        if (made := source / name).exists():
            shutil.copy(made, site / name)
            title = _TITLE.search(made.read_text(encoding="utf-8"))
            listed.append(f"- [{title[1] if title else name}]({name.as_posix()})")
    summary = (
        "> Exact BM25 retrieval for RAG in Python: filters, updates, persistence; "
        "for LangChain, LlamaIndex and Haystack."
    )
    lines = ["# bm25rag", "", summary, "", "Each page of the site, as Markdown:", "", *listed, ""]
    (site / "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def main() -> int:
    """Build the site."""
    folder = Path(sys.argv[1]).resolve()
    source, site, twins = folder / "pages", folder / "site", folder / "twins"
    for path in (source, site, twins, folder / ".jupyter_cache"):
        shutil.rmtree(path, ignore_errors=True)
    gather(source)
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    for builder, made in (("html", site), ("markdown", twins)):
        strict = ["-W", "--keep-going", "-q", "-b", builder]
        if failed := sphinx([*strict, "-d", str(folder / builder), str(source), str(made)]):
            return failed
    write_twins(twins, site)
    print(f"{site / 'index.html'}: open it in a browser; {repository()} is where links lead")
    return 0


if __name__ == "__main__":
    sys.exit(main())

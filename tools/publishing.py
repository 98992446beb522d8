"""Prepare distributions for a package index: absolute links in the README, and project URLs.

A README that is shown away from the repository cannot have relative links. They are made absolute
in a copy that is built; both they and the project URLs come from one setting, ``repository`` in the
root's pyproject.toml. ``publishing.py FOLDER`` builds all four distributions into a folder, and a
wheel of the core without compiled code, for platforms that have no other.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from building import PURE, ROOT, build

FOLDERS = (ROOT, *sorted(path.parent for path in ROOT.glob("integrations/*/pyproject.toml")))
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "build", "dist", "*.egg-info", "*.so", "*.pyd"
)
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<target>[^)\s]+)\)")


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the pyproject.toml of a folder."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def repository() -> str:
    """Return the public address of the repository."""
    return str(read_settings(ROOT)["tool"]["bm25rag"]["repository"])


def project_urls(version: str) -> dict[str, str]:
    """Return the project URLs of a version."""
    address = repository()
    return {
        "Repository": address,
        "Documentation": f"{address}/blob/v{version}/docs/index.md",
        "Changelog": f"{address}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def absolute(text: str, folder: PurePosixPath, version: str) -> str:
    """Make the relative links of a page absolute; ``folder`` is the page's in the repository."""

    def link(found: re.Match[str]) -> str:
        path = normpath(folder / found["target"])
        kind = "raw" if found["image"] else "blob"
        return f"{found['image']}[{found['text']}]({repository()}/{kind}/v{version}/{path})"

    parts = _FENCED.split(text)  # every second one is a fenced block
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def links_of(text: str) -> list[str]:
    """Return the targets of the relative links of a page."""
    return [found["target"] for part in _FENCED.split(text)[::2] for found in _LINK.finditer(part)]


def prepare(folder: Path, target: Path) -> Path:
    """Copy a distribution's folder to ``target`` as it is built for a package index."""
    shutil.copytree(folder, target, ignore=_LEFT_OUT)
    version = read_settings(folder)["project"]["version"]
    readme, project = target / "README.md", target / "pyproject.toml"
    within = PurePosixPath(folder.relative_to(ROOT).as_posix())
    text = absolute(readme.read_text(encoding="utf-8"), within, version)
    readme.write_text(text, encoding="utf-8")
    lines = [f'{name} = "{url}"' for name, url in project_urls(version).items()]
    with project.open("a", encoding="utf-8") as file:
        file.write("\n".join(["\n[project.urls]", *lines, ""]))
    return target


def main() -> None:
    """Build all distributions, unless the address is still the one of an example."""
    if "//example." in repository():
        sys.exit("set repository under [tool.bm25rag] in pyproject.toml to the public address")
    folder = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        for number, source in enumerate(FOLDERS):
            made = Path(name) / "made" / str(number)
            print(
                build(
                    prepare(source, Path(name) / "source" / str(number)), made, isolated=True
                ).name
            )
            shutil.copytree(made, folder, dirs_exist_ok=True)
        core, made = Path(name) / "source" / "0", Path(name) / "made" / "pure"
        print(build(core, made, "--wheel", isolated=True, settings=PURE).name)
        shutil.copytree(made, folder, dirs_exist_ok=True)


if __name__ == "__main__":
    main()

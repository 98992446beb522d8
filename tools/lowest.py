"""Print, as pip's constraints, the lowest versions that a project claims to work with."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

_FLOOR = re.compile(r"(?P<name>[\w.-]+)(\[.*])?[^;>]*>=(?P<floor>[\w.]+)")


def lowest_versions(project: dict[str, Any]) -> list[str]:
    """Pin every requirement of a ``[project]`` table, and of the extras for users, to its floor.

    Raises
    ------
    ValueError
        If a requirement has no floor.
    """
    extras = project.get("optional-dependencies", {})
    names = ("arrow", "cli", "eval", "mcp", "remote", "watch", "zstd")
    wanted = [*project["dependencies"], *(one for name in names for one in extras.get(name, []))]
    pins = []
    for requirement in wanted:
        if requirement.startswith("bm25rag["):  # another extra
            continue
        found = _FLOOR.match(requirement)
        if found is None:
            raise ValueError(f"the requirement {requirement!r} names no lowest version")
        if found["name"] != "bm25rag":  # it comes from this very checkout
            pins.append(f"{found['name']}=={found['floor']}")
    return pins


def read_project(path: Path) -> dict[str, Any]:
    """Return the ``[project]`` table of a pyproject.toml."""
    project: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return project


if __name__ == "__main__":
    print("\n".join(lowest_versions(read_project(Path(sys.argv[1])))))

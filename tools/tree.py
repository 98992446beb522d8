"""Tell whether a check has left files behind or changed some.

``tree.py remember FILE`` before, ``tree.py compare FILE`` after; outside a git checkout
both do nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def status() -> str:
    """Return what git calls changed or unknown; nothing where there is no checkout."""
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""


def main(what: str, memory: Path) -> None:
    """Write the state down, or compare it with what was written; exit with 1 if it differs."""
    now = status()
    if what == "remember":
        memory.write_text(now, encoding="utf-8")
        return
    before = set(memory.read_text(encoding="utf-8").splitlines())
    if differences := sorted(before ^ set(now.splitlines())):
        sys.exit("the check changed the tree:\n" + "\n".join(differences))
    print("the tree is as it was" + ("" if now else ": clean"))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

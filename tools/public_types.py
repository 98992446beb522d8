"""Check that pyright knows the types of all that is public: ``public_types.py PYRIGHT``.

It looks at what is installed beside the interpreter that runs this, which must not be editable.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_REFERENCE = Path(__file__).parents[1] / "docs" / "site" / "reference"


def main() -> int:
    """Print the names whose types a type checker has to guess; fail if there are any."""
    symbols = _symbols("bm25rag", str(Path(sys.argv[1]).resolve()))
    public = re.compile("|".join(rf"{re.escape(name)}(\..+)?" for name in _public()))
    known = {name: is_known for name, is_known in symbols.items() if public.fullmatch(name)}
    for name, is_known in known.items():
        if not is_known:
            print(f"the type of {name} is not known")
    print(f"{sum(known.values())} of {len(known)} public names have types that pyright knows")
    return int(not known or not all(known.values()))


def _public() -> set[str]:
    """Return what the reference names, where it is defined."""
    text = "".join(path.read_text("utf-8") for path in _REFERENCE.glob("*.md"))
    names = set()
    for found in re.findall(r"automodule:: (bm25rag\S*)", text):
        if found != "bm25rag.distributed.ray":  # Ray is not installed
            module = importlib.import_module(found)
            objects = {name: getattr(module, name) for name in module.__all__}
            names |= {
                f"{getattr(one, '__module__', found)}.{name}" for name, one in objects.items()
            }
    return names


def _symbols(package: str, pyright: str) -> dict[str, bool]:
    """Return the names that a package exports, and whether their types are known."""
    # Which Python it looks at is decided by the path, where packages are verified.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [pyright, "--outputjson", "--ignoreexternal", "--verifytypes", package]
    with tempfile.TemporaryDirectory() as folder:  # not the checkout, whose sources it would take
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"PATH": path},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    found = json.loads(done.stdout)["typeCompleteness"]
    if not found.get("pyTypedPath"):
        sys.exit(f"{package} is not installed here, or has no py.typed")
    return {one["name"]: one["isTypeKnown"] for one in found["symbols"] if one["isExported"]}


if __name__ == "__main__":
    sys.exit(main())

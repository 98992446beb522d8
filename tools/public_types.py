"""Check that pyright knows the types that packages export: ``public_types.py PYRIGHT MODULE...``.

It looks at what is installed beside the interpreter that runs this, which must not be editable.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Percent of a package's names whose type no type checker has to guess.
_LEAST = 95.0


def main() -> int:
    """Print the share of each module's names; fail if one is too low."""
    pyright, *modules = sys.argv[1:]
    shares = {module: _share_of(module, str(Path(pyright).resolve())) for module in modules}
    for module, share in shares.items():
        print(f"{module}: the types of {share:.1f} % of its names are known")
    return int(min(shares.values()) < _LEAST)


def _share_of(module: str, pyright: str) -> float:
    # Which Python it looks at is decided by the path, where packages are verified.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [pyright, "--outputjson", "--ignoreexternal", "--verifytypes", module]
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
        sys.exit(f"{module} is not installed here, or has no py.typed")
    return float(found["completenessScore"]) * 100


if __name__ == "__main__":
    sys.exit(main())

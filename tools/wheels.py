"""Build what the environments of a check install, each wheel once: into ``WHEELS``.

Of every distribution its wheel, and of the core one more that stands for the checkout, as
``pip install -e`` makes it.
"""

from __future__ import annotations

import shutil
import sys

from building import CORE, EDITABLE, ROOT, WHEELS, build, run

_BUILD_EDITABLE = """
import sys
from build import ProjectBuilder

ProjectBuilder(sys.argv[1]).build("editable", sys.argv[2])
"""


def main() -> None:
    """Build them, one after the other: they share the folder ``build``."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    build(ROOT, WHEELS / CORE, "--no-isolation", "--wheel")
    run(sys.executable, "-c", _BUILD_EDITABLE, ROOT, WHEELS / EDITABLE)
    for project in sorted(ROOT.glob("integrations/*/pyproject.toml")):
        build(project.parent, WHEELS / project.parent.name, "--no-isolation", "--wheel")


if __name__ == "__main__":
    main()

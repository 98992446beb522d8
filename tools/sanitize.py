"""Run tests with the kernels under AddressSanitizer and UBSan: ``sanitize.py PYTHON TEST...``.

``CC`` is gcc or clang, with its sanitizers installed. The wheel is compiled and installed for
``PYTHON``, the interpreter of an environment of its own. Whatever a sanitizer reports, in any
process, is printed and ends in failure, also where a test would not notice.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from building import ROOT, build, install, run
from publishing import prepare

_FLAGS = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
# Reads beyond an array on purpose: were that not reported, nothing would be.
_WRONG = """
import numpy as np
from bm25rag.kernels import backend
assert backend.why_not_compiled() is None, backend.why_not_compiled()
from bm25rag.kernels.selecting import kth
numbers = np.zeros(2)
kth(numbers, 1000, 3, np.zeros(1000), np.zeros(100_000, np.int64))
"""


def main() -> None:
    """Compile, see that a fault is reported, and run the tests."""
    python, tests = str(Path(sys.argv[1]).absolute()), sys.argv[2:]
    compiler = os.environ.get("CC", "gcc")
    clang = "clang" in compiler
    flags = f"{_FLAGS} -shared-libasan" if clang else _FLAGS
    library = "libclang_rt.asan-x86_64.so" if clang else "libasan.so"
    runtime = Path(run(compiler, f"-print-file-name={library}").strip())
    if not runtime.is_absolute():
        sys.exit(f"{compiler} has no {library}: install its sanitizers")
    with tempfile.TemporaryDirectory() as name:
        source = prepare(ROOT, Path(name) / "source")
        settings = {"CC": compiler, "CFLAGS": flags, "LDFLAGS": flags}
        made = Path(name) / "made"
        wheel = build(source, made, "--wheel", settings=settings)
        install(Path(python), "--reinstall-package", "bm25rag", f"{wheel}[test]")
        reports = Path(name) / "reports"
        reports.mkdir()
        environment = _environment(runtime, reports)
        command: list[str | Path] = [python, "-P", "-c", _WRONG]
        code = subprocess.run(command, env=environment, capture_output=True, check=False).returncode
        if code == 0 or "AddressSanitizer" not in _take(reports):
            sys.exit("AddressSanitizer did not report what is wrong on purpose")
        command = [python, "-P", "-m", "pytest", "-q", "-n", "auto", "--dist=worksteal"]
        command += ["-m", "not slow", "--hypothesis-profile=quick", *tests]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if said := _take(reports):
            sys.exit(f"{said}\nthe sanitizers reported the above")
    if code:
        sys.exit("tests failed")
    print(f"{wheel.name}: AddressSanitizer and UBSan of {compiler} have nothing to report")


def _environment(runtime: Path, reports: Path) -> dict[str, str]:
    """Return the environment of processes under the sanitizers, which report into a folder."""
    # Python's own allocator would hide where its objects end; what it leaks at exit is no fault.
    options = f"log_path={reports / 'report'}:detect_leaks=0:print_stacktrace=1"
    changed = {"LD_PRELOAD": str(runtime), "ASAN_OPTIONS": options, "UBSAN_OPTIONS": options}
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, **changed, "PYTHONMALLOC": "malloc"}


def _take(reports: Path) -> str:
    """Return what was reported, and forget it."""
    found = []
    for path in sorted(reports.iterdir()):
        found.append(path.read_text(encoding="utf-8", errors="replace"))
        path.unlink()
    return "\n".join(found)


if __name__ == "__main__":
    main()

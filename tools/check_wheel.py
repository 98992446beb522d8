"""Build the core, install its wheel where nothing else is, and use it as a stranger would.

So is the wheel without compiled code, which also has to give way to the other.
"""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from building import KERNELS, PURE, ROOT, SUFFIX, UV, build, install, new_environment, run
from publishing import prepare, repository

_SCRIPT = """
import sys
import warnings
from pathlib import Path

warnings.simplefilter("error")
import bm25rag
from bm25rag import Analyzer, BM25Index

assert Path(bm25rag.__file__).is_relative_to(sys.prefix), bm25rag.__file__
index = BM25Index(analyzer=Analyzer(language="german"))
index.add(["Die Katzen schlafen.", "Ein Hund bellt."], metadata=[{"n": 1}, {"n": 2}])
assert [hit.id for hit in index.search("Katze", filter={"n": 1})] == ["0"]
try:
    index.to_scipy()
except bm25rag.errors.MissingDependencyError as error:
    assert "bm25rag[scipy]" in str(error)
else:
    raise AssertionError("SciPy is here")
index.save("index")
assert BM25Index.open("index", verify=True).search("Hunde") == index.search("Hunde")
"""


def main() -> None:
    """Check sdist and wheel, in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = prepare(ROOT, folder / "source")
        wheel = build(source, folder / "here", "--sdist", "--wheel")  # not the one from the other
        check_contents(wheel)
        _check_checkout(source)
        _check_metadata(wheel)
        sdist = next((folder / "here").glob("*.tar.gz"))
        _check_sdist(sdist)
        # In isolation, where no program is found, hence no compiler but ziglang.
        bare = {"PATH": "", "CC": None}
        alone = build(sdist, folder / "alone", "--wheel", isolated=True, settings=bare)
        if _members(wheel) != _members(alone):
            sys.exit("the wheel differs when it is built in isolation")
        python = new_environment(folder / "venv")
        _check_core(python, wheel, folder)
        _check_command_line(python, wheel, folder)
        pure = build(source, folder / "pure", "--wheel", settings=PURE)
        _check_pure(pure, wheel, folder)
    print(f"{wheel.name}: builds, installs and works alone, and with [cli]")
    print(f"{pure.name}: compiles nothing, works without PyStemmer, and gives way to the other")


def _check_checkout(source: Path) -> None:
    """Check that Python in the folder of a build runs compiled, and says nothing."""
    used = "import bm25rag.kernels.backend as backend; print(backend.current().name)"
    settings = {"BM25RAG_KERNELS": None}
    said = run(sys.executable, "-W", "error", "-c", used, cwd=source, settings=settings)
    if said != "compiled\n":
        sys.exit(f"in the folder of the build, Python runs {said}")


def _members(wheel: Path) -> list[tuple[str, int]]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted((member.filename, member.CRC) for member in archive.infolist())


def check_contents(wheel: Path, suffix: str | None = SUFFIX) -> None:
    """Check that a wheel has everything and nothing else; without a suffix, no compiled module."""
    names = {name for name, _ in _members(wheel)}
    kinds = {".css", ".html", ".js", ".py", ".svg", ".txt"}
    sources = {path for path in (ROOT / "bm25rag").rglob("*") if path.suffix in kinds}
    expected = {path.relative_to(ROOT).as_posix() for path in sources} | {"bm25rag/py.typed"}
    expected |= {f"bm25rag/kernels/{name}{suffix}" for name in KERNELS if suffix}
    inside = {name for name in names if ".dist-info/" not in name}
    if inside != expected:
        sys.exit(f"the wheel has or lacks {sorted(inside ^ expected)}")
    for paper in ("LICENSE", "NOTICE"):
        if not any(name.endswith(f".dist-info/licenses/{paper}") for name in names):
            sys.exit(f"the wheel lacks {paper}")


def _check_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode("utf-8")
    if f"Project-URL: Repository, {repository()}\n" not in text:
        sys.exit("the wheel lacks the repository among its project URLs")
    if relative := re.findall(r"\]\((?!https?:|#)[^)]*\)", text):
        sys.exit(f"the description has relative links: {relative}")


def _check_sdist(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"Makefile", "README.md", "LICENSE", "NOTICE", "docs/filters.md", "tests/conftest.py"}
    if missing := wanted - names:
        sys.exit(f"the sdist lacks {sorted(missing)}")


def _check_core(python: Path, wheel: Path, folder: Path) -> None:
    install(python, wheel)
    run(python, "-I", "-c", _SCRIPT, cwd=folder)
    said = run(python, "-I", "-m", "bm25rag", cwd=folder, code=3)
    if not re.fullmatch(r"bm25rag: the command line needs .* pip install 'bm25rag\[cli\]'\n", said):
        sys.exit(f"without the extra, the command line said: {said}")


def _check_command_line(python: Path, wheel: Path, folder: Path) -> None:
    install(python, f"{wheel}[cli]")
    command = python.parent / "bm25rag"
    version = run(command, "--version", cwd=folder)
    if wheel.name.split("-")[1] not in version:
        sys.exit(f"{wheel.name} calls itself {version}")
    run(command, "index", ROOT / "docs", "--output", "docs.bm25", cwd=folder)
    if "filters" not in run(command, "search", "docs.bm25", "filter by date", cwd=folder):
        sys.exit("the installed command found nothing in docs/")
    run(command, "verify", "docs.bm25", cwd=folder)


def _check_pure(pure: Path, wheel: Path, folder: Path) -> None:
    if not pure.name.endswith("-py3-none-any.whl"):
        sys.exit(f"{pure.name} is not for every platform")
    check_contents(pure, suffix=None)
    _check_metadata(pure)
    found = folder / "found"
    found.mkdir()
    for path in (pure, wheel):
        shutil.copy(path, found)
    both = new_environment(folder / "both")
    install(both, "--no-index", "--no-deps", "--find-links", found, "bm25rag")
    if not list((folder / "both").rglob(f"searching{SUFFIX}")):
        sys.exit(f"of both wheels, {pure.name} was installed")
    python = new_environment(folder / "none")
    install(python, pure, "snowballstemmer")
    run(UV, "pip", "uninstall", "-q", "--python", python, "PyStemmer")
    asked = {"BM25RAG_KERNELS": "numpy"}  # without which a warning says that it is slow
    run(python, "-I", "-c", _SCRIPT, cwd=folder, settings=asked)


if __name__ == "__main__":
    main()

"""Install an adapter from its wheel into an environment of its own, and check it there.

``adapters.py install NAME PYTHON [--lowest]`` installs the wheels of the core and of
``integrations/NAME`` with what they and the tests need. ``adapters.py check NAME PYTHON LOWEST``
brings both wheels up to date in an environment of the newest versions and one of the lowest,
checks types in the first, and runs the adapter's tests in both. The wheels are those that
tools/wheels.py has built. ``adapters.py together PYTHON`` runs the tests of all adapters.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from building import CORE, ROOT, WHEELS, pip, run
from lowest import lowest_versions, read_project


def wheels_of(name: str) -> list[Path]:
    """Return the wheels of the core and of an adapter."""
    return [next((WHEELS / folder).glob("*.whl")) for folder in (CORE, name)]


def install(name: str, python: Path, lowest: bool) -> None:
    """Install both wheels with the adapter's requirements, at their lowest versions on demand."""
    project = read_project(ROOT / "integrations" / name / "pyproject.toml")
    if "test" not in project.get("optional-dependencies", {}):  # pip would only warn
        sys.exit(f"integrations/{name}/pyproject.toml has no extra 'test' for its tests")
    core, adapter = wheels_of(name)
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "lowest.txt"
        pins.write_text("\n".join(lowest_versions(project) if lowest else []), encoding="utf-8")
        pip(python, "install", "--no-compile", core, f"{adapter}[test]", "-c", pins)


def check(name: str, python: Path, lowest: Path) -> int:
    """Check the wheels in both environments at once; return an exit code."""
    for each in (python, lowest):
        pip(each, "install", "--no-compile", "--no-deps", "--force-reinstall", *wheels_of(name))
    tests = ROOT / "integrations" / name / "tests"
    # -P: what is imported is what was installed, not what lies in the checkout.
    options: list[str | Path] = ["-P", "-m", "pytest", "-q"]
    # Old frameworks beside new libraries warn on their own behalf; types are not asked there.
    old: list[str | Path] = [
        lowest,
        *options,
        "-p",
        "no:cacheprovider",
        "-o",
        "filterwarnings=default",
        tests,
    ]
    with subprocess.Popen(old, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        print(check_types(name, python), end="", flush=True)
        code = subprocess.run([python, *options, tests], cwd=ROOT, check=False).returncode
        print(f"{name} at its lowest versions\n{other.communicate()[0]}", end="", flush=True)
    return code or other.returncode


def together(python: Path) -> int:
    """Run the tests of all adapters at once, in one environment; return an exit code."""
    # pytest-asyncio warns where its options are missing, as for adapters that do without it.
    options = ["-P", "-m", "pytest", "-q", "-W", "ignore::pytest.PytestDeprecationWarning"]
    running: list[subprocess.Popen[str]] = [
        subprocess.Popen([python, *options, tests], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for tests in sorted(ROOT.glob("integrations/*/tests"))
    ]
    for one in running:
        print(one.communicate()[0], end="", flush=True)
    return int(any(one.returncode for one in running))


def check_types(name: str, python: Path) -> str:
    """Run mypy over an adapter's packages, with what is installed beside it."""
    folder = ROOT / "integrations" / name
    base = folder / "src" if (folder / "src").is_dir() else folder
    marked = sorted(base.rglob("py.typed"))
    packages = [".".join(path.parent.relative_to(base).parts) for path in marked]
    command: list[str | Path] = [sys.executable, "-m", "mypy", *options_for(name, python)]
    # Not from the root, where the core's sources would hide what is installed.
    return run(*command, *(word for package in packages for word in ("-p", package)), cwd=base)


def options_for(name: str, python: Path) -> list[str | Path]:
    """Return mypy's options: our configuration, the adapter's environment."""
    cache = ROOT / ".mypy_cache" / name
    options = {
        "--config-file": ROOT / "pyproject.toml",
        "--cache-dir": cache,
        "--python-executable": python.absolute(),
    }
    return [word for option in options.items() for word in option]


def main() -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    installing, checking = commands.add_parser("install"), commands.add_parser("check")
    commands.add_parser("together").add_argument("python", type=Path)
    for command in (installing, checking):
        command.add_argument("name")
        command.add_argument("python", type=Path)
    installing.add_argument("--lowest", action="store_true", help="at the lowest versions")
    checking.add_argument("lowest", type=Path)
    given = parser.parse_args()
    if given.what == "check":
        return check(given.name, given.python, given.lowest)
    if given.what == "together":
        return together(given.python)
    install(given.name, given.python, given.lowest)
    return 0


if __name__ == "__main__":
    sys.exit(main())

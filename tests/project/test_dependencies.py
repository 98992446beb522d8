"""What the core needs on each platform."""

from __future__ import annotations

import tomllib

import pytest

from support.environment import ROOT

requirements = pytest.importorskip("packaging.requirements")
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="there is no checkout"
)

CPYTHON = {"implementation_name": "cpython", "extra": ""}
PLATFORMS = [
    ("linux", "x86_64", "PyStemmer"),
    ("linux", "aarch64", "PyStemmer"),
    ("darwin", "arm64", "PyStemmer"),
    ("darwin", "x86_64", "PyStemmer"),
    ("win32", "AMD64", "PyStemmer"),
    ("win32", "ARM64", "PyStemmer"),
    ("linux", "riscv64", "snowballstemmer"),
    ("emscripten", "wasm32", "snowballstemmer"),
    ("ios", "arm64", "snowballstemmer"),
]


def stemmers(environment: dict[str, str]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [requirements.Requirement(line) for line in project["dependencies"]]
    asked = [one for one in needed if one.marker is None or one.marker.evaluate(environment)]
    return [one.name for one in asked if "stemmer" in one.name.lower()]


@pytest.mark.parametrize(("system", "machine", "stemmer"), PLATFORMS)
def test_each_platform_gets_the_one_stemmer_that_it_has_a_wheel_of(
    system: str, machine: str, stemmer: str
) -> None:
    environment = CPYTHON | {"sys_platform": system, "platform_machine": machine}
    assert stemmers(environment) == [stemmer]


def test_other_pythons_get_the_stemmer_in_pure_python() -> None:
    environment = {"implementation_name": "pypy", "sys_platform": "linux"}
    assert stemmers(environment | {"platform_machine": "x86_64", "extra": ""}) == [
        "snowballstemmer"
    ]

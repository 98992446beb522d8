"""Kernels are compiled by any Python of a machine, and without them all else is installed."""

from __future__ import annotations

import runpy
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from support.environment import ROOT

pytest.importorskip("Cython")
setuptools = pytest.importorskip("setuptools")
pytestmark = pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="there is no checkout")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what compiles, in a folder of its own, one module that needs Python's headers."""
    given: dict[str, Any] = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", given.update)
    runpy.run_path("setup.py")
    assert all(one.optional for one in given["ext_modules"])
    source = tmp_path / "probe.c"
    source.write_text("#include <Python.h>\nPyMODINIT_FUNC PyInit_probe(void) { return NULL; }\n")
    probe = setuptools.Extension("probe", [str(source)], optional=True)
    made = given["cmdclass"]["build_ext"](setuptools.Distribution({"ext_modules": [probe]}))
    made.build_lib, made.build_temp = str(tmp_path / "lib"), str(tmp_path / "temp")
    return made


def built(command: Any, *folders: Path) -> bool:
    command.ensure_finalized()
    command.include_dirs = [str(folder) for folder in folders]
    command.run()
    return any(Path(command.build_lib).rglob("probe*"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Debian's headers")
def test_debians_headers_of_several_processors_are_found(command: Any, tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    real = Path(sysconfig.get_paths()["include"])
    folder = tmp_path / "include" / real.name
    folder.mkdir(parents=True)
    for header in real.iterdir():
        (folder / header.name).symlink_to(header)
    (folder / "pyconfig.h").unlink()
    (folder / "pyconfig.h").write_text(f"#include <processor/{real.name}/pyconfig.h>\n")
    (tmp_path / "include" / "processor").mkdir()
    (tmp_path / "include" / "processor" / real.name).symlink_to(real)
    assert built(command, folder)


@pytest.mark.slow
def test_a_compiler_without_a_name_is_none_chosen(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setenv("CC", "")
    assert built(command, Path(sysconfig.get_paths()["include"]))
    backend = runpy.run_path("tools/build_backend.py")
    assert "ziglang>=0.13" in backend["get_requires_for_build_editable"]()


@pytest.mark.parametrize("compiler", [None, "no-such-compiler"])
def test_without_headers_or_a_compiler_all_else_is_installed(
    command: Any, compiler: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiler is not None:
        monkeypatch.setenv("CC", compiler)
    assert not built(command)

"""Compiles the kernels; all else about the package is in pyproject.toml.

``CC`` names the compiler. Where it is not set, it is the one in the wheel ``ziglang``, so that
nothing need be installed and every machine makes the same code. ``BM25RAG_CHECK_BOUNDS=1`` has
every index checked, for the tests.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

_KERNELS = ("bigrams", "building", "scanning", "searching", "selecting", "signs", "words")
# A product and a sum are rounded each for itself, or scores would depend on the processor.
_FLAGS = ["-O3", "-ffp-contract=off", "-fwrapv", "-g0"]
_ON_MAC = sys.platform == "darwin"
_SHARED = ["-bundle", "-undefined", "dynamic_lookup"] if _ON_MAC else ["-shared"]
# One wheel runs on this Python and all later ones, but for those without a GIL.
_ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED")
_DIRECTIVES = {
    "boundscheck": os.environ.get("BM25RAG_CHECK_BOUNDS") == "1",
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": False,
    # Kernels share nothing between threads.
    "freethreading_compatible": True,
}


class BuildKernels(build_ext):
    """Compiles with ``CC``, or with zig, for any processor of the platform."""

    def build_extensions(self) -> None:
        """Choose the compiler, and compile."""
        if "CC" not in os.environ and self.compiler.compiler_type == "unix":
            zig = [sys.executable, "-m", "ziglang", "cc", *_target()]
            self.compiler.set_executables(
                compiler_so=[*zig, "-fPIC", "-DNDEBUG"], linker_so=[*zig, *_SHARED, "-s"]
            )
            os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(Path(self.build_temp) / "zig"))
        self.parallel = os.cpu_count()
        super().build_extensions()


def _target() -> list[str]:
    """Return the options that name the platform.

    On Linux that is the oldest libc that Python's wheels run on, with zig's own headers and
    start-up code: else the result would depend on what is installed.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in {"x86_64", "aarch64"}:
        return ["-mcpu=baseline"]
    musl = "musl" in str(sysconfig.get_config_var("SOABI"))
    return ["-target", f"{machine}-linux-{'musl' if musl else 'gnu.2.17'}"]


class Build(build):
    """Packs what is there now: setuptools keeps modules that an earlier build copied."""

    def run(self) -> None:
        """Forget what was copied, and build."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    ext_modules=cythonize(
        [
            Extension(
                f"bm25rag.kernels.{name}",
                [f"bm25rag/kernels/{name}.py"],
                extra_compile_args=_FLAGS,
                define_macros=[("Py_LIMITED_API", "0x030B0000")] if _ABI3 else [],
                py_limited_api=_ABI3,
                optional=True,
            )
            for name in _KERNELS
        ],
        build_dir="build",
        compiler_directives=_DIRECTIVES,
        language_level=3,
        show_all_warnings=False,
    ),
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if _ABI3 else {},
    cmdclass={"build": Build, "build_ext": BuildKernels},
)

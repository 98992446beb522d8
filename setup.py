"""Compiles the kernels; all else about the package is in pyproject.toml.

``CC`` names the compiler. Where it is not set, it is the one in the wheel ``ziglang``, so that
nothing need be installed and every machine makes the same code. ``BM25RAG_TARGET`` has it compile
for another Linux than this one, in zig's words: ``aarch64-linux-gnu.2.17``, ``x86_64-linux-musl``.
``BM25RAG_PURE=1`` compiles nothing: the wheel runs in NumPy on every platform, browsers included.
``BM25RAG_CHECK_BOUNDS=1`` has every index checked, for the tests.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

_PATH = "bm25rag/kernels"
# The modules that are compiled.
_KERNELS = sorted(
    path.stem for path in Path(_PATH).glob("*.py") if "\nimport cython\n" in path.read_text("utf-8")
)
# What Cython writes for memoryviews. The file must have the name of the module, or it would be
# put into sys.modules as "shared", too.
_SHARED = "bm25rag.kernels.shared"
# A product and a sum are rounded each for itself, or scores would depend on the processor.
_FLAGS = ["-ffp-contract=off", "-fwrapv"]
# zig keeps a register for the frame pointer, which costs the walk of postings 6 to 9 %.
_OPTIMISED = ["-O3", "-g0", "-fomit-frame-pointer"]
# Such a Python turns the GIL on when it imports the kernels, whose threads share tables that are
# changed while it is held.
_WITHOUT_GIL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
_DIRECTIVES = {
    "boundscheck": os.environ.get("BM25RAG_CHECK_BOUNDS") == "1",
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": False,
    # Nobody pickles what kernels prepare.
    "auto_pickle": False,
    "binding": False,
}
_ZIG = [sys.executable, "-m", "ziglang", "cc", "-shared", "-s", "-DNDEBUG", "-mcpu=baseline"]
_TARGET = os.environ.get("BM25RAG_TARGET")
_PURE = os.environ.get("BM25RAG_PURE") == "1"
_WINDOWS = {"win-amd64": "x86_64-windows-gnu", "win-arm64": "aarch64-windows-gnu"}


class BuildKernels(build_ext):
    """Compiles with ``CC``, or with zig, for any processor of the platform."""

    def build_extensions(self) -> None:
        """Compile on all cores, of which each takes some 200 MB, but on no more than eight."""
        os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(Path(self.build_temp) / "zig"))
        self.parallel = min(os.cpu_count() or 1, 8)
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Compile and link one module, by setuptools if there is a compiler that it knows."""
        if os.environ.get("CC"):
            super().build_extension(ext)
            return
        library = Path(self.get_ext_fullpath(ext.name))
        library.parent.mkdir(parents=True, exist_ok=True)
        includes = [f"-I{folder}" for folder in self.include_dirs]
        # Where Debian has one Python for several processors, its header looks for that of one from
        # the folder above.
        includes += [f"-idirafter{Path(folder).parent}" for folder in self.include_dirs]
        macros = [f"-D{name}={value}" for name, value in ext.define_macros]
        files = [*ext.sources, "-o", str(library)]
        self.spawn([*_ZIG, *_FLAGS, *_OPTIMISED, *macros, *includes, *files, *self._platform()])

    def _platform(self) -> list[str]:
        """Return what zig is told of the platform."""
        if _TARGET is not None:
            return ["-target", _TARGET]
        if sys.platform == "darwin":
            machine = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())
            # Else it would be this machine's, and the wheel would not load on older ones.
            least = os.environ.get("MACOSX_DEPLOYMENT_TARGET", "11.0")
            return ["-target", f"{machine}-macos.{least}", "-undefined", "dynamic_lookup"]
        if sys.platform == "win32":
            # Its headers serve both, with and without the GIL, and know 64 bits by MSVC alone.
            define = ["-DMS_WIN64", *(["-DPy_GIL_DISABLED=1"] if _WITHOUT_GIL else [])]
            library = "-lpython{}{}{}".format(*sys.version_info[:2], "t" if _WITHOUT_GIL else "")
            folders = [f"-L{folder}" for folder in self.library_dirs]
            return ["-target", _WINDOWS[sysconfig.get_platform()], *define, *folders, library]
        if sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}:
            # The oldest libc that Python's wheels run on, with zig's own headers and start-up
            # code: else the result would depend on what is installed.
            libc = "musl" if "musl" in str(sysconfig.get_config_var("SOABI")) else "gnu.2.17"
            return ["-target", f"{platform.machine()}-linux-{libc}"]
        return []


class Build(build):
    """Packs what is there now: setuptools keeps modules that an earlier build copied."""

    def run(self) -> None:
        """Forget what was copied, build, and leave what was compiled in the checkout, too.

        Python that is started there imports the checkout, not what was installed.
        """
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if _TARGET is None and not _PURE:
            try:
                self.get_finalized_command("build_ext").copy_extensions_to_source()
            except OSError as error:  # on Windows, a Python that runs there holds the old ones
                self.warn(f"Python in this folder will not run compiled: {error}")


def _wheel_tag(target: str) -> str:
    """Return the platform of a wheel for another Linux."""
    known = re.fullmatch(r"(\w+)-linux-(?:(gnu)\.(\d\.\d+)|(musl))", target)
    if not known or sys.platform != "linux" or _WITHOUT_GIL:
        like = "aarch64-linux-gnu.2.17 or x86_64-linux-musl, on Linux with a GIL"
        raise SystemExit(f"BM25RAG_TARGET must be like {like}, not {target!r}")
    machine, gnu, version, _ = known.groups()
    return f"manylinux_{version.replace('.', '_')}_{machine}" if gnu else f"musllinux_1_2_{machine}"


def _extension(name: str, source: str) -> Extension:
    """Return what is compiled of a module."""
    return Extension(
        f"bm25rag.kernels.{name}",
        [source],
        # Who sets CFLAGS has said how to optimise; they come before these.
        extra_compile_args=_FLAGS if "CFLAGS" in os.environ else [*_FLAGS, *_OPTIMISED],
        # Python's headers are those of this machine, of which the limited API needs least. With it,
        # a question takes 4 % longer.
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if _TARGET else [],
        py_limited_api=bool(_TARGET),
    )


_WHEEL = {}
if _TARGET and not _PURE:
    _WHEEL = {"py_limited_api": "cp311", "plat_name": _wheel_tag(_TARGET)}


def _extensions() -> list[Extension]:
    """Return what is compiled."""
    if _PURE:
        return []
    extensions: list[Extension] = cythonize(
        [_extension(name, f"{_PATH}/{name}.py") for name in _KERNELS]
        + [_extension("shared", f"{_PATH}/{_SHARED}.c")],
        shared_utility_qualified_name=_SHARED,
        build_dir="build/c",
        compiler_directives=_DIRECTIVES,
        language_level=3,
        show_all_warnings=False,
    )
    for extension in extensions:  # which Cython does not keep
        # Without Python's headers, or a compiler, it runs in NumPy, and says so.
        extension.optional = _TARGET is None
    return extensions


setup(
    ext_modules=_extensions(),
    options={"bdist_wheel": _WHEEL},
    cmdclass={"build": Build, "build_ext": BuildKernels},
)

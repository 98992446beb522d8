"""Compile a wheel for another Linux and check what it holds: ``cross.py TARGET [FOLDER]``.

``TARGET`` is in zig's words, such as ``aarch64-linux-gnu.2.17`` or ``x86_64-linux-musl``. Nothing
of the wheel can run here, so its tags are compared with what its libraries say of themselves.
"""

from __future__ import annotations

import re
import shutil
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

from building import KERNELS, ROOT, build
from check_wheel import check_contents
from publishing import prepare

# What an ELF file calls the processor (`e_machine`), and the loader of musl or glibc.
_MACHINES = {"aarch64": 183, "powerpc64le": 21, "riscv64": 243, "s390x": 22, "x86_64": 62}
# What ends the names of modules that are compiled with the limited API.
_SUFFIX = ".abi3.so"
_LIBRARIES = {"gnu": {b"libc.so.6", b"libm.so.6"}, "musl": {b"libc.so"}}


def main() -> None:
    """Compile the wheel of one target, check it, and keep it if a folder is named."""
    target = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        source = prepare(ROOT, Path(name) / "source")
        settings = {"BM25RAG_TARGET": target, "CC": None}
        wheel = build(source, Path(name) / "made", "--wheel", settings=settings)
        _check(wheel, target)
        if left := [*(source / "bm25rag" / "kernels").glob(f"*{_SUFFIX}")]:
            sys.exit(f"the build leaves what this machine cannot run: {left}")
        if len(sys.argv) > 2:  # others may be there
            Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
            shutil.copy(wheel, sys.argv[2])
    print(f"{wheel.name}: compiled for {target}, complete")


def _check(wheel: Path, target: str) -> None:
    machine, _, libc = target.split("-")
    libc, _, version = libc.partition(".")
    tag = wheel.stem.split("-")[-1]
    wanted = f"manylinux_{version.replace('.', '_')}" if version else "musllinux_1_2"
    if tag != f"{wanted}_{machine}":
        sys.exit(f"{wheel.name} is not named {wanted}_{machine}")
    check_contents(wheel, _SUFFIX)
    with zipfile.ZipFile(wheel) as archive:
        (about,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        if f"-{tag}\n" not in archive.read(about).decode():
            sys.exit(f"{about} does not have the tag {tag}")
        for name in KERNELS:
            path = f"bm25rag/kernels/{name}{_SUFFIX}"
            if wrong := _find_wrong(archive.read(path), name, machine, libc, version):
                sys.exit(f"{path} {wrong}")


def _find_wrong(library: bytes, name: str, machine: str, libc: str, version: str) -> str | None:
    """Return what is wrong about a library; ``None`` if nothing is."""
    number = struct.unpack(">H" if library[5] == 2 else "<H", library[18:20])[0]
    if library[:4] != b"\x7fELF" or number != _MACHINES[machine]:
        return f"is not for {machine}"
    if f"PyInit_{name}".encode() not in library:
        return "is no module of Python"
    needed = set(re.findall(rb"\0(lib[\w+]+\.so[.\d]*)(?=\0)", library))
    if not needed <= _LIBRARIES[libc]:
        return f"needs {needed}"
    wanted = [tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)]
    if wanted and (not version or max(wanted) > tuple(map(int, version.split(".")))):
        return f"needs glibc {max(wanted)}"
    return None


if __name__ == "__main__":
    main()

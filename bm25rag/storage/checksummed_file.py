r"""A file of named arrays: written once, mapped, and checked block by block as it is used.

Layout, little-endian: the 8 bytes ``bm25rag\\n``; the length of a JSON header as uint64;
the header; arrays, each aligned to 64 bytes; the CRC-32 of each 64 KiB between the header
and here, as uint32. ``docs/format.md`` has the details.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from bm25rag.common.arrays import Array, UInt8, UInt32
from bm25rag.common.chunks import Chunks
from bm25rag.common.logs import tell
from bm25rag.errors import CorruptIndexError
from bm25rag.kernels import backend
from bm25rag.kernels.records import FileBlocks
from bm25rag.storage.fs import new_file

if TYPE_CHECKING:
    import mmap

MAGIC = b"bm25rag\n"
BLOCK = 1 << 16
_ALIGN = 64
_DTYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "u8": np.uint64, "b1": np.bool_}

# What reading JSON of an unknown shape can raise.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


class FileRecord(NamedTuple):
    """What the manifest says about a file: name, size in bytes, CRC-32 of header and sums."""

    name: str
    size: int
    checksum: int


def write_arrays(path: str, arrays: Mapping[str, Array | Chunks]) -> FileRecord:
    """Write arrays, some perhaps in chunks, into a new file and flush it to disk."""
    layout: dict[str, list[object]] = {}
    end = 0
    for name, values in arrays.items():
        start = _aligned(end)
        layout[name] = [values.dtype.str[1:], len(values), start]
        end = start + values.nbytes
    header = json.dumps({"arrays": layout, "bytes": end}).encode("ascii")
    header += b" " * (_aligned(16 + len(header)) - 16 - len(header))
    with new_file(path) as file:
        file.write(MAGIC + len(header).to_bytes(8, "little") + header)
        sums = _write_data(file, arrays)
        file.write(sums)
        size = file.tell()
    return FileRecord(os.path.basename(path), size, _checksum(header, sums))


def _checksum(header: bytes, sums: bytes | memoryview) -> int:
    crc32 = backend.current().crc32
    return crc32(sums, crc32(header))


def _aligned(position: int) -> int:
    return -(-position // _ALIGN) * _ALIGN


def _write_data(file: Any, arrays: Mapping[str, Array | Chunks]) -> bytes:
    crc32, sums = backend.current().crc32, list[int]()
    running, filled, position = 0, 0, 0

    def put(data: memoryview) -> None:
        nonlocal running, filled, position
        file.write(data)
        position += len(data)
        while len(data):
            piece = data[: BLOCK - filled]
            running, filled = crc32(piece, running), filled + len(piece)
            data = data[len(piece) :]
            if filled == BLOCK:
                sums.append(running)
                running, filled = 0, 0

    for values in arrays.values():
        put(memoryview(bytes(_aligned(position) - position)))
        end, kind = position + values.nbytes, values.dtype.newbyteorder("<")
        for piece in values.pieces if isinstance(values, Chunks) else (values,):
            little = np.ascontiguousarray(piece.astype(kind, copy=False))
            put(little.view(np.uint8).data)
        if position != end:
            raise AssertionError("the chunks of an array are not as long as it is")
    if filled:
        sums.append(running)
    return np.array(sums, "<u4").tobytes()


class ArraysFile:
    """The arrays of a file, each checked before its first use.

    It is mapped, shared with other processes, or read into memory. If size, header or checksums are
    not those of ``record``, which comes from the manifest, ``CorruptIndexError`` is raised.
    ``data`` are all blocks, ``checked`` says which have been checked, and ``sums`` are what they
    must have; the kernels, which have the same, check more.
    """

    def __init__(self, path: str, record: FileRecord, mapped: bool) -> None:
        self._path = path
        self.damaged = False  # whether something was found to be wrong
        self._data = _load(path, record, mapped)
        start = self._read_header(record)
        blocks = -(-self._length // BLOCK)
        self._body = memoryview(self._data)[start : start + self._length]
        self._checked = bytearray(blocks)
        self.checked: UInt8 = np.frombuffer(self._checked, np.uint8)
        self.data: UInt8 = np.frombuffer(self._body, np.uint8)

    def _read_header(self, record: FileRecord) -> int:
        data = self._data
        length = int.from_bytes(data[8:16], "little")
        start = 16 + length
        if data[:8] != MAGIC or start > len(data):
            raise self.reject("header", "is missing")
        header = bytes(data[16:start])
        try:
            parsed = json.loads(header)
            self._length = parsed["bytes"]
            self._layout = {
                name: (_DTYPES[kind], count, offset)
                for name, (kind, count, offset) in parsed["arrays"].items()
            }
            self._check_layout()
        except UNREADABLE as error:
            raise self.reject("header", f"cannot be read ({error})") from None
        sums = data[start + self._length :]
        if _checksum(header, sums) != record.checksum:
            raise self.reject("header", "does not have the recorded checksum")
        if start % _ALIGN or len(sums) != 4 * -(-self._length // BLOCK):
            raise self.reject("header", "does not describe the file")
        self.sums: UInt32 = np.frombuffer(sums, "<u4").astype(np.uint32, copy=False)
        return start

    def _check_layout(self) -> None:
        sizes = [size for entry in self._layout.values() for size in entry[1:]]
        if not all(type(size) is int and size >= 0 for size in [self._length, *sizes]):
            raise ValueError("a size is not a natural number")
        for name, (kind, count, offset) in self._layout.items():
            if offset % _ALIGN or offset + count * np.dtype(kind).itemsize > self._length:
                raise ValueError(f"{name} lies outside")

    def __contains__(self, name: str) -> bool:
        return name in self._layout

    def array(self, name: str, *kinds: str, count: int | None = None) -> CheckedArray:
        """Return an array; ``CorruptIndexError`` if it is missing or has another kind or count."""
        if name not in self._layout:
            raise self.reject(name, "is missing")
        dtype, length, offset = self._layout[name]
        if dtype not in [_DTYPES[kind] for kind in kinds]:
            raise self.reject(
                name, f"has the dtype {np.dtype(dtype)}, expected {' or '.join(kinds)}"
            )
        if count is not None and length != count:
            raise self.reject(name, f"has {length} elements, expected {count}")
        little = np.frombuffer(self._body, np.dtype(dtype).newbyteorder("<"), length, offset)
        values: Array = little.view(dtype) if sys.byteorder == "little" else little.astype(dtype)
        return CheckedArray(self, name, values, offset)

    def check(self, name: str, start: int, stop: int) -> None:
        """Check the blocks that hold bytes ``start`` to ``stop``; ``name`` is for the message."""
        first = start // BLOCK
        if stop <= (first + 1) * BLOCK and start < stop and self._checked[first]:
            return  # most are short, and have been checked
        self._check_blocks(name, first, -(-stop // BLOCK))

    def check_all(self) -> None:
        """Check every block; raise ``CorruptIndexError``."""
        self._check_blocks("a block", 0, len(self._checked))

    def _check_blocks(self, name: str, first: int, last: int) -> None:
        checked, body, sums = self._checked, self._body, self.sums.data
        crc32 = backend.current().crc32
        for block in range(first, last):
            if not checked[block]:
                data = body[block * BLOCK : (block + 1) * BLOCK]
                if crc32(data) != sums[block]:
                    raise self.reject(name, "does not have the recorded checksum")
                checked[block] = 1

    def reject(self, name: str, problem: str) -> CorruptIndexError:
        """Return the error for contents that cannot be right."""
        self.damaged = True
        return damage(self._path, name, problem)


class CheckedArray:
    """An array of a file; slicing it checks the blocks that the slice lies in.

    ``values`` are all elements, not checked; ``offset`` is where they begin, in bytes.
    """

    __slots__ = ("_file", "_name", "_offset", "values")

    def __init__(self, file: ArraysFile, name: str, values: Array, offset: int) -> None:
        self._file, self._name, self._offset = file, name, offset
        self.values: Array = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, span: slice) -> Array:
        start, stop, _ = span.indices(len(self.values))
        self.check(start, stop)
        return self.values[start:stop]

    def check(self, start: int, stop: int) -> None:
        """Check the slice ``[start:stop]``; raise ``CorruptIndexError``."""
        offset, size = self._offset, self.values.itemsize
        self._file.check(self._name, offset + start * size, offset + stop * size)

    def ascending(self, end: int, of: str) -> Array:
        """Return all, checked: they ascend, below ``end``; ``of`` is what they number."""
        values = self[:]
        if np.any(values[1:] <= values[:-1]) or (len(values) and int(values[-1]) >= end):
            raise self.reject(f"does not ascend within the {of}")
        return values

    def reject(self, problem: str) -> CorruptIndexError:
        """Return the error for contents that cannot be right."""
        return self._file.reject(self._name, problem)

    @property
    def place(self) -> tuple[ArraysFile, int]:
        """The file, and where in it this begins, in bytes."""
        return self._file, self._offset


def file_blocks(*arrays: CheckedArray) -> FileBlocks:
    """Return where arrays of one file lie, as the kernels take it."""
    file, _ = arrays[0].place
    places = [array.place[1] for array in arrays]
    return FileBlocks(file.checked, BLOCK, places, file.data, file.sums)


def is_whole(path: str, record: FileRecord, checked: bool = False) -> bool:
    """Whether a file is there; its blocks were checked when it came, and are when they are used.

    ``checked`` looks at every byte now: what was damaged since then is not whole.
    """
    try:
        file = ArraysFile(path, record, mapped=True)
        if checked:
            file.check_all()
    except OSError:  # StorageError is one
        return False
    return True


def damage(path: str, name: str, problem: str) -> CorruptIndexError:
    """Return the error for a file whose contents cannot be right."""
    return refuse(f"{path}: {name} {problem}; restore the folder from a copy")


def refuse(message: str) -> CorruptIndexError:
    """Return the error for a file that is refused, and log it."""
    tell("files", "refused %s", message)
    return CorruptIndexError(message)


def open_regular(path: str) -> BinaryIO:
    """Open a file for reading; refuse folders, and pipes and devices, which could hang.

    A link is followed, because caches of models keep files elsewhere. It raises
    ``FileNotFoundError`` if there is nothing, and otherwise as ``check_regular``.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except OSError:
        check_regular(path)
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        check_regular(path)
    return os.fdopen(handle, "rb")


def check_regular(path: str, *, links: bool = True) -> None:
    """Check that a path, if it exists, is a file, or a link to one if ``links``.

    It raises ``CorruptIndexError`` if it is anything else.
    """
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # there is no such path
        return
    what = "no regular file"
    if stat.S_ISLNK(mode):
        what = "a link that leads to no file" if links else "a link"
        mode = _mode_behind(path) if links else 0
    if not stat.S_ISREG(mode):
        raise CorruptIndexError(f"{path}: is {what}; remove it, or restore it from a copy")


def _mode_behind(path: str) -> int:
    """Return the mode of what a link leads to, 0 if there is nothing or it leads to itself."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _load(path: str, record: FileRecord, mapped: bool) -> mmap.mmap | bytes:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size != record.size or size < 16:
            raise refuse(
                f"{path}: is {size} bytes long, expected {record.size}; "
                "restore the folder from a copy"
            )
        return _map(file) if mapped else file.read()


def _map(file: BinaryIO) -> mmap.mmap | bytes:
    """Map a file; read it where it cannot be mapped."""
    try:
        import mmap
    except ImportError:  # some builds of Python for WebAssembly
        return file.read()
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        if error.errno != errno.ENODEV:  # a file system that maps none
            raise
        return file.read()

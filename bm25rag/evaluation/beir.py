"""Downloads BEIR's collections by their public names: https://github.com/beir-cellar/beir.

An archive is fetched into ``NAME.zip.part``, where an interrupted download goes on, checked
against the sum that BEIR publishes, and unpacked beside; what cannot be continued is removed. The
folder of the collection appears under its name in one step, when it is complete.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from itertools import chain
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from tqdm import tqdm

from bm25rag.common.urls import from_home

BEIR_URL = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"


class Archive(NamedTuple):
    """What BEIR says of a collection, and of its zip archive.

    How many documents and test queries it has, the MD5 sum in hexadecimal, and megabytes, rounded
    up.
    """

    documents: str
    queries: str
    md5: str
    megabytes: int


# From BEIR's README; the queries of msmarco are those of its split "dev". BioASQ, Signal-1M,
# TREC-NEWS and Robust04 may not be passed on.
BEIR: dict[str, Archive] = {
    "msmarco": Archive("8.84M", "6,980", "444067daf65d982533ea17ebd59501e4", 4200),
    "trec-covid": Archive("171K", "50", "ce62140cb23feb9becf6270d0d1fe6d1", 74),
    "nfcorpus": Archive("3.6K", "323", "a89dba18a62ef92f7d323ec890a0d38d", 3),
    "nq": Archive("2.68M", "3,452", "d4d3d2e48787a744b6f6e691ff534307", 500),
    "hotpotqa": Archive("5.23M", "7,405", "f412724f78b0d91183a0e86805e16114", 660),
    "fiqa": Archive("57K", "648", "17918ed23cd04fb15047f73e6c3bd9d9", 18),
    "arguana": Archive("8.67K", "1,406", "8ad3e3c2a5867cdced806d6503f29b99", 4),
    "webis-touche2020": Archive("382K", "49", "46f650ba5a527fc69e0a6521c5a23563", 230),
    "cqadupstack": Archive("457K", "13,145", "4e41456d7df8ee7760a7f866133bda78", 5700),
    "quora": Archive("523K", "10,000", "18fb154900ba42a600f84b839c173167", 17),
    "dbpedia-entity": Archive("4.63M", "400", "c2a39eb420a3164af735795df012ac2c", 670),
    "scidocs": Archive("25K", "1,000", "38121350fc3a4d2f48850f6aff52e4a9", 150),
    "fever": Archive("5.42M", "6,666", "5a818580227bfb4b35bb6fa46d9b6c03", 1250),
    "climate-fever": Archive("5.42M", "1,535", "8b66f0a9126c521bae2bde127b4dc99d", 1250),
    "scifact": Archive("5K", "300", "5f7d1de60b170fc8027bb7898e2efca1", 3),
}
_BLOCK = 1 << 20
_SECONDS = 60.0  # without a byte
# Bytes of an unpacked archive: ten times what the largest, 8.8 million short passages, can have.
_UNPACKED = 32 << 30
_MOST_DIGITS = 18
_EMPTY = "the server's answer is empty"


def download(
    name: str,
    folder: str | PathLike[str],
    *,
    url: str = BEIR_URL,
    progress: bool = False,
    max_size: int | None = None,
    max_unpacked: int = _UNPACKED,
) -> Path:
    """Download a collection of BEIR, one of ``BEIR``, into ``folder/name``, unless it is there.

    Parameters
    ----------
    url
        Where ``NAME.zip`` is: BEIR's own place, or a mirror.
    max_size, max_unpacked
        How many bytes the archive may have, and unpacked; None for twice what it had when this was
        written.

    Returns
    -------
    collection
        The folder, for ``load_beir``. ``"cqadupstack"`` holds a folder for each of its forums.

    Raises
    ------
    ConnectionError
        If the archive cannot be fetched, or not completely; the next call continues.
    ValueError
        If the name or the address is wrong, the archive is too large or not the one that BEIR
        published, or it holds no collection. What was fetched is then removed.
    """
    if name not in BEIR:
        raise ValueError(f"name must be a collection of BEIR, one of {list(BEIR)}, got {name!r}")
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"url must begin with https:// or http://, got {url!r}")
    target = Path(from_home(folder), name)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{name}.zip.part")
    limit = 2_000_000 * BEIR[name].megabytes if max_size is None else max_size
    try:
        _fetch(f"{url.rstrip('/')}/{name}.zip", part, progress, limit)
        _check_sum(part, BEIR[name].md5)
        _unpack(part, target, max_unpacked)
    except ValueError:  # going on would not help
        part.unlink(missing_ok=True)
        raise
    part.unlink()
    return target


# --- fetching -------------------------------------------------------------------------------


def _fetch(address: str, part: Path, progress: bool, limit: int) -> None:
    """Fetch what is missing of a file."""
    here = part.stat().st_size if part.exists() else 0
    # A server may refuse a range that begins at the end.
    request = urllib.request.Request(
        address, headers={"Range": f"bytes={here - 1}-"} if here else {}
    )
    with _explained(address, part):
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=_SECONDS)
        with answer:
            length = _number(answer.headers.get("Content-Length", ""))
            begin = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
            goes_on = answer.status == HTTPStatus.PARTIAL_CONTENT and _number(begin) == here - 1
            if goes_on and not answer.read(1):
                raise ConnectionError(_EMPTY)
            here = here if goes_on else 0
            total = None if length is None else length + max(here - 1, 0)
            _check_size(total or 0, limit)
            _receive(answer, part, here, total, progress, limit)


def _number(given: str) -> int | None:
    """Return the number in a header; ``None`` if it is none, or no size that a file can have."""
    return int(given) if given.isdecimal() and len(given) <= _MOST_DIGITS else None


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(
            f"the archive has {size:,} bytes or more, and at most {limit:,} were expected; if that "
            "is right, raise the limit by --max-size (in Python max_size=)"
        )


def _receive(
    answer: HTTPResponse, part: Path, here: int, total: int | None, progress: bool, limit: int
) -> None:
    """Append to a file, or write it anew, and check that all came, and no more."""
    bar = tqdm(
        total=total, initial=here, unit="B", unit_scale=True, desc=part.stem, disable=not progress
    )
    with part.open("ab" if here else "wb") as file, bar:
        while block := answer.read(_BLOCK):
            file.write(block)
            bar.update(len(block))
            _check_size(file.tell(), limit)
        size = file.tell()
    if not size:
        part.unlink()
        raise ConnectionError(_EMPTY)
    if total is not None and size < total:
        raise ConnectionError(f"the connection ended after {size:,} of {total:,} bytes")


@contextmanager
def _explained(address: str, part: Path) -> Iterator[None]:
    """Say what could not be fetched, and what to do."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        why = f"the server answered {error.code} {error.reason}"
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)
            why += f"; {part} was longer than the file and is removed, try again"
        raise ConnectionError(f"cannot download {address}: {why}") from error
    except (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError) as error:
        why = str(getattr(error, "reason", error)) or type(error).__name__
        kept = f"; {part} is kept, and the next download continues" if part.exists() else ""
        hint = f"; is there a network, or does it need a proxy (HTTPS_PROXY)?{kept}"
        raise ConnectionError(f"cannot download {address}: {why}{hint}") from error


def _check_sum(part: Path, expected: str) -> None:
    with part.open("rb") as file:
        actual = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if actual != expected:
        size = part.stat().st_size
        raise ValueError(
            f"what was downloaded is not the archive that BEIR published: its MD5 sum is {actual} "
            f"instead of {expected}; {size:,} bytes were removed, try again"
        )


# --- unpacking ------------------------------------------------------------------------------


def _unpack(archive: Path, target: Path, limit: int) -> None:
    """Unpack the folder of a collection; it appears when it is complete."""
    new = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with zipfile.ZipFile(archive) as packed:
            members = [one for one in packed.infolist() if not one.is_dir()]
            _check_members(members, target.name, shutil.disk_usage(new).free, limit)
            for one in members:
                path = new.joinpath(*PurePosixPath(one.filename).parts)
                path.parent.mkdir(parents=True, exist_ok=True)
                # Gives no more than the declared size, and checks the contents' own sum.
                with packed.open(one) as source, path.open("wb") as file:
                    shutil.copyfileobj(source, file, _BLOCK)
        _check_collection(new / target.name)
        (new / target.name).rename(target)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ValueError(f"{archive}: not an archive that can be unpacked: {error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _check_collection(folder: Path) -> None:
    """Refuse an archive without documents, queries or judgements, as one of nothing."""
    for needed in ("corpus.jsonl", "queries.jsonl", "qrels/*.tsv"):
        # CQADupStack has a folder for each forum.
        if next(chain(folder.glob(needed), folder.glob(f"*/{needed}")), None) is None:
            raise ValueError(f"the archive has no {folder.name}/{needed}: it holds no collection")


def _check_members(members: list[zipfile.ZipInfo], name: str, free: int, limit: int) -> None:
    """Refuse names that lead elsewhere, links, and more bytes than there is room for."""
    for one in members:
        parts = PurePosixPath(one.filename).parts
        kind = stat.S_IFMT(one.external_attr >> 16)
        if (
            parts[0] != name
            or len(parts) < 2
            or any(part == ".." or set(part) & set(":\\\0") for part in parts)
            or kind not in (0, stat.S_IFREG)
        ):
            raise ValueError(f"the archive has {one.filename!r}, which is not a file in {name}/")
    size = sum(one.file_size for one in members)
    if size > min(free, limit):
        raise ValueError(
            f"the archive has {size:,} bytes unpacked; at most {limit:,} are unpacked, "
            f"and {free:,} are free"
        )

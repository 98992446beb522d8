"""A folder from a stranger is opened so that nothing in it can do harm."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import AnalyzerChangedWarning, CorruptIndexError, UntrustedIndexError

# Backtracks endlessly on a long run of a's.
ENDLESS = r"(?:a+)+$"


def saved(folder: Path, **settings: Any) -> Path:
    BM25Index.from_texts(["red boat", "blue sea"], analyzer=Analyzer(**settings)).save(folder)
    return folder


@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_pattern_of_the_files_own_is_refused(tmp_path: Path, mode: Any) -> None:
    folder = saved(tmp_path / "index", token_pattern=ENDLESS)
    with pytest.raises(UntrustedIndexError, match="token_pattern"):
        BM25Index.open(folder, mode, untrusted=True)
    BM25Index.open(folder, mode).close()  # and nobody holds the lock


@pytest.mark.slow
def test_such_a_pattern_would_keep_a_search_busy_without_end(tmp_path: Path) -> None:
    folder = saved(tmp_path / "index", token_pattern=ENDLESS)
    code = (
        "import sys; from bm25rag import BM25Index;"
        " index = BM25Index.open(sys.argv[1], untrusted=len(sys.argv) > 2);"
        " print('opened', flush=True); index.search('a' * 60 + '!'); print('found')"
    )
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as searching:
        assert searching.stdout is not None
        assert searching.stdout.readline() == "opened\n"
        with pytest.raises(subprocess.TimeoutExpired):
            searching.wait(2)
        searching.kill()
    refused = subprocess.run([*command, "x"], timeout=60, check=False, capture_output=True)
    assert b"UntrustedIndexError" in refused.stderr


@pytest.mark.parametrize("settings", [{}, {"language": "german"}, {"stopwords": ["red"]}])
def test_an_index_without_one_opens_and_searches(tmp_path: Path, settings: Any) -> None:
    folder = saved(tmp_path / "index", **settings)
    index = BM25Index.open(folder, untrusted=True)
    assert [hit.id for hit in index.search("boat")] == ["0"]


def test_damage_is_found_before_anything_is_searched(tmp_path: Path) -> None:
    folder = saved(tmp_path / "index")
    (segment,) = (path for path in folder.iterdir() if path.name.startswith("segment"))
    data = bytearray(segment.read_bytes())
    data[data.index(b"red boat")] ^= 1
    segment.write_bytes(data)
    BM25Index.open(folder)
    with pytest.raises(CorruptIndexError, match=segment.name):
        BM25Index.open(folder, untrusted=True)


def forge(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = folder / "manifest.json"
    outer = json.loads(manifest.read_text("utf-8"))
    change(outer["body"])
    canonical = json.dumps(outer["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    outer["checksum"] = zlib.crc32(canonical.encode())
    manifest.write_text(json.dumps(outer), "utf-8")


def test_a_warning_stays_short_whatever_the_manifest_says(tmp_path: Path) -> None:
    folder = saved(tmp_path / "index")
    long = {"x" * 1_000_000: "y" * 1_000_000}
    forge(folder, lambda body: body["settings"].update(probe=long, snowball="z" * 1_000_000))
    with pytest.warns(AnalyzerChangedWarning) as caught:
        BM25Index.open(folder, untrusted=True)
    assert len(str(caught[0].message)) < 1000


@pytest.mark.parametrize("mode", ["r", "w"])
def test_counts_that_would_soon_end_are_refused(tmp_path: Path, mode: Any) -> None:
    folder = saved(tmp_path / "index")
    forge(folder, lambda body: body["settings"].update(next_id=2**62 - 1))
    with pytest.raises(CorruptIndexError, match="next_id"):
        BM25Index.open(folder, mode, untrusted=True)


def test_what_a_later_commit_brings_is_refused_at_the_refresh(tmp_path: Path) -> None:
    folder = saved(tmp_path / "index")
    reader = BM25Index.open(folder, untrusted=True)

    def change(body: dict[str, Any]) -> None:
        body["settings"]["analyzer"]["token_pattern"] = ENDLESS
        body["commit"] += 1

    forge(folder, change)
    with pytest.raises(UntrustedIndexError, match="token_pattern"):
        reader.refresh()
    assert [hit.id for hit in reader.search("boat")] == ["0"]
    assert BM25Index.open(folder).analyzer.token_pattern == ENDLESS

"""Uses forged folders in every way; run as a process of its own, which may crash.

Prints the number of each case before it begins, and in the end how many were not refused.
"""

from __future__ import annotations

import pickle
import re
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError, DocumentNotFoundError, StorageError
from bm25rag.kernels import backend
from support.forgeries import forge
from support.forging import Folder

# So that small segments have several document blocks, wide codes and several parts.
SMALL = {
    "bm25rag.segments.doc_blocks.DOC_BLOCK": 7,
    "bm25rag.segments.doc_blocks._AT_ONCE": 9,
    "bm25rag.segments.postings_builder.NARROW": 3,
    "bm25rag.storage.checked_postings.AT_ONCE": 5,
    "bm25rag.metadata.fields.NARROW": 2,
    "bm25rag.metadata.fields.MIDDLE": 4,
    "bm25rag.storage.checksummed_file.BLOCK": 64,
    "bm25rag.search.ranking.WINDOW": 3,
    "bm25rag.search.ranking.SPARSE": 1,
    "bm25rag.search.ranking.COARSE": 0,
    "bm25rag.segments.strip_rows.STRIPS_FROM": 0,
    "bm25rag.segments.postings.STRIP_COST": 0,
    "bm25rag.segments.postings.STRIPS_WORTH": 0,
    "bm25rag.segments.strip_rows.LEAST_IN_STRIP": 0.0,
}
NAMES_A_FILE = re.compile(r"(segment|changes)-[0-9a-f]{16}\.bin|manifest\.json")
QUERIES = ["red", "green boat", "red sea word7", "word3 word4 word5", "plumless buckeroo", "no"]
VECTORS = [{"red": 1.0}, {"buckeroo": 0.5, "plumless": -2.0, "é4": 1.0}, {"no": 1.0}]
INF = float("inf")  # which does not order with anything
# Filters, and the same in Python.
FILTERS: list[tuple[dict[str, Any], Callable[[dict[str, Any]], bool]]] = [
    ({"n": {"$gt": 3}}, lambda own: type(own.get("n")) in (int, float) and 3 < own["n"] < INF),
    ({"n": {"$in": [3, 4]}}, lambda own: own.get("n") in (3, 4) and own["n"] is not True),
    ({"text": {"$gte": "t3"}}, lambda own: type(own.get("text")) is str and own["text"] >= "t3"),
    ({"text": "t4"}, lambda own: own.get("text") == "t4"),
    ({"tags": {"$contains": "x"}}, lambda own: "x" in (own.get("tags") or ())),
    ({"day": {"$exists": True}}, lambda own: "day" in own),
]


def metadata(number: int) -> dict[str, Any]:
    """Make metadata of every kind; none for some."""
    some = {"tags": ["x", number % 3, 1.5 * number], "day": date(2024, 1, 1 + number % 28)}
    own = {"n": number, "text": f"té{number % 7}"[: 1 + number % 3]}
    return {} if number % 5 == 0 else {**own, **(some if number % 4 else {"d": {"$k": None}})}


def vector(number: int) -> dict[str, float] | None:
    """Make a vector; none for some. From number 30 on they have few weights, which are positive."""
    terms = ["red", "plumless", "buckeroo", f"é{number % 9}"][number % 3 :]
    if number >= 30:
        return dict.fromkeys(terms, 1.0 + number % 2)
    return {term: (number - 20) / (3 + place) for place, term in enumerate(terms)} or None


def text(number: int, fields: bool) -> Any:
    """Make a text, or with fields one or two texts."""
    whole = f"red boat word{number % 9} café {'sea ' * (number % 5)}"
    if not fields or number % 4 == 0:
        return whole
    return {"title": f"green word{number % 9}", **({"text": whole} if number % 4 > 1 else {})}


def make(folder: Path, fields: bool) -> Folder:
    """Save an index of several parts, of which some have changed since."""
    with patch.multiple("bm25rag.merging.policy", LEAST=0, SHARE=1 << 30):
        index = BM25Index(fields={"title": 3.0, "text": 1.0} if fields else None)
        index.save(folder)
        for first, last in ((0, 30), (30, 42), (42, 45)):
            with BM25Index.open(folder, mode="w") as writer:
                writer.add(
                    [text(n, fields) for n in range(first, last)],
                    [
                        ("plumless", "buckeroo")[n] if n < 2 else f"id{n}"
                        for n in range(first, last)
                    ],
                    [metadata(number) for number in range(first, last)],
                    payloads=[bytes([n]) if n % 2 else None for n in range(first, last)],
                    store_text=first != 30,
                    vectors=None if first == 42 else [vector(n) for n in range(first, last)],
                )
        for step in range(3):
            with BM25Index.open(folder, mode="w") as writer:
                writer.delete([f"id{3 + step}", f"id{33 + step}"][: 1 + step])
                writer.update_metadata([f"id{n}" for n in range(6 + step, 20 - 3 * step)],
                                       [{"n": step, "text": "t4"}] * (14 - 4 * step))  # fmt: skip
    return Folder.read(folder)


def answers(index: BM25Index) -> list[Any]:
    """Return what an index answers, which must not change when its segments are merged."""
    found: list[Any] = [index.get(index.ids()), len(index)]
    for query in QUERIES:
        found.append([(hit.id, hit.score.hex()) for hit in index.search(query, k=100)])
        found.append([hit.id for hit in index.search(query, k=3, filter={"n": {"$gt": 2}})])
        found.append(index.scores(query).tolist())
    found.append([[hit.id for hit in one] for one in index.search_batch(QUERIES * 40, k=5).hits()])
    found.append([index.count(asked) for asked, _ in FILTERS])
    found.append((index.vocabulary(), index.document_frequencies().tolist()))
    found.append(index.to_scipy().toarray().tolist())
    if index.fields is not None:
        view = index.tune(fields={"title": 0.0})
        found.append([(hit.id, hit.score.hex()) for hit in view.search("red green", k=100)])
        found.append(index.explain("green word3", index.ids()[0]))
    vectors = index.vectors
    found.append(vectors.get(index.ids()))
    for one in VECTORS:
        found.append([(hit.id, hit.score.hex()) for hit in vectors.search(one, k=100)])
        found.append([hit.id for hit in vectors.search(one, k=3, filter={"n": {"$gt": 2}})])
        found.append(vectors.scores(one).tolist())
    found.append([[hit.id for hit in one] for one in vectors.search_batch(VECTORS * 9, k=5).hits()])
    found.append([hit.id for hit in index.search_hybrid("red", VECTORS[1], filter={"n": 4})])
    found.append((vectors.vocabulary(), vectors.document_frequencies().tolist()))
    found.append(vectors.to_scipy().toarray().tolist())
    return found


class Case:
    """One forged folder.

    Parameters
    ----------
    folder
        Where it is; copies are made beside it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.copy = folder, folder.with_name("copy")
        self.sound, message = True, "manifest.json"
        try:
            BM25Index.verify(folder)
        except CorruptIndexError as error:
            self.sound, message = False, str(error)
        assert NAMES_A_FILE.search(message), f"no file is named: {message}"

    def attempt(self, ask: Callable[[], Any]) -> Any:
        """Call something that may be refused, unless ``verify`` found nothing."""
        try:
            return ask()
        except (StorageError, DocumentNotFoundError):
            if self.sound:
                raise
            return None
        except ValueError as error:  # of a language that may be known elsewhere
            if "cannot be made here" not in str(error) and "pass that callable" not in str(error):
                raise
            return None

    def run(self) -> None:
        """Use the folder in every way."""
        reader = self.attempt(lambda: BM25Index.open(self.folder))
        if reader is None:
            return
        asked = self.attempt(lambda: answers(reader))
        for query in QUERIES if asked is None else ():  # one may be refused, and the next not
            self.attempt(lambda query=query: reader.search_batch([query] * 3, k=60).hits())
            self.attempt(lambda query=query: reader.explain(query, "id8"))
        for one in VECTORS if asked is None else ():
            self.attempt(lambda one=one: reader.vectors.search_batch([one] * 3, k=60).hits())
            self.attempt(lambda one=one: reader.vectors.explain(one, "id8"))
        for filter, passes in FILTERS:
            count = self.attempt(lambda filter=filter: reader.count(filter))
            if self.sound:
                own = [document.metadata for document in reader.get(reader.ids())]
                assert count == sum(map(passes, own)), f"{filter} lets through {count}"
        self.attempt(lambda: pickle.loads(pickle.dumps(reader)))
        self.attempt(lambda: reader.save(self.copy))
        if (self.copy / "manifest.json").exists():
            assert BM25Index.open(self.copy) is not None
        self.write(asked)
        reader.refresh()
        self.attempt(lambda: answers(reader))

    def write(self, asked: list[Any] | None) -> None:
        """Change the index; whatever is committed can be opened again."""
        writer = self.attempt(lambda: BM25Index.open(self.folder, mode="w"))
        if writer is None:
            return
        with closing(writer):
            self.attempt(writer.compact)
            if self.sound:
                assert answers(writer) == asked, "it answers otherwise once it is compacted"
            self.attempt(writer.commit)
            more = {"metadata": [{"n": 5}, {}], "vectors": [{"red": 0.5}, None]}
            self.attempt(lambda: writer.add(["red boat", "green sea"], **more))
            self.attempt(lambda: writer.delete(["id8", "plumless"]))
            self.attempt(lambda: writer.update_metadata(["id9", "id40"], [{"n": "x"}, {}]))
            self.attempt(writer.maintain)
            self.attempt(writer.commit)
            expected = self.attempt(lambda: answers(writer))
        found = BM25Index.open(self.folder)  # never refused
        if self.sound:
            BM25Index.verify(self.folder)
            assert answers(found) == expected, "it answers otherwise once it is opened again"


@contextmanager
def closing(writer: BM25Index) -> Iterator[None]:
    """Close a writer, whatever happened to its changes."""
    try:
        yield
    finally:
        writer.rollback()
        writer.close()


@contextmanager
def small(really: bool) -> Iterator[None]:
    """Set the constants to small values, or leave them."""
    patches = [patch(name, value) for name, value in SMALL.items()] if really else []
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def say(line: str) -> None:
    """Print a line and flush, since what follows may kill the process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Run cases: from the first number to before the last, with one backend."""
    name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sound, failed = [0, 0], 0  # those of usual and of small constants
    root = Path(tempfile.mkdtemp())
    patch("os.fsync", lambda _: None).start()  # nobody cuts the power here
    try:
        made = []
        for really in (False, True):
            with small(really):
                made.append([make(root / f"made{really}{fields}", fields) for fields in (0, 1)])
        for number in range(first, last):
            random = Random(number)
            chosen, folder = number % 2, root / str(number) / "index"
            folder.parent.mkdir()
            forged = made[chosen][number // 2 % 2].copy()
            say(f"case {number}: {forge(forged, random)}")
            try:
                with small(bool(chosen)), backend.use(name):
                    forged.write(folder)  # in blocks of the size that it is read in
                    case = Case(folder)
                    sound[chosen] += case.sound
                    case.run()
            except Exception:
                failed += 1
                say(f"case {number} has failed\n{traceback.format_exc()}")
            shutil.rmtree(folder.parent)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    say(f"{last - first} cases, {sound} not refused by verify, {failed} failed")
    sys.exit(failed > 0 or not all(sound))


if __name__ == "__main__":
    main()

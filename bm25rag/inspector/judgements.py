"""Judgements in a file that the user has named: the one thing that the inspector writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bm25rag.evaluation.files import read_qrels, write_qrels
from bm25rag.evaluation.measures import Qrels

_ENDING = ".tsv"


class Judgements:
    """Grades by question and document, in a file of BEIR's format; one thread at a time may use it.

    The id of a question is that of ``queries``, texts by id, or else the question itself, its white
    space collapsed. The name of the file must end in ``.tsv``; it is made with the first judgement,
    in a folder that is there.
    """

    def __init__(self, path: Path, queries: Mapping[str, str] | None = None) -> None:
        if path.suffix != _ENDING:
            raise ValueError(
                f"the name of the file of judgements must end in {_ENDING}, got {path}"
            )
        self.path: Path = path.resolve()  # of a link, the file
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"the folder of {path} is not there; make it first")
        self._queries = dict(queries or {})
        self._ids = {collapsed(text): id for id, text in reversed(self._queries.items())}
        self._seen: tuple[int, int] | None = None
        self._qrels: dict[str, dict[str, int]] = {}
        self.all()

    def all(self) -> Qrels:
        """Return all that is judged, as the file says now."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._seen, self._qrels = None, {}
            return self._qrels
        if self._seen != (seen := (status.st_mtime_ns, status.st_size)):
            # What has no lines but the header is a file before its first judgement.
            lines = self.path.read_bytes().count(b"\n") if status.st_size < 100 else 2
            self._qrels = read_qrels(self.path) if lines > 1 else {}
            self._seen = seen
        return self._qrels

    def id_of(self, question: str) -> str:
        """Return the id of a question."""
        return self._ids.get(collapsed(question), collapsed(question))

    def text_of(self, id: str) -> str:
        """Return the question that an id stands for."""
        return self._queries.get(id, id)

    def grades(self, question: str) -> Mapping[str, int]:
        """Return the grades of a question, by document."""
        return self.all().get(self.id_of(question), {})

    def judge(self, question: str, document: str, grade: int | None) -> None:
        """Set a grade, or remove it; the file has it when this returns.

        A ``ValueError`` says that an id cannot be in such a file; if the file cannot be written, it
        is as it was.
        """
        id = self.id_of(question)
        if not id:
            raise ValueError("there is no question to judge a document for")
        qrels = {query: dict(grades) for query, grades in self.all().items()}
        grades = qrels.setdefault(id, {})
        if grade is None:
            grades.pop(document, None)
        else:
            grades[document] = grade
        self._write({query: grades for query, grades in qrels.items() if grades})

    def _write(self, qrels: Qrels) -> None:
        """Replace the file in one step."""
        new = self.path.with_name(f".{self.path.stem}-{os.getpid()}{_ENDING}")
        try:
            write_qrels(new, qrels)
            if self.path.exists():
                shutil.copymode(self.path, new)
            with new.open("rb+") as file:
                os.fsync(file.fileno())
            new.replace(self.path)
        finally:
            new.unlink(missing_ok=True)
        self._seen = None


def collapsed(question: str) -> str:
    """Return a question on one line."""
    return " ".join(question.split())

"""What reading has come upon: what was guessed, left out and skipped, and how it is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bm25rag.cli.terminal import counted, listed, write_message
from bm25rag.common.visible import one_line
from bm25rag.readers import Note


class Findings:
    """What was guessed, left out and skipped, and how many files were ``read``.

    ``skipped`` has the complaint by the name of each file that could not be read, ``lines`` the
    first complaint by the name of each file with lines or records that could not.
    """

    def __init__(self) -> None:
        self.read = 0
        self.skipped: dict[str, str] = {}
        self.lines: dict[str, str] = {}
        self._more_lines: dict[str, int] = {}
        self._left_out: dict[str, list[str]] = {}
        self._encodings: dict[str, str] = {}
        self._fields: dict[str, str] = {}

    @property
    def incomplete(self) -> set[str]:
        """The names of files and folders of which something should have been read and was not."""
        return {*self.skipped, *self.lines}

    def leave_out(self, reason: str, name: str) -> None:
        """Remember what was left out on purpose."""
        self._left_out.setdefault(reason, []).append(name)

    def listener(self, name: str) -> Callable[[Note], None]:
        """Return what is to be told of a file; see ``Tolerance``."""

        def hear(note: Note) -> None:
            if note.kind == "line":
                # Of a million bad lines, one text is enough.
                if name in self.lines:
                    self._more_lines[name] = self._more_lines.get(name, 0) + 1
                self.lines.setdefault(name, note.text)
            else:
                told = self._encodings if note.kind == "encoding" else self._fields
                told[name] = note.text

        return hear

    def forget(self, name: str) -> None:
        """Forget what was told of a file that is skipped after all."""
        for told in (self.lines, self._more_lines, self._encodings, self._fields):
            told.pop(name, None)

    def report(self, before: Findings | None = None) -> None:
        """Report everything with the reasons, and a summary; but not what ``before`` has too."""
        for message in self._messages(before or Findings()):
            write_message(message)
        if before is None and (self._left_out or self.incomplete):
            left_out = sum(map(len, self._left_out.values()))
            lines = len(self.lines) + sum(self._more_lines.values())
            write_message(
                f"Read {counted(self.read, 'file')}; left out {counted(left_out, 'path')}, "
                f"skipped {counted(len(self.skipped), 'file')} and {counted(lines, 'line')}."
            )

    def _messages(self, before: Findings) -> Iterator[str]:
        for reason, left_out in self._left_out.items():
            known = set(before._left_out.get(reason, ()))
            if names := [name for name in left_out if name not in known]:
                yield f"Left out {counted(len(names), 'path')} ({reason}): {listed(names)}"
        for fields, names in _new(self._fields, before._fields):
            chosen = f"Text of {listed(names)}: {one_line(fields)}"
            yield f"{chosen} (--text-field chooses, --metadata-field keeps)"
        for encoding, names in _new(self._encodings, before._encodings):
            guess = f"Read {counted(len(names), 'file')} as {encoding}, a guess ({listed(names)})"
            yield f"{guess}: not UTF-8; --encoding names another"
        for complaint, names in _new(self.skipped, before.skipped):
            if len(names) > 1:
                complaint = f"{counted(len(names), 'file')} ({listed(names)}): {complaint}"
            elif names[0] not in complaint:
                complaint = f"{names[0]}: {complaint}"
            yield f"Skipped {one_line(complaint)}"
        for complaint, (name,) in _new(self.lines, before.lines):
            more = self._more_lines.get(name, 0)
            others = f"; and {more:,} more of this file" if more else ""
            yield f"Skipped {counted(more + 1, 'line')}: {one_line(complaint + others)}"


def _new(told: dict[str, str], before: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each value that names have and did not have before, with these names."""
    names: dict[str, list[str]] = {}
    for name, value in told.items():
        if before.get(name) != value:
            names.setdefault(value, []).append(name)
    yield from names.items()

"""One question to all parts of an index: whom to ask, how long to wait, what is missing."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from time import monotonic, sleep
from typing import Any, NamedTuple

from bm25rag.building.shards import even_edges
from bm25rag.distributed.engine import cause_of, load
from bm25rag.distributed.host import OLDEST, Answer, Commit, Restriction
from bm25rag.errors import StorageError

# Seconds that a call may take if it does not say.
DEADLINE = 10.0
# Another replica is asked too when this share of the deadline has passed without an answer.
_HEDGE = 0.25
# Seconds until a replica is asked again that was gone, as it may have been restarted.
_PAUSE = 0.1
# Seconds for which a replica that was gone or slow is asked after the others.
_AVOIDED = 30.0


class Answers(NamedTuple):
    """What all parts answered, ``each`` in order, without those that did not.

    All are of one ``commit``, in which there are so many ``shards``. ``missing`` has the number of
    each shard that is not in them, with the reason.
    """

    commit: Commit
    shards: int
    each: list[Answer]
    missing: dict[int, str]


class _Part:
    """A part of the shards, while its replicas are asked."""

    def __init__(self, replicas: Sequence[Any], avoided: dict[Any, float]) -> None:
        now = monotonic()
        # Any of those that are well, so that all of them get as much to do.
        self.replicas = random.sample(list(replicas), len(replicas))
        self.replicas.sort(key=lambda replica: avoided.get(replica, 0.0) > now)
        self.problem = "it did not answer" if replicas else "no actor serves it"
        self.restart()

    def restart(self) -> None:
        """Begin anew: nobody has been asked."""
        self.ask_at, self.asked, self.refused = 0.0, 0, 0
        self.answer: Answer | None = None

    @property
    def tried(self) -> bool:
        """Whether every replica has been asked."""
        return self.asked >= len(self.replicas)

    @property
    def done(self) -> bool:
        """Whether nobody need be asked any more: also if every replica has damaged files."""
        whole = self.answer is not None and not self.answer.failed
        return whole or self.refused >= len(self.replicas)

    def take(self, answer: Answer) -> None:
        """Keep an answer, unless there is one of more shards."""
        if answer.failed:
            self.refuse()
        if self.answer is None or len(answer.failed) < len(self.answer.failed):
            self.answer = answer

    def refuse(self) -> None:
        """Ask the next replica, since one has damaged files."""
        self.refused += 1
        self.ask_at = monotonic() + _PAUSE if self.tried else 0.0


class _Call(NamedTuple):
    """A call that has not been answered; ``commit`` is the least that it asked for."""

    part: _Part
    replica: Any
    commit: Commit


class _Question:
    """A question to all parts; see ``ask``."""

    def __init__(
        self,
        parts: Sequence[Sequence[Any]],
        operation: str,
        arguments: tuple[Any, ...],
        deadline: float,
        avoided: dict[Any, float],
        within: Restriction | None,
    ) -> None:
        self.ray = load()
        self.parts = [_Part(replicas, avoided) for replicas in parts]
        self.commit = OLDEST
        self._operation, self._arguments, self._avoided = operation, arguments, avoided
        self._within = within
        self._end, self._hedge = monotonic() + deadline, deadline * _HEDGE
        self._calls: dict[Any, _Call] = {}

    def run(self) -> None:
        """Ask until all is answered, or the deadline has passed."""
        while (now := monotonic()) < self._end:
            waiting = [part for part in self.parts if not part.done]
            if not waiting:
                return
            for part in waiting:
                if part.ask_at <= now:
                    self._ask(part, now)
            wake = min(self._end, *(part.ask_at for part in waiting))
            if not self._calls:
                sleep(max(0.0, wake - now))
                continue
            ready, _ = self.ray.wait(list(self._calls), timeout=max(0.0, wake - now))
            for ref in ready:
                self._receive(ref)

    def _ask(self, part: _Part, now: float) -> None:
        for call in self._calls.values():
            if call.part is part:  # it is slow, or it would have answered
                self._avoided[call.replica] = now + _AVOIDED
        replica = part.replicas[part.asked % len(part.replicas)]
        asked = (self._operation, self._arguments, self.commit, self._within)
        ref = replica.answer.remote(*asked)
        self._calls[ref] = _Call(part, replica, self.commit)
        part.asked += 1
        part.ask_at = math.inf if part.tried else now + self._hedge

    def _receive(self, ref: Any) -> None:
        part, replica, least = self._calls.pop(ref)
        try:
            answer = self.ray.get(ref, timeout=max(0.0, self._end - monotonic()))
        except self.ray.exceptions.RayTaskError as error:
            cause = cause_of(error)
            if not isinstance(cause, StorageError):
                raise cause from None
            part.problem = str(cause)
            part.refuse()
        except (self.ray.exceptions.RayError, self.ray.exceptions.GetTimeoutError) as error:
            part.problem = str(error).partition("\n")[0]
            self._avoided[replica] = monotonic() + _AVOIDED
            # Ray restarts it; meanwhile others may answer.
            part.ask_at = monotonic() + _PAUSE if part.tried else 0.0
        else:
            self._avoided.pop(replica, None)
            self._take(part, answer, least)

    def _take(self, part: _Part, answer: Answer, least: Commit) -> None:
        if answer.commit > self.commit:
            self.commit = answer.commit
            for other in self.parts:
                if other.answer is not None and other.answer.commit < self.commit:
                    other.restart()
        if answer.commit == self.commit:
            part.take(answer)
        else:  # asked for the newer one, it will go there
            part.problem = f"it is at commit {answer.commit.id}, and others at {self.commit.id}"
            part.ask_at = 0.0 if least < self.commit else monotonic() + _PAUSE


def ask(
    parts: Sequence[Sequence[Any]],
    operation: str,
    arguments: tuple[Any, ...],
    deadline: float,
    shards: int,
    avoided: dict[Any, float],
    within: Restriction | None = None,
) -> Answers:
    """Ask one replica of each part, and others if that is gone, slow or of an older commit.

    What is asked is as for ``Host.answer``, whose errors this raises, if it is for wrong arguments.
    ``shards`` is how many the index had when it was last asked. ``avoided`` has the replicas that
    were gone or slow, and until when they are asked last; it is changed here.
    """
    question = _Question(parts, operation, arguments, deadline, avoided, within)
    question.run()
    answered = [part.answer for part in question.parts if part.answer is not None]
    count = answered[0].shards if answered else shards
    edges = even_edges(count, len(parts))
    missing: dict[int, str] = {}
    for number, part in enumerate(question.parts):
        if part.answer is None:
            missing |= dict.fromkeys(range(edges[number], edges[number + 1]), part.problem)
        else:
            missing |= part.answer.failed
    return Answers(question.commit, count, answered, missing)

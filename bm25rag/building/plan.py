"""The arguments of a build."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from bm25rag.building.memory import check_memory, most_threads
from bm25rag.common.checks import check_choice, check_count, check_flag
from bm25rag.kernels.backend import cores
from bm25rag.live.index import OnDuplicate
from bm25rag.storage.state import State, check_extra


class Plan(NamedTuple):
    """The arguments of a build, checked, but for its documents.

    ``empty`` is the state of an index without documents that has the settings; the others are as
    for ``BM25Index.build``.
    """

    empty: State
    memory: int
    store_text: bool
    on_duplicate: OnDuplicate
    progress: bool
    threads: int
    extra: dict[str, Any]


def check_plan(
    empty: State,
    memory: str | int,
    store_text: bool,
    on_duplicate: OnDuplicate,
    progress: bool,
    threads: int | None,
    extra: dict[str, Any] | None,
) -> Plan:
    """Check the arguments of a build; raise ``TypeError`` or ``ValueError``."""
    check_choice("on_duplicate", on_duplicate, get_args(OnDuplicate))
    size = check_memory("memory", memory)
    wanted = cores() if threads is None else check_count("threads", threads, least=1)
    return Plan(
        empty,
        size,
        check_flag("store_text", store_text),
        on_duplicate,
        check_flag("progress", progress),
        min(wanted, most_threads(size)),
        {} if extra is None else check_extra(extra),
    )

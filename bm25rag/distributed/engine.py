"""Ray, imported when a function first needs it."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

from bm25rag.common import optional
from bm25rag.errors import ClusterError

# Of the names of actors and placement groups.
NAMESPACE = "bm25rag"
# The least share of a CPU that can be reserved.
SMALLEST = 0.001


def load() -> Any:
    """Import Ray."""
    optional.load("ray.util.scheduling_strategies", "a cluster needs Ray", "ray")
    return optional.load("ray", "a cluster needs Ray", "ray")


def start() -> Any:
    """Import Ray and, unless the program has, connect to a cluster; without one, start it here."""
    ray = load()
    if not ray.is_initialized():
        ray.init()
    return ray


def remove_groups(name: str) -> None:
    """Remove the placement groups of a name, and with them the actors that are in them."""
    from ray.util.placement_group import PlacementGroup

    ray = load()
    for group in ray.util.placement_group_table().values():
        if group["name"] == name and group["state"] != "REMOVED":
            id = ray.PlacementGroupID(bytes.fromhex(group["placement_group_id"]))
            ray.util.remove_placement_group(PlacementGroup(id))


def wait_for_all(refs: Sequence[Any], timeout: float, what: str) -> list[Any]:
    """Return the results of tasks or calls, or raise the first error.

    The others go on, and are not cancelled: if a task ends at that moment, Ray 2.60 ends the
    process that cancels it ("Tried to complete task that was not pending"). A ``ClusterError`` says
    that a worker died, beyond the retries, or that time is up; ``what`` is what each is about, such
    as ``"shard"``, to which its number is added.
    """
    ray = load()
    end, waiting = monotonic() + timeout, {ref: number for number, ref in enumerate(refs)}
    results: dict[int, Any] = {}
    while waiting:
        ready, _ = ray.wait(list(waiting), timeout=max(0.0, end - monotonic()))
        if not ready:
            raise ClusterError(
                f"{len(waiting)} of {len(refs)} tasks ({what} {min(waiting.values())} ...) "
                f"have not ended within {timeout:g} seconds; is there a node with enough "
                "free CPUs (num_cpus) and memory? timeout= allows more time"
            )
        for ref in ready:
            results[waiting[ref]] = _result(ray, ref, f"{what} {waiting[ref]}")
            del waiting[ref]
    return [results[number] for number in range(len(refs))]


def _result(ray: Any, ref: Any, what: str) -> Any:
    try:
        return ray.get(ref, timeout=60)
    except ray.exceptions.RayTaskError as error:
        raise cause_of(error) from None
    except ray.exceptions.OutOfMemoryError as error:
        raise ClusterError(
            f"{what}: the node had too little memory, also when Ray tried again; make more "
            f"shards, or reserve memory for a task (memory=): {_first_line(error)}"
        ) from error
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"{what}: its worker died, also when Ray tried again ({_first_line(error)}); "
            "if the system killed it for its memory, make more shards"
        ) from error


def cause_of(error: Any) -> BaseException:
    """Return what a task raised."""
    cause = error.cause
    return cause if isinstance(cause, BaseException) else error


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]

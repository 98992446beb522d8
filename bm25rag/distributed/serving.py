"""A sharded index served by actors.

The actors of an index are found by their names, ``<name>/<replica>.<part>/<replicas>.<parts>``,
so there is no registry. Each has a bundle of one placement group, and so a node of its own.
"""

from __future__ import annotations

import re
from contextlib import suppress
from os import PathLike
from threading import TIMEOUT_MAX
from time import monotonic
from typing import Any

from bm25rag.analysis import Tokenizer
from bm25rag.common.checks import check_count, check_flag, check_real
from bm25rag.common.urls import local_path
from bm25rag.distributed.client import RayIndex
from bm25rag.distributed.engine import NAMESPACE, SMALLEST, remove_groups, start, wait_for_all
from bm25rag.distributed.host import Host
from bm25rag.errors import ClusterError
from bm25rag.storage.manifest import read_sharded

_ACTOR = re.compile(r"(.+)/(\d+)\.(\d+)/(\d+)\.(\d+)")


def serve(
    folder: str | PathLike[str],
    name: str = "bm25rag",
    *,
    replicas: int = 1,
    nodes: int | None = None,
    num_cpus: float = 1.0,
    concurrency: int = 16,
    timeout: float = 60.0,
    mmap: bool = True,
    tokenizer: Tokenizer | None = None,
    untrusted: bool = False,
) -> RayIndex:
    """Serve a sharded index on the nodes of a Ray cluster until ``stop``.

    Each replica is a whole index on some nodes, one actor a node with about as many shards as
    the others; no node has two of these actors. They are detached: they outlive the program
    that started them, and Ray restarts them on another node if theirs is lost.

    Parameters
    ----------
    folder
        The folder of the sharded index, which all nodes see by this path.
    name
        What ``connect`` and ``stop`` find it by.
    replicas, nodes
        How many replicas, and on how many nodes each is; ``None`` for as many as there are for it,
        but not more than shards.
    num_cpus
        The CPUs that Ray reserves for each actor, which also answers a batch with so many threads.
    concurrency
        How many calls an actor answers at a time.
    timeout
        Seconds until all actors must have opened their shards.
    mmap, tokenizer, untrusted
        As for ``BM25Index.open``, which also says what is raised if a shard cannot be opened.

    Raises
    ------
    ClusterError
        If the cluster lacks nodes or CPUs, an index is served by this name, or time is up.
    """
    path, seconds = local_path(folder), check_real("timeout", timeout, 0.0, TIMEOUT_MAX)
    check_count("concurrency", concurrency, least=1)
    copies, shards = check_count("replicas", replicas, least=1), read_sharded(path).shard_count
    cpus = check_real("num_cpus", num_cpus, SMALLEST, float("inf"))
    if not name or "/" in name:
        raise ValueError(f"name must not be empty and have no '/', got {name!r}")
    ray, end = start(), monotonic() + seconds
    if _find(ray, name):
        raise ClusterError(f"an index is served as {name!r}: stop({name!r}) ends that")
    parts = min(shards, max(1, _alive(ray) // copies)) if nodes is None else nodes
    check_count("nodes", parts, least=1)
    if parts > shards:
        raise ValueError(f"nodes must be at most {shards}, the shards, got {parts}")
    arguments = (parts, max(1, round(cpus)), check_flag("mmap", mmap), tokenizer, untrusted)
    group = _reserve(ray, name, copies * parts, cpus, seconds)
    try:
        actor = ray.remote(Host)
        places = [(replica, part) for replica in range(copies) for part in range(parts)]
        hosts = [
            actor.options(
                name=f"{name}/{replica}.{part}/{copies}.{parts}",
                namespace=NAMESPACE,
                lifetime="detached",
                num_cpus=cpus,
                max_concurrency=concurrency,
                max_restarts=-1,
                scheduling_strategy=ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
                    placement_group=group, placement_group_bundle_index=bundle
                ),
            ).remote(path, part, *arguments)
            for bundle, (replica, part) in enumerate(places)
        ]
        opening = [host.refresh.remote() for host in hosts]
        for state in wait_for_all(opening, max(0.0, end - monotonic()), "actor"):
            state.check()
    except BaseException:
        stop(name)
        raise
    return connect(name)


def _alive(ray: Any) -> int:
    return sum(node["Alive"] for node in ray.nodes())


def _reserve(ray: Any, name: str, bundles: int, cpus: float, timeout: float) -> Any:
    """Reserve a bundle on each of some nodes; raise ``ClusterError`` if there are too few."""
    group = ray.util.placement_group(
        [{"CPU": cpus}] * bundles,
        strategy="STRICT_SPREAD",
        name=f"{NAMESPACE}/{name}",
        lifetime="detached",
    )
    if not group.wait(timeout):
        ray.util.remove_placement_group(group)
        raise ClusterError(
            f"serving needs {bundles} nodes with {cpus:g} free CPUs each (replicas x nodes); "
            f"there are {_alive(ray)} nodes, and after {timeout:g} seconds not enough were free: "
            "add nodes, or ask for fewer replicas or num_cpus"
        )
    return group


def connect(name: str = "bm25rag") -> RayIndex:
    """Return the client of an index that ``serve`` serves.

    A ``ClusterError`` says that nothing is served by this name on the cluster that ``ray.init``
    connects to.
    """
    ray = start()
    actors = _find(ray, name)
    if not actors:
        raise ClusterError(
            f"no index is served as {name!r} on this cluster: serve it first, or connect to "
            "another cluster by ray.init(address=...)"
        )
    parts = int(next(iter(actors.values())).rpartition(".")[2])
    hosts: list[list[Any]] = [[] for _ in range(parts)]
    for (_, part), actor in sorted(actors.items()):
        with suppress(ValueError):  # it has ended meanwhile
            hosts[part].append(ray.get_actor(actor, namespace=NAMESPACE))
    return RayIndex(name, hosts)


def stop(name: str = "bm25rag") -> None:
    """End the actors of an index, and give back what they reserved; without any, do nothing."""
    ray = start()
    for actor in _find(ray, name).values():
        with suppress(ValueError):
            ray.kill(ray.get_actor(actor, namespace=NAMESPACE))
    remove_groups(f"{NAMESPACE}/{name}")


def _find(ray: Any, name: str) -> dict[tuple[int, int], str]:
    """Return the names of the actors of an index, by replica and part."""
    actors = {}
    for actor in ray.util.list_named_actors(all_namespaces=True):
        parsed = _ACTOR.fullmatch(actor["name"])
        if actor["namespace"] == NAMESPACE and parsed and parsed[1] == name:
            actors[int(parsed[2]), int(parsed[3])] = actor["name"]
    return actors

"""Dollars for a million queries, from a table of prices that users can replace.

::

    by latency:     dollars per hour / 3600 * seconds a query    * 1,000,000
    by throughput:  dollars per hour / 3600 / queries per second * 1,000,000

The first is from Santhanam et al. (2023): the machine answers one query at a time and is paid for
that time. The second is for a machine kept busy by a batch. Memory decides which machines qualify.
Both use times as measured; another processor gives different ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from bm25rag.common.checks import check_real
from bm25rag.common.urls import from_home

_QUERIES = 1_000_000


class Instance(NamedTuple):
    """A type of machine that can be rented: virtual CPUs, memory in GiB, and its price."""

    name: str
    cpus: int
    memory: float
    dollars_per_hour: float


PRICES_OF = "AWS EC2 on demand, Linux, us-east-1, October 2026"
# 2, 4 and 8 GiB for each CPU: for computing, in general, for memory.
PRICES: tuple[Instance, ...] = (
    Instance("c7g.medium", 1, 2, 0.0363),
    Instance("c7g.large", 2, 4, 0.0725),
    Instance("c7g.xlarge", 4, 8, 0.145),
    Instance("c7g.2xlarge", 8, 16, 0.29),
    Instance("c7g.4xlarge", 16, 32, 0.58),
    Instance("m7g.medium", 1, 4, 0.0408),
    Instance("m7g.large", 2, 8, 0.0816),
    Instance("m7g.xlarge", 4, 16, 0.1632),
    Instance("m7g.2xlarge", 8, 32, 0.3264),
    Instance("m7g.4xlarge", 16, 64, 0.6528),
    Instance("r7g.medium", 1, 8, 0.0536),
    Instance("r7g.large", 2, 16, 0.1071),
    Instance("r7g.xlarge", 4, 32, 0.2142),
    Instance("r7g.2xlarge", 8, 64, 0.4284),
    Instance("r7g.4xlarge", 16, 128, 0.8568),
)


def read_prices(path: str | PathLike[str]) -> tuple[Instance, ...]:
    """Read a table of prices: a JSON list of objects with the fields of ``Instance``.

    Raises
    ------
    ValueError
        If the file has a different form.
    """
    file = Path(from_home(path))
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        prices = tuple(Instance(**row) for row in rows)
    except (ValueError, TypeError) as cause:
        fields = ", ".join(Instance._fields)
        message = f"{file}: expected a JSON list of objects with {fields}: {cause}"
        raise ValueError(message) from cause
    if not prices:
        raise ValueError(f"{file}: no prices in it")
    for instance in prices:
        for field in Instance._fields[1:]:
            name = f"{file}: {field} of {instance.name!r}"
            check_real(name, getattr(instance, field), 0.0, 1e9)
    return prices


def cheapest(memory: float, cpus: int = 1, prices: Sequence[Instance] = PRICES) -> Instance | None:
    """Return the cheapest machine with the CPUs and the memory, in GiB; ``None`` if none has."""
    fitting = [machine for machine in prices if machine.memory >= memory and machine.cpus >= cpus]
    return min(fitting, key=lambda machine: machine.dollars_per_hour, default=None)


def cost_by_latency(instance: Instance, seconds: float) -> float:
    """Return the dollars for a million queries, one at a time, each of so many seconds on average.

    Examples
    --------
    >>> round(cost_by_latency(Instance("x", 1, 4, 0.36), 0.010), 6)
    1.0
    """
    check_real("seconds", seconds, 0.0, 1e9)
    return instance.dollars_per_hour / 3600 * seconds * _QUERIES


def cost_by_throughput(instance: Instance, queries_per_second: float) -> float:
    """Return the dollars for a million queries, in batches that keep the machine busy.

    Examples
    --------
    >>> round(cost_by_throughput(Instance("x", 1, 4, 0.36), 100), 6)
    1.0
    """
    if not queries_per_second > 0:
        raise ValueError(f"queries_per_second must be greater than 0, got {queries_per_second!r}")
    return instance.dollars_per_hour / 3600 / queries_per_second * _QUERIES

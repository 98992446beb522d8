"""Fixtures of the tests on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Run a cluster of three nodes with a CPU each, to which this process is connected."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    started = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    for _ in range(2):
        started.add_node(num_cpus=1)
    started.wait_for_nodes(timeout=60)
    ray.init(address=started.address, log_to_driver=False)
    yield started
    ray.shutdown()
    started.shutdown()

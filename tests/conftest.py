"""Fixtures that more than one test file needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from bm25rag.kernels import backend as backends

# Times on shared machines vary tenfold, so neither deadlines nor slow generation count as failures.
settings.register_profile(
    "bm25rag",
    deadline=None,
    max_examples=40,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# The modes that repeat the tests (interpreted, NumPy alone, lowest versions) ask for this one.
settings.register_profile("quick", settings.get_profile("bm25rag"), max_examples=12)
# `make soak` and `make test-long` ask for these.
settings.register_profile("soak", settings.get_profile("bm25rag"), max_examples=300)
settings.register_profile("long", settings.get_profile("bm25rag"), max_examples=2000)
settings.load_profile("bm25rag")


# Module-scoped, since Hypothesis rejects function-scoped fixtures that many examples share.
@pytest.fixture(scope="module", params=backends.available())
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once on each backend available here."""
    with backends.use(request.param):
        yield request.param

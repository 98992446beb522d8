"""With a filter, nothing of a rejected document shows, no matter who else is writing.

Tenants share all texts, terms and metadata keys, so only the filter separates them.
Every field of a document names its tenant, so a leak anywhere shows.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import settings

from bm25rag import BM25Index
from bm25rag.errors import DocumentNotFoundError
from bm25rag.filters import parse_filter
from support.cases import first
from support.threads import together

TENANTS = [f"tenant{number}" for number in range(9)]
WORDS = ["red", "boat", "green", "tea", "blue", "sea"]

pytestmark = pytest.mark.usefixtures("backend")


def belongings(tenant: str, number: int, luck: random.Random) -> dict[str, Any]:
    """Return the arguments of `add` for one document of a tenant."""
    words = luck.choices(WORDS, k=luck.randint(0, 6))
    metadata = {
        "tenant": tenant,
        "owner": {"name": tenant, "groups": [tenant, "all"]},
        "level": luck.randint(0, 5),
        "since": f"2024-01-{luck.randint(1, 28):02}",
    }
    return {
        "texts": [" ".join([*words, tenant])],
        "ids": [f"{tenant}-{number}"],
        "metadata": [{key: metadata[key] for key in luck.sample(list(metadata), 4)}],
        "payloads": [tenant.encode()],
    }


def kept_apart(tenant: str, luck: random.Random) -> Any:
    """Draw one of the filters that let only a tenant's documents pass."""
    own = {"tenant": tenant}
    rest: Any = luck.choice(
        [
            {},
            {"level": {"$gte": luck.randint(0, 6)}},
            {"since": {"$date": {"$lt": f"2024-01-{luck.randint(1, 28):02}"}}},
            {"$not": {"level": luck.randint(0, 5)}},
            {"$id": {"$startswith": tenant}},
            lambda metadata: metadata["tenant"] == tenant,
        ]
    )
    others = [other for other in TENANTS if other != tenant]
    return luck.choice(
        [
            own,
            {"$and": [own, rest]},
            {"$and": [rest, {"owner.name": {"$nin": others}}]},
            {"owner.groups": {"$contains": tenant}},
            {"owner": {"groups": [tenant, "all"], "name": tenant}},
            {"$not": {"$or": [{"tenant": {"$ne": tenant}}, {"$not": rest}]}},
            lambda metadata: metadata["owner"]["name"] == tenant,
            {f"{tenant}-{number}" for number in range(0, 40, 3)},
        ]
    )


def assert_own(shown: Any, tenant: str) -> None:
    text = repr(shown)
    assert not [other for other in TENANTS if other != tenant and other in text]


def look(index: BM25Index, tenant: str, luck: random.Random) -> None:
    filter, query = kept_apart(tenant, luck), luck.choices(WORDS, k=2)
    everyone = [f"{other}-{number}" for other in TENANTS for number in range(20)]
    assert_own(index.search(query, k=luck.choice([1, 10, 999]), filter=filter), tenant)
    assert_own(index.search_batch([query, ["red"]], k=5, filter=filter).hits(), tenant)
    assert_own(index.get(everyone, filter), tenant)
    assert_own(index.ids(filter), tenant)
    other = luck.choice([id for id in everyone if not id.startswith(tenant)])
    errors = []
    for id in (other, f"{tenant}-none"):
        with pytest.raises(DocumentNotFoundError) as caught:
            index.explain(query, id, filter)
        errors.append(str(caught.value).replace(repr(id), "?"))
    assert errors[0] == errors[1]  # absent and forbidden documents look the same


def write(index: BM25Index, luck: random.Random) -> None:
    tenant, number = luck.choice(TENANTS), luck.randint(0, 40)
    new = belongings(tenant, number, luck)
    match luck.randint(0, 3):
        case 0 | 1:
            index.add(**new, on_duplicate="replace")
        case 2:
            index.delete(new["ids"])
        case 3:
            index.update_metadata(new["ids"], new["metadata"])


@pytest.fixture
def index() -> BM25Index:
    luck, index = random.Random(0), BM25Index()
    for number in range(20):
        for tenant in TENANTS:
            index.add(**belongings(tenant, number, luck))
    return index


@pytest.fixture
def impatient() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.untraced
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_tenants_never_see_each_other_while_all_of_them_write(index: BM25Index, seed: int) -> None:
    done: list[bool] = []

    def read(tenant: str) -> None:
        luck = random.Random(f"{seed} {tenant}")
        while not done:
            look(index, tenant, luck)
        look(index, tenant, luck)

    def keep_writing() -> None:
        luck = random.Random(seed)
        try:
            for _ in range(settings().max_examples // 4):
                write(index, luck)
        finally:
            done.append(True)

    together([keep_writing, *(partial(read, tenant) for tenant in TENANTS[seed::3])])


@pytest.mark.parametrize("seed", range(2))
def test_documents_that_change_hands_are_their_new_owners_at_once(seed: int) -> None:
    """Compare with a dict that is filtered document by document, after every write."""
    luck, index = random.Random(seed), BM25Index()
    model: dict[str, dict[str, Any]] = {}
    filters = [kept_apart(tenant, luck) for tenant in TENANTS[:4]]
    for step in range(60):
        id = str(luck.randint(0, 25))
        metadata = belongings(luck.choice(TENANTS[:4]), step, luck)["metadata"][0]
        match luck.choice(["add", "add", "update", "delete"]):
            case "add":
                index.add([WORDS], [id], [metadata], on_duplicate="replace")
                model.pop(id, None)
                model[id] = metadata
            case "update":
                if index.update_metadata([id], [metadata]):
                    model[id] = metadata
            case "delete":
                assert index.delete([id]) == ([] if model.pop(id, None) is None else [id])
        for filter in filters:
            tree = parse_filter(filter)
            assert tree is not None
            passing = [id for id, one in model.items() if tree.matches(id, one)]
            assert index.ids(filter) == passing
            assert [hit.id for hit in index.search(WORDS, 99, filter)] == passing
            assert {hit.id: hit.metadata for hit in index.search(WORDS, 99, filter)} == {
                id: model[id] for id in passing
            }


def test_every_filter_of_the_tests_keeps_apart_and_most_let_something_pass(
    index: BM25Index,
) -> None:
    luck = random.Random(1)
    counts = [index.count(kept_apart(tenant, luck)) for tenant in TENANTS for _ in range(15)]
    assert max(counts) <= 20
    assert sum(count > 0 for count in counts) > len(counts) // 2

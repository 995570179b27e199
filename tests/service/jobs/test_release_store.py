"""The ledger of the service: in the database, one release after the other, longer than jobs are kept."""

import time
from typing import Any

import pytest

from service.jobs import Job, new_id
from service.ledger import IncomparableError
from tests.service.test_ledger import facts, release


def job() -> Any:
    return Job(
        id=new_id(),
        token="alice",
        kind="anonymize",
        state="running",
        policy_name="shop",
        policy="{}",
        inputs={},
        created_at=time.time(),
    )


def test_releases_are_kept_by_data_set_and_incomparable_ones_refused(stores: Any) -> None:
    store, other = stores(), stores()
    first, second = job(), job()
    store.enter_release(first, release(facts(1, 1)), allow=False)
    with pytest.raises(IncomparableError):
        other.enter_release(second, release(facts(0, 2)), allow=False)
    assert [name for name, _ in store.releases(who=None, data_set=None, limit=9)] == [first.id]
    other.enter_release(second, release(facts(0, 2), data_set="others"), allow=False)
    third = job()
    store.enter_release(third, release(facts(0, 2)), allow=True)
    found = store.releases(who="alice", data_set="shops", limit=9)
    assert {name for name, _ in found} == {first.id, third.id}
    assert store.releases(who="bob", data_set=None, limit=9) == []
    assert len(store.releases(who=None, data_set=None, limit=2)) == 2


def test_a_job_that_is_done_again_releases_the_same_once(stores: Any) -> None:
    store, again = stores(), job()
    for _ in range(2):
        store.enter_release(again, release(facts(1, 1)), allow=False)
    assert len(store.releases(who=None, data_set="shops", limit=9)) == 1

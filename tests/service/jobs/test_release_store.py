"""The ledger of the service: an entry for each job whose release can be seen, and for no other."""

import threading
import time
from typing import Any

import pytest

from service.jobs import Job, LedgerEntry, new_id
from service.ledger import Facts, IncomparableError
from tests.service.test_ledger import facts, release

ALICE, BOB, ANALYSTS = "token:alice", "token:bob", "group:analysts"


def running_job(store: Any, owner: str = ALICE, runner: str = "runner") -> Job:
    """A job that a runner has claimed."""
    waiting = Job(
        id=new_id(),
        token=owner.partition(":")[2],
        owner=owner,
        kind="anonymize",
        state="queued",
        policy_name="shop",
        policy="{}",
        inputs={},
        created_at=time.time(),
    )
    store.add(waiting, most=99)
    claimed: Job = store.claim(runner, 60)
    assert claimed.id == waiting.id
    return claimed


def finish(store: Any, job: Job, made: Facts, *, allow: bool = False, data_set: str = "shops") -> bool:
    """Let a job succeed with a release."""
    entry = LedgerEntry(release(made, data_set=data_set), allow)
    ended: bool = store.finish(job, "succeeded", report="{}", release=entry)
    return ended


def jobs_of(store: Any, owner: str | None = None, data_set: str | None = None) -> set[str]:
    """Jobs with an entry."""
    return {one.job for one in store.releases(owner=owner, data_set=data_set, limit=99)}


def test_incomparable_release_is_refused_and_its_job_still_runs(stores: Any) -> None:
    store, other = stores(), stores()
    first, second = running_job(store), running_job(store)
    assert finish(store, first, facts(1, 1))
    with pytest.raises(IncomparableError):
        finish(other, second, facts(0, 2))
    assert store.get(second.id).state == "running"
    assert jobs_of(store) == {first.id}
    assert finish(other, second, facts(0, 2), data_set="others")
    third = running_job(store)
    assert finish(store, third, facts(0, 2), allow=True)
    assert jobs_of(store, ALICE, "shops") == {first.id, third.id}
    assert len(store.releases(owner=None, data_set=None, limit=2)) == 2


def test_data_set_of_another_owner_is_unknown(stores: Any) -> None:
    """Neither a conflict nor a success tells that somebody else has released a table under this name."""
    store = stores()
    own, others, of_group = running_job(store), running_job(store, BOB), running_job(store, ANALYSTS)
    for job, made in ((own, facts(1, 1)), (others, facts(0, 2)), (of_group, facts(2, 0))):
        assert finish(store, job, made)
    assert (jobs_of(store, ALICE), jobs_of(store, BOB)) == ({own.id}, {others.id})
    second = running_job(store)
    with pytest.raises(IncomparableError, match="1 earlier release"):
        finish(store, second, facts(0, 2))


def test_attempt_that_succeeded_does_not_block_its_own_repetition(stores: Any) -> None:
    """The answer of a commit may be lost: the job is then done again, with other random classes."""
    store = stores()
    job = running_job(store)
    entry = LedgerEntry(release(Facts("table")), allow=False)
    with store._engine.begin() as connection:
        store._enter(connection, job, entry)
    assert finish(store, job, Facts("table")), "local recodings are comparable with nothing"
    assert jobs_of(store) == {job.id}


@pytest.mark.parametrize("ending", ["cancelled", "failed", "cancelled at the last moment", "lost"])
def test_job_that_publishes_nothing_leaves_no_entry(stores: Any, ending: str) -> None:
    store = stores()
    job = running_job(store)
    match ending:
        case "cancelled at the last moment":
            store.cancel(job.id)
            assert not finish(store, job, facts(1, 1))
            assert store.finish(job, "cancelled")
        case "lost":
            store.renew("runner", -1, [job.id])
            store.take_up()
            assert store.claim("another", 60).id == job.id
            assert not finish(store, job, facts(1, 1))
        case state:
            assert store.finish(job, state)
    assert jobs_of(store) == set()


def test_of_two_incomparable_releases_at_a_time_one_is_entered(stores: Any) -> None:
    store = stores()
    jobs, refused = [running_job(store) for _ in range(6)], []
    barrier = threading.Barrier(len(jobs))

    def race(job: Job, made: Facts) -> None:
        own = stores()
        barrier.wait()
        try:
            finish(own, job, made)
        except IncomparableError:
            refused.append(job.id)

    made = [facts(number, 5 - number) for number in range(len(jobs))]
    threads = [threading.Thread(target=race, args=each) for each in zip(jobs, made, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(refused), len(jobs_of(store))) == (5, 1)


def test_removed_entry_blocks_nothing(stores: Any) -> None:
    store = stores()
    first, second = running_job(store), running_job(store)
    finish(store, first, facts(1, 1))
    assert store.remove_release(first.id)
    assert not store.remove_release(first.id)
    assert finish(store, second, facts(0, 2))

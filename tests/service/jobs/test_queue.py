"""The queue on both databases: nothing lost, nothing twice, dead runners noticed."""

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from service.jobs import Job, JobFiles, JobRunner, RunnerLimits, StoredPolicy, new_id, open_database
from service.jobs.tables import METADATA
from service.problems import problem


def job(**values: Any) -> Any:
    return Job(
        **{
            "id": new_id(),
            "token": "alice",
            "owner": "token:alice",
            "kind": "anonymize",
            "state": "queued",
            "policy_name": "shop",
            "policy": "{}",
            "inputs": {"table": "table.csv"},
            "created_at": time.time(),
            **values,
        }
    )


def test_migrations_make_the_tables_that_the_code_uses(database_url: Any) -> None:
    engine = open_database(database_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


def test_many_runners_take_every_job_once(stores: Any) -> None:
    store = stores()
    ids = {store.add(job(), most=100).id for _ in range(50)}
    taken, lock = [], threading.Lock()

    def run(own: Any) -> None:
        while (found := own.claim(new_id(), 60)) is not None:
            with lock:
                taken.append(found.id)

    threads = [threading.Thread(target=run, args=(stores(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(ids)
    assert store.counts() == {"running": 50}


def test_jobs_are_taken_in_order(stores: Any) -> None:
    store = stores()
    first, second = job(created_at=1.0), job(created_at=2.0)
    store.add(second, most=9)
    store.add(first, most=9)
    assert [store.claim("a", 60).id, store.claim("a", 60).id] == [first.id, second.id]


def test_a_dead_runners_job_is_taken_up_once_and_then_failed(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    first = store.claim("dead", 0.01)
    time.sleep(0.05)
    assert store.take_up() == []
    second = store.claim("dead too", 0.01)
    assert (second.id, second.attempts) == (first.id, 2)
    time.sleep(0.05)
    assert store.take_up() == [first.id]
    ended = store.get(first.id)
    assert (ended.state, json.loads(ended.problem)["type"]) == ("failed", "urn:portcullis:problem:job-interrupted")
    assert store.claim("alive", 60) is None


def test_a_renewed_lease_is_left_alone(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    held = store.claim("alive", 0.01)
    store.renew("alive", 60, [held.id])
    time.sleep(0.05)
    store.take_up()
    assert store.counts() == {"running": 1}


def test_a_runner_does_not_take_itself_for_dead_after_a_pause_of_the_machine(
    stores: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores()
    limits = RunnerLimits(processes=1, memory=1, seconds=1e9, lease=60, keep=60, columns=9, table_bytes=9)
    runner = JobRunner(store, JobFiles(tmp_path), limits, ended=print)
    monkeypatch.setattr(runner._seats[0], "start", lambda: None)
    store.add(job(), most=9)
    runner._seats[0].job = store.claim(runner._name, 0.01)
    time.sleep(0.05)
    runner._cycle()
    assert store.counts() == {"running": 1}


def test_who_was_taken_for_dead_has_nothing_more_to_say(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    late = store.claim("late", 0.01)
    time.sleep(0.05)
    store.take_up()
    now = store.claim("now", 60)
    assert not store.finish(late, "succeeded", report="{}")
    store.progress(late, "late", 1, 2)
    assert store.held("late") == []
    assert store.get(late.id).phase == "start"
    assert store.finish(now, "succeeded", report="{}")
    assert store.get(late.id).state == "succeeded"


def test_a_job_that_is_to_stop_does_not_succeed(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    running = store.claim("a", 60)
    assert store.cancel(running.id).state == "running"
    assert [one.cancel for one in store.held("a")] == [True]
    assert not store.finish(running, "succeeded", report="{}")
    assert store.finish(running, "cancelled")


def test_stopped_search_is_no_cancelled_job(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    running = store.claim("a", 60)
    assert store.stop_search(running.id).state == "running"
    assert [(one.cancel, one.stop_search) for one in store.held("a")] == [(False, True)]
    assert store.finish(running, "succeeded", report="{}")
    assert store.stop_search(running.id).state == "succeeded", "nothing is changed"
    assert store.get(running.id).report == "{}"


def test_job_whose_search_was_stopped_can_still_be_cancelled(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    running = store.claim("a", 60)
    store.stop_search(running.id)
    store.cancel(running.id)
    assert [(one.cancel, one.stop_search) for one in store.held("a")] == [(True, True)]
    assert not store.finish(running, "succeeded", report="{}")
    assert store.finish(running, "cancelled")


def test_search_that_is_stopped_before_it_runs_ends_with_its_first_result(stores: Any) -> None:
    store = stores()
    waiting = store.add(job(), most=9)
    assert store.stop_search(waiting.id).state == "queued"
    store.claim("a", 60)
    assert [(one.cancel, one.stop_search) for one in store.held("a")] == [(False, True)]


def test_job_of_a_dead_runner_searches_again_until_its_first_result(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    lost = store.claim("dead", 0.01)
    store.stop_search(lost.id)
    time.sleep(0.05)
    assert store.take_up() == []
    assert store.claim("b", 60).id == lost.id
    assert [one.stop_search for one in store.held("b")] == [True]


def test_a_stopping_service_gives_jobs_back_without_counting_the_attempt(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    store.give_back(store.claim("a", 60))
    assert store.claim("b", 60).attempts == 1


def test_the_limit_of_a_token_holds_when_requests_race(stores: Any) -> None:
    own = [stores() for _ in range(4)]
    kept: list[Any] = []
    threads = [
        threading.Thread(target=lambda one=one: kept.extend(one.add(job(), most=5) for _ in range(5))) for one in own
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in kept if one is not None]) == 5
    assert own[0].add(job(token="bob"), most=5) is not None


def test_the_same_key_gives_the_same_job_when_requests_race(stores: Any) -> None:
    own = [stores() for _ in range(4)]
    kept = []
    threads = [
        threading.Thread(target=lambda one=one: kept.append(one.add(job(idempotency_key="k"), most=9))) for one in own
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.id for one in kept}) == 1
    assert own[0].add(job(token="bob", idempotency_key="k"), most=9).id != kept[0].id


def test_pages_hold_every_job_once(stores: Any) -> None:
    store = stores()
    ids = [store.add(job(created_at=float(number // 3)), most=99).id for number in range(10)]
    found, before = [], None
    while page := store.page(token="alice", state="queued", before=before, limit=3):
        found += [one.id for one in page]
        before = (page[-1].created_at, page[-1].id)
    assert sorted(found) == sorted(ids)
    assert store.page(token="bob", state=None, before=None, limit=3) == []


def test_what_has_ended_long_ago_is_purged(stores: Any) -> None:
    store = stores()
    store.add(job(), most=9)
    waiting = store.add(job(), most=9)
    ended = store.claim("a", 60)
    store.finish(ended, "failed", failed=problem("internal", "for the test"))
    assert store.purge(time.time() - 60) == []
    assert store.purge(time.time() + 60) == [ended.id]
    assert store.unknown([ended.id, waiting.id]) == {ended.id}


def test_policies_are_kept_under_their_names(stores: Any) -> None:
    store = stores()
    policy = StoredPolicy("shop", "{}", "f" * 64, 1.0)
    assert store.put_policy(policy)
    assert not store.put_policy(policy._replace(updated_at=2.0))
    assert store.policies() == [policy._replace(updated_at=2.0)]
    assert store.drop_policy("shop")
    assert not store.drop_policy("shop")
    assert store.policy("shop") is None


@pytest.mark.parametrize("state", ["queued", "running"])
def test_only_what_has_ended_is_forgotten(stores: Any, state: str) -> None:
    store = stores()
    kept = store.add(replace(job(), state=state), most=9)
    store.forget(kept.id)
    assert store.get(kept.id) is not None

"""The queue and memory of jobs: one table, on SQLite or PostgreSQL, through SQLAlchemy's Core.

Why no queue library: those that are kept well want a broker of their own (Celery, RQ, arq) or work on PostgreSQL alone
(Procrastinate, pgqueuer), and the embedded default must be a file. What a queue needs here is one statement that takes
a row (`FOR UPDATE SKIP LOCKED`, or a transaction that holds SQLite's write lock) and a lease, so it is written on the
database layer that fits both.

A job that runs has a *lease*, which its runner keeps renewing. When the runner dies the lease ends, and any runner puts
the job back into the queue; the second time the job is failed. `attempts` fences: whatever a runner that was taken for
dead still wants to say about an earlier attempt is refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from dataclasses import asdict, fields
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Engine,
    Select,
    and_,
    bindparam,
    case,
    create_engine,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from service.jobs.job import ENDED, Job, JobView, State
from service.jobs.tables import JOBS, POLICIES, RELEASES
from service.ledger import Released, check_comparable
from service.problems import Problem, problem

MOST_ATTEMPTS = 2
_PASSING = {problem(kind, "").type for kind in ("disk-full", "job-killed", "job-interrupted")}
_SEEN = [JOBS.c[field.name] for field in fields(JobView)]
_LOOK = select(*_SEEN).where(JOBS.c.id == bindparam("id"))


class Running(NamedTuple):
    """A job that a runner holds."""

    id: str
    attempt: int
    cancel: bool
    """Whether it is to stop."""
    stop_search: bool
    """Whether it is to publish the best that its search has found."""


class LedgerEntry(NamedTuple):
    """A release that is to be entered into the ledger."""

    release: Released
    allow: bool
    """Whether its policy allows releases that cannot be compared."""


class ListedRelease(NamedTuple):
    """An entry of the ledger."""

    job: str
    owner: str
    release: Released


class StoredPolicy(NamedTuple):
    """A policy under its name."""

    name: str
    text: str
    fingerprint: str
    updated_at: float


class JobStore:
    """Jobs and policies in the database. Every method is one transaction and may be called from any thread."""

    def __init__(self, engine: Engine) -> None:
        self.embedded = engine.dialect.name == "sqlite"
        """Whether reading takes microseconds and waits for nobody: the database is a file beside us."""
        self._engine = engine
        # What reads is one statement, a transaction in itself: it needs none of the engine's preparations.
        self._reading = create_engine(engine.url, pool=engine.pool)

    def check(self) -> None:
        """Raise unless the database answers with our schema and can be written to."""
        with self._engine.begin() as connection:
            connection.execute(select(JOBS.c.id).limit(1)).first()
            connection.execute(update(JOBS).where(JOBS.c.id == "").values(done=0))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    # ---- jobs, as users see them

    def add(self, job: Job, *, most: int) -> Job | None:
        """Put a new job into the queue; the earlier one with its idempotency key; None where `most` are unfinished."""
        values = {**asdict(job), "inputs": json.dumps(job.inputs)}
        try:
            with self._engine.begin() as connection:
                if self._engine.dialect.name == "postgresql":
                    # Two submissions of one token are counted one after the other.
                    lock = text("SELECT pg_advisory_xact_lock(hashtext(:token))")
                    connection.execute(lock, {"token": job.token})
                same = and_(JOBS.c.token == job.token, JOBS.c.idempotency_key == job.idempotency_key)
                if job.idempotency_key and (row := connection.execute(select(JOBS).where(same)).first()):
                    earlier = _job(row)
                    if not _may_be_tried_again(earlier):
                        return earlier
                    connection.execute(update(JOBS).where(same).values(idempotency_key=None))
                unfinished = and_(JOBS.c.token == job.token, JOBS.c.state.in_(("queued", "running")))
                if (connection.scalar(select(func.count()).select_from(JOBS).where(unfinished)) or 0) >= most:
                    return None
                connection.execute(insert(JOBS).values(values))
        except IntegrityError:
            raise RuntimeError("a job's id was given twice") from None
        return job

    def get(self, job_id: str) -> JobView | None:
        """The job with this id."""
        with self._reading.connect() as connection:
            row = connection.execute(_LOOK, {"id": job_id}).first()
        return JobView(*row) if row else None

    def page(
        self, *, token: str | None, state: State | None, before: tuple[float, str] | None, limit: int
    ) -> list[JobView]:
        """Jobs from the newest to the oldest, those of one token or of all, older than `before` = (time, id)."""
        moment, last = before or (None, None)
        given = {"token": token, "state": state, "moment": moment, "last": last}
        known = {name: value for name, value in given.items() if value is not None}
        with self._reading.connect() as connection:
            rows = connection.execute(_page(frozenset(known)), {**known, "limit": limit}).all()
        return [JobView(*row) for row in rows]

    def counts(self) -> dict[str, int]:
        """Number of jobs in each state."""
        query = select(JOBS.c.state, func.count()).group_by(JOBS.c.state)
        with self._reading.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def cancel(self, job_id: str) -> JobView | None:
        """End a job that waits, or ask a running one to stop; the job as it then is."""
        now = time.time()
        mine = JOBS.c.id == job_id
        with self._engine.begin() as connection:
            # One statement: between two of them, a job that runs may go back into the queue.
            waits = JOBS.c.state == "queued"
            unfinished = update(JOBS).where(mine, JOBS.c.state.in_(("queued", "running")))
            connection.execute(
                unfinished.values(
                    state=case((waits, "cancelled"), else_=JOBS.c.state),
                    finished_at=case((waits, now), else_=JOBS.c.finished_at),
                    cancel_at=case((waits, JOBS.c.cancel_at), else_=func.coalesce(JOBS.c.cancel_at, now)),
                )
            )
            row = connection.execute(_LOOK, {"id": job_id}).first()
        return JobView(*row) if row else None

    def stop_search(self, job_id: str) -> JobView | None:
        """Ask a job to publish the best that its search has found, now or once it runs; the job as it then is."""
        unfinished = (JOBS.c.id == job_id, JOBS.c.state.in_(("queued", "running")), JOBS.c.stop_search_at.is_(None))
        with self._engine.begin() as connection:
            connection.execute(update(JOBS).where(*unfinished).values(stop_search_at=time.time()))
            row = connection.execute(_LOOK, {"id": job_id}).first()
        return JobView(*row) if row else None

    def forget(self, job_id: str) -> None:
        """Remove a job that has ended."""
        with self._engine.begin() as connection:
            connection.execute(delete(JOBS).where(JOBS.c.id == job_id, JOBS.c.state.in_(ENDED)))

    # ---- jobs, as runners see them

    def claim(self, runner: str, lease: float) -> Job | None:
        """Take the oldest job that waits."""
        waiting = select(JOBS.c.id).where(JOBS.c.state == "queued").order_by(JOBS.c.created_at).limit(1)
        with self._reading.connect() as connection:
            if connection.execute(waiting).first() is None:
                return None
        with self._engine.begin() as connection:
            job_id = connection.scalar(waiting.with_for_update(skip_locked=True))
            if job_id is None:
                return None
            now = time.time()
            taken = update(JOBS).where(JOBS.c.id == job_id).returning(*JOBS.c)
            taken = taken.values(
                state="running",
                runner=runner,
                lease_until=now + lease,
                attempts=JOBS.c.attempts + 1,
                started_at=func.coalesce(JOBS.c.started_at, now),
                phase="start",
                phase_at=now,
                done=0,
                total=0,
            )
            return _job(connection.execute(taken).one())

    def renew(self, runner: str, lease: float, ids: Collection[str]) -> None:
        """Keep these jobs of a runner that lives; one that it has lost is taken up by others."""
        mine = and_(JOBS.c.runner == runner, JOBS.c.state == "running", JOBS.c.id.in_(ids))
        with self._engine.begin() as connection:
            connection.execute(update(JOBS).where(mine).values(lease_until=time.time() + lease))

    def held(self, runner: str) -> list[Running]:
        """What a runner still holds, and what of it is to be stopped."""
        asked = (JOBS.c.cancel_at.is_not(None), JOBS.c.stop_search_at.is_not(None))
        query = select(JOBS.c.id, JOBS.c.attempts, *asked)
        query = query.where(JOBS.c.runner == runner, JOBS.c.state == "running")
        with self._reading.connect() as connection:
            return [Running(*row) for row in connection.execute(query)]

    def progress(self, job: Job, phase: str, done: int, total: int) -> None:
        """Say how far a job is."""
        values: dict[str, Any] = {"phase": phase, "done": done, "total": total}
        with self._engine.begin() as connection:
            connection.execute(update(JOBS).where(_attempt(job), JOBS.c.phase != phase).values(phase_at=time.time()))
            connection.execute(update(JOBS).where(_attempt(job)).values(values))

    def finish(
        self,
        job: Job,
        state: State,
        *,
        failed: Problem | None = None,
        report: str | None = None,
        release: LedgerEntry | None = None,
    ) -> bool:
        """End an attempt; False where it is not this runner's any more, or was to be stopped and did not.

        A release is entered into the ledger in the same transaction, so that the ledger has exactly what can be seen.
        `IncomparableError` where it must not be seen; the job then still runs.
        """
        own = _attempt(job)
        if state == "succeeded":
            own = and_(own, JOBS.c.cancel_at.is_(None))
        ended = (
            update(JOBS)
            .where(own)
            .values(
                state=state,
                finished_at=time.time(),
                problem=failed.model_dump_json() if failed else None,
                report=report,
            )
        )
        with self._engine.begin() as connection:
            if release is not None:
                self._enter(connection, job, release)
            is_own = connection.execute(ended).rowcount == 1
            if not is_own:
                connection.rollback()
            return is_own

    def give_back(self, job: Job) -> None:
        """Put a job back that was stopped because the service stops; it does not count as an attempt."""
        back = update(JOBS).where(_attempt(job))
        with self._engine.begin() as connection:
            connection.execute(back.values(state="queued", runner=None, attempts=JOBS.c.attempts - 1))

    def take_up(self) -> list[str]:
        """Put jobs of dead runners back, once; the ids of those that are failed or cancelled instead."""
        now = time.time()
        lost = and_(JOBS.c.state == "running", JOBS.c.lease_until < now)
        reason = problem("job-interrupted", f"It was tried {MOST_ATTEMPTS} times and is not tried again.")
        ends: list[tuple[Any, dict[str, Any]]] = [
            (JOBS.c.cancel_at.is_not(None), {"state": "cancelled"}),
            (JOBS.c.attempts >= MOST_ATTEMPTS, {"state": "failed", "problem": reason.model_dump_json()}),
        ]
        ended: list[str] = []
        with self._engine.begin() as connection:
            for condition, values in ends:
                ending = update(JOBS).where(lost, condition).values(finished_at=now, **values)
                ended += connection.scalars(ending.returning(JOBS.c.id))
            connection.execute(update(JOBS).where(lost).values(state="queued", runner=None))
        return ended

    def purge(self, before: float) -> list[str]:
        """Remove jobs that ended before this time; their ids."""
        old = and_(JOBS.c.state.in_(ENDED), JOBS.c.finished_at < before)
        with self._engine.begin() as connection:
            return list(connection.scalars(delete(JOBS).where(old).returning(JOBS.c.id)))

    def unknown(self, ids: Collection[str]) -> set[str]:
        """Those of these ids that no job has."""
        with self._reading.connect() as connection:
            return set(ids) - set(connection.scalars(select(JOBS.c.id).where(JOBS.c.id.in_(ids))))

    def over(self, ids: Collection[str]) -> list[str]:
        """Those of these jobs that have ended."""
        ended = select(JOBS.c.id).where(JOBS.c.id.in_(ids), JOBS.c.state.in_(ENDED))
        with self._reading.connect() as connection:
            return list(connection.scalars(ended))

    # ---- releases

    def _enter(self, connection: Connection, job: Job, entry: LedgerEntry) -> None:
        """Compare a release with the others of its owner's data set, and write it down.

        A job is never compared with itself: an earlier attempt may have released the same.
        """
        release = entry.release
        if self._engine.dialect.name == "postgresql":
            # Two releases of one data set are compared one after the other.
            lock = text("SELECT pg_advisory_xact_lock(hashtext(:data_set))")
            connection.execute(lock, {"data_set": f"release {job.owner} {release.data_set}"})
        same = and_(RELEASES.c.owner == job.owner, RELEASES.c.data_set == release.data_set)
        others = select(RELEASES.c.release).where(same, RELEASES.c.job != job.id).order_by(RELEASES.c.at)
        if not entry.allow:
            check_comparable(release, [Released.of(json.loads(row[0])) for row in connection.execute(others)])
        connection.execute(delete(RELEASES).where(RELEASES.c.job == job.id))
        values = {"job": job.id, "owner": job.owner, "data_set": release.data_set, "who": release.who}
        written = json.dumps(release.as_dict())
        connection.execute(insert(RELEASES).values(release=written, at=release.at, **values))

    def releases(self, *, owner: str | None, data_set: str | None, limit: int) -> list[ListedRelease]:
        """Jobs and what they released, the newest first: of one owner or of all, of one data set or of all."""
        columns = (RELEASES.c.job, RELEASES.c.owner, RELEASES.c.release)
        query = select(*columns).order_by(RELEASES.c.at.desc(), RELEASES.c.job).limit(limit)
        if owner is not None:
            query = query.where(RELEASES.c.owner == owner)
        if data_set is not None:
            query = query.where(RELEASES.c.data_set == data_set)
        with self._reading.connect() as connection:
            return [ListedRelease(row[0], row[1], Released.of(json.loads(row[2]))) for row in connection.execute(query)]

    def remove_release(self, job_id: str) -> bool:
        """Remove the release of a job from the ledger; False where it has none."""
        with self._engine.begin() as connection:
            return connection.execute(delete(RELEASES).where(RELEASES.c.job == job_id)).rowcount == 1

    # ---- policies

    def put_policy(self, policy: StoredPolicy) -> bool:
        """Keep a policy under its name; True where the name is new."""
        values = policy._asdict()
        with self._engine.begin() as connection:
            if connection.execute(update(POLICIES).where(POLICIES.c.name == policy.name).values(values)).rowcount:
                return False
            connection.execute(insert(POLICIES).values(values))
            return True

    def policy(self, name: str) -> StoredPolicy | None:
        """The policy of this name."""
        with self._reading.connect() as connection:
            row = connection.execute(select(POLICIES).where(POLICIES.c.name == name)).first()
        return StoredPolicy(*row) if row else None

    def policies(self) -> list[StoredPolicy]:
        """All policies, by name."""
        with self._reading.connect() as connection:
            return [StoredPolicy(*row) for row in connection.execute(select(POLICIES).order_by(POLICIES.c.name))]

    def drop_policy(self, name: str) -> bool:
        """Remove a policy; False where there is none."""
        with self._engine.begin() as connection:
            return connection.execute(delete(POLICIES).where(POLICIES.c.name == name)).rowcount == 1


def _may_be_tried_again(job: Job) -> bool:
    """Whether a job failed for a reason that passes: the same request then makes a new one."""
    return job.state == "failed" and json.loads(job.problem or "{}").get("type") in _PASSING


def _attempt(job: Job) -> Any:
    return and_(
        JOBS.c.id == job.id,
        JOBS.c.state == "running",
        JOBS.c.runner == job.runner,
        JOBS.c.attempts == job.attempts,
    )


@cache
def _page(known: frozenset[str]) -> Select[Any]:
    """The query for a page, built once for each set of things that are known."""
    shown = [column for column in _SEEN if column.name != "report"]
    query = select(*shown).order_by(JOBS.c.created_at.desc(), JOBS.c.id.desc()).limit(bindparam("limit"))
    if "token" in known:
        query = query.where(JOBS.c.token == bindparam("token"))
    if "state" in known:
        query = query.where(JOBS.c.state == bindparam("state"))
    if "moment" in known:
        older = and_(JOBS.c.created_at == bindparam("moment"), JOBS.c.id < bindparam("last"))
        query = query.where(or_(JOBS.c.created_at < bindparam("moment"), older))
    return query


def _job(row: Any) -> Job:
    values = dict(zip(JOBS.columns.keys(), row, strict=True))
    return Job(**{**values, "inputs": json.loads(values["inputs"])})

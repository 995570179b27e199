"""The tables of the service's database. Times are seconds since 1970; the API writes them as RFC 3339."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

METADATA = MetaData()

JOBS = Table(
    "jobs",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("token", String(100), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("state", String(20), nullable=False),
    Column("owner", String(110), nullable=False),
    Column("policy_name", String(100), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("attempts", Integer, nullable=False),
    Column("runner", String(64)),
    Column("lease_until", Double),
    Column("cancel_at", Double),
    Column("stop_search_at", Double),
    Column("phase", String(40)),
    Column("phase_at", Double),
    Column("done", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("idempotency_key", String(200)),
    Column("digest", String(64)),
    # Last what may be long: SQLite would read through it to get at what comes after.
    Column("problem", Text),
    Column("inputs", Text, nullable=False),
    Column("report", Text),
    Column("policy", Text, nullable=False),
    UniqueConstraint("token", "idempotency_key", name="jobs_idempotency"),
    Index("jobs_queue", "state", "created_at"),
    Index("jobs_newest", "created_at", "id"),
)

RELEASES = Table(
    "releases",
    METADATA,
    Column("job", String(64), primary_key=True),
    Column("owner", String(110), nullable=False),
    Column("data_set", String(100), nullable=False),
    Column("who", String(100), nullable=False),
    Column("at", Double, nullable=False),
    Column("release", Text, nullable=False),
    Index("releases_of_data_sets", "owner", "data_set", "at"),
)
"""What was released of each data set of an owner. It stays known when its job is forgotten; `release` is JSON."""

POLICIES = Table(
    "policies",
    METADATA,
    Column("name", String(100), primary_key=True),
    Column("text", Text, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("updated_at", Double, nullable=False),
)

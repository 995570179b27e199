"""Prometheus metrics of the HTTP service. Labels are route templates, methods, states: nothing that was sent."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Scope

from service.jobs import JobStore

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_JOB_SECONDS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200)


class HttpMetrics:
    """Counts requests and jobs."""

    def __init__(self, store: JobStore) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "portcullis_http_requests", "Requests", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "portcullis_http_seconds", "Time of a request", ("route",), buckets=_SECONDS, registry=self.registry
        )
        self._jobs = Counter("portcullis_jobs_ended", "Jobs that ended", ("state",), registry=self.registry)
        self._job_seconds = Histogram(
            "portcullis_job_seconds", "Time of a job", buckets=_JOB_SECONDS, registry=self.registry
        )
        self._following = Gauge("portcullis_event_streams", "Clients that follow events", registry=self.registry)
        self.followers: Counts[str] = Counts()
        """How many streams of events each token has open."""
        self.registry.register(_Queue(store))

    def seen(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        route = getattr(scope.get("route"), "path", "") or "other"
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def job_ended(self, state: str, seconds: float) -> None:
        """Count a job."""
        self._jobs.labels(state).inc()
        self._job_seconds.observe(seconds)

    @contextmanager
    def following(self, token: str) -> Iterator[None]:
        """Count a client of this token while it follows events."""
        self.followers[token] += 1
        self._following.set(self.followers.total())
        try:
            yield
        finally:
            self.followers[token] -= 1
            self._following.set(self.followers.total())

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)


class _Queue(Collector):
    """Jobs by state, as the database has them when somebody asks."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    def describe(self) -> Iterable[Metric]:
        return [GaugeMetricFamily("portcullis_jobs", "Jobs by state", labels=["state"])]

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily("portcullis_jobs", "Jobs by state", labels=["state"])
        try:
            for state, count in self._store.counts().items():
                family.add_metric([state], count)
        except SQLAlchemyError:
            return []
        return [family]

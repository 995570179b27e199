"""What a worker tells about itself: Prometheus metrics, and the status that API and console show.

Labels are stream, partition and reason codes; no value of a record is ever among them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from microdata import Boxes, class_loss
from privacy import Model
from service.kafka import Partition
from service.worker.partition import InputPartition, Settlement
from service.worker.rejections import Rejecting
from service.worker.stream import Stream

_COUNTERS = {
    "taken": ("events_taken", "Records read from the input."),
    "released": ("events_released", "Rows published."),
    "suppressed": ("events_suppressed", "Rows that will never be published."),
    "skipped": ("events_skipped", "Records that are no events, such as deleted rows in a topic of Debezium."),
    "clusters": ("clusters", "Clusters published."),
    "at_once": (
        "events_at_once",
        "Rows that left with the first transaction after they came: their person has company.",
    ),
    "reused": ("reuses", "Rows published with a box that had been published before."),
    "refused_releases": ("refused_releases", "Clusters that a check kept from leaving. Must be 0."),
    "restores": ("restores", "Partitions taken over."),
    "transactions": ("transactions", "Transactions committed."),
}
_GAUGES = {
    "loss": ("loss_recent", "Running mean loss of published rows."),
    "delay": ("delay_recent_seconds", "Running mean time from taking an event to publishing it."),
    "open_clusters": ("open_clusters", "Clusters being formed."),
    "tau": ("tau", "Loss threshold of the engine, the mean over partitions."),
    "persons": ("persons", "Persons that engines remember."),
    "members": ("persons_in_cohorts", "Persons whom a cohort counts."),
    "dismissed": ("persons_dismissed", "Persons whose values left the box of their cohort: never counted again."),
    "pool": ("persons_in_pool", "Persons who wait for a cohort."),
    "cohorts": ("cohorts", "Cohorts of persons."),
    "founded": ("cohorts_founded", "Cohorts that new persons have founded."),
    "splits": ("cohort_splits", "Cohorts that were split in two."),
    "silent_cohorts": ("silent_cohorts", "Cohorts with fewer than k members, which publish nothing until others join."),
    "fewest_members": ("cohort_members_fewest", "Members of the smallest cohort."),
    "median_members": ("cohort_members_median", "Members of a cohort: the median, the mean over partitions."),
    "most_members": ("cohort_members_most", "Members of the largest cohort."),
    "followed": ("persons_followed", "Persons whose published rows are tied together, as an attacker would."),
    "last_seen": ("last_seen_offsets", "Offsets since members were seen: the median, the mean over partitions."),
    "pending": ("events_pending", "Rows taken and undecided."),
    "lag": ("lag", "Records of the input behind the last one taken."),
    "thin": (
        "thin_partitions",
        "Partitions with too few persons: events are suppressed; with cohorts, more than leave.",
    ),
    "rejecting": (
        "rejecting_partitions",
        "Partitions of whose recent records more are rejected than PORTCULLIS_WORKER_REJECTED_SHARE.",
    ),
    "stopped": ("stopped_partitions", "Partitions that wait for an operator."),
    "assigned": ("assigned_partitions", "Partitions that this worker owns."),
}
_OF_PERSONS = ("persons", "members", "dismissed", "pool", "cohorts", "founded", "splits", "silent_cohorts")
"""Gauges that engines tell which remember persons."""
_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_TUPLES = (10, 100, 1_000, 3_000, 10_000, 30_000, 100_000)
PATIENCE = 90.0
"""Seconds without a step after which a loop counts as stuck, unless the settings let one step take longer."""
_QUIET_SECONDS = 10.0
"""Seconds without a poll after which a worker is not doing its job, whatever it waits for."""
_ASK_SECONDS = 5.0
"""How often engines that remember persons are asked how they are."""
_RECENT = 0.05
"""Weight of the newest value in a running mean."""


class Distribution:
    """A histogram that takes whole arrays."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._sum = 0.0

    def observe(self, values: NDArray[Any]) -> None:
        """Count these values."""
        self._counts += np.bincount(np.searchsorted(self._bounds, values), minlength=len(self._counts))
        self._sum += float(values.sum())

    def family(self, name: str, text: str, stream: str) -> HistogramMetricFamily:
        """The form in which Prometheus reads it."""
        family = HistogramMetricFamily(f"portcullis_{name}", text, labels=["stream"])
        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        totals = np.cumsum(self._counts).tolist()
        family.add_metric([stream], list(zip(bounds, totals, strict=True)), self._sum)
        return family


class Metrics(Collector):
    """Counts of one worker process. The loop writes, any thread may read."""

    def __init__(self, stream: Stream, patience: float = PATIENCE) -> None:
        self._stream = stream
        self._patience = patience
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._seen: dict[Partition, Counter[str]] = {}
        self._asked: dict[Partition, tuple[InputPartition, float, dict[str, float]]] = {}
        self._partitions: dict[Partition, dict[str, Any]] = {}
        self._assigned: frozenset[Partition] = frozenset()
        self._stopped: dict[Partition, str] = {}
        self._errors: Counter[str] = Counter()
        self._trouble: dict[str, dict[str, Any]] = {}
        self._behind: str | None = None
        self._polled_at: float | None = None
        self._step, self._step_at = "starting", time.monotonic()
        self._waits_for: str | None = "it is starting"
        self._is_looping = False
        self._started = time.time()
        self._delay_seconds, self._delay_tuples = Distribution(_SECONDS), Distribution(_TUPLES)
        self._transaction_seconds = Distribution(_SECONDS)
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def polled(
        self,
        assigned: frozenset[Partition],
        running: Mapping[Partition, InputPartition],
        stopped: Mapping[Partition, str],
    ) -> None:
        """One turn of the loop."""
        with self._lock:
            self._polled_at = self._step_at = time.monotonic()
            self._step, self._waits_for, self._is_looping = "polling", None, True
            if assigned != self._assigned:  # what could not be committed may be somebody else's now
                self._trouble.pop("committing", None)
            self._assigned, self._stopped = assigned, dict(stopped)
            self._partitions = {partition: self._partitions.get(partition, {}) for partition in running}

    def step(self, doing: str) -> None:
        """The loop turns: this is what it does now, which may take as long as a broker may take to answer."""
        with self._lock:
            self._step, self._step_at, self._is_looping = doing, time.monotonic(), True

    def starts(self, reason: str) -> None:
        """Something long is under way before the loop begins."""
        with self._lock:
            self._waits_for, self._is_looping = reason, False

    def waits(self, reason: str) -> None:
        """The loop turns, but waits for something outside before it can begin."""
        self.step("waiting")
        with self._lock:
            self._waits_for = reason

    def restoring(self, doing: str) -> None:
        """A partition is being taken over, which is done before the loop polls again."""
        self.step(doing)
        with self._lock:
            self._waits_for = doing

    def restored(self, partition: Partition, own: InputPartition, seconds: float) -> None:
        """A partition was taken over."""
        with self._lock:
            self._counts["restores"] += 1
            self._seen[partition] = Counter(own.committed_totals)
            self._partitions[partition] = {"restored_rows": len(own.rows), "restore_seconds": round(seconds, 3)}

    def lagging(self, partition: Partition, records: int) -> None:
        """How far a partition is behind its input."""
        with self._lock:
            self._partitions.setdefault(partition, {})["lag"] = records

    def rejecting(self, partition: Partition, found: Rejecting | None) -> None:
        """Note whether most recent records of a partition are rejected."""
        with self._lock:
            known = self._partitions.setdefault(partition, {})
            known["rejecting"] = None if found is None else {**found.as_dict(), "text": str(found)}

    def behind(self, reason: str | None) -> None:
        """Note why the stream does not use the newest schemas of the registry; None where it does."""
        with self._lock:
            self._behind = reason

    def failed(self, doing: str, code: str, reason: str) -> None:
        """Kafka did not do what was asked of it; it is asked again, and until it has worked nothing is well."""
        with self._lock:
            self._errors[code] += 1
            known = self._trouble.setdefault(doing, {"since": _utc(time.time()), "tries": 0})
            known |= {"code": code, "reason": reason, "tries": known["tries"] + 1}

    def worked(self, doing: str) -> None:
        """What had failed has worked."""
        with self._lock:
            self._trouble.pop(doing, None)

    def refused_release(self) -> None:
        """An engine broke its own guarantee and nothing of it left."""
        with self._lock:
            self._counts["refused_releases"] += 1

    def committed(self, seconds: float) -> None:
        """A transaction is durable."""
        with self._lock:
            self._counts["transactions"] += 1
            self._transaction_seconds.observe(np.array([seconds]))

    def settled(self, partition: Partition, own: InputPartition, settlement: Settlement, now: float) -> None:
        """What a durable transaction did for one partition; called before the partition forgets its rows."""
        rows, clusters = settlement.published.rows, settlement.published.clusters
        engine, totals = self._told(partition, own), Counter(settlement.state.totals)
        with self._lock:
            self._counts += totals - self._seen.get(partition, Counter())
            self._counts["refused_releases"] += settlement.published.refused
            self._seen[partition] = totals
            known = self._partitions.setdefault(partition, {})
            known |= {
                "position": own.position,
                "pending": len(own.engine.pending()),
                "thin": own.thin,
                "totals": dict(totals),
                "engine": engine,
                "achieved": dict(own.achieved),
            }
            if own.memory is not None:
                followed = own.memory.followed
                known["followed"] = {"persons": len(followed), "rows": followed.rows, "least": followed.least}
            if len(rows):
                delays = now - own.rows.times[rows]
                self._delay_seconds.observe(delays)
                self._delay_tuples.observe(own.position - own.rows.positions[rows])
                first, of = clusters.distinct
                losses = class_loss(Boxes(own.schema, clusters.lo[first], clusters.hi[first]))[of]
                # Not as a product of vectors: of large ones numpy's library keeps another processor busy for a while.
                _blend(known, "loss", float((losses * np.diff(clusters.starts)).sum() / len(rows)))
                _blend(known, "delay", float(delays.mean()))

    def _told(self, partition: Partition, own: InputPartition) -> dict[str, float]:
        """What the engine tells of itself; one that remembers persons looks at all of them, and is asked rarely."""
        asked = self._asked.get(partition)
        if own.memory is not None and asked and asked[0] is own and time.monotonic() < asked[1] + _ASK_SECONDS:
            return asked[2]
        told = dict(own.engine.status())
        self._asked[partition] = own, time.monotonic(), told
        return told

    def gone(self) -> None:
        """The loop has ended."""
        with self._lock:
            self._polled_at, self._waits_for = None, "the worker has ended"
            self._assigned, self._partitions, self._asked = frozenset(), {}, {}

    def collect(self) -> Iterator[Metric]:
        """Everything that Prometheus asks for."""
        own = self._stream.name
        with self._lock:
            for key, (name, text) in _COUNTERS.items():
                counter = CounterMetricFamily(f"portcullis_{name}", text, labels=["stream"])
                counter.add_metric([own], self._counts[key])
                yield counter
            refused = CounterMetricFamily(
                "portcullis_events_refused", "Records refused, by reason.", labels=["stream", "reason"]
            )
            for key, count in self._counts.items():
                if key.startswith("refused."):
                    refused.add_metric([own, key.removeprefix("refused.")], count)
            yield refused
            errors = CounterMetricFamily(
                "portcullis_kafka_errors", "Errors of Kafka after which it was tried again, by code.",
                labels=["stream", "code"],
            )  # fmt: skip
            for code, count in self._errors.items():
                errors.add_metric([own, code], count)
            yield errors
            values = self._gauges()
            for key, (name, text) in _GAUGES.items():
                gauge = GaugeMetricFamily(f"portcullis_{name}", text, labels=["stream"])
                gauge.add_metric([own], values[key])
                yield gauge
            least = GaugeMetricFamily(
                "portcullis_least_candidates",
                "Fewest persons in all boxes of anybody who is followed, since the worker took over. At least k.",
                labels=["stream"],
            )
            found = [each["followed"]["least"] for each in self._partitions.values() if "followed" in each]
            for fewest in sorted(one for one in found if one is not None)[:1]:
                least.add_metric([own], fewest)
            yield least
            yield self._delay_seconds.family("delay_seconds", "From taking an event to publishing it.", own)
            yield self._delay_tuples.family("delay_tuples", "Offsets between an event and its publication.", own)
            yield self._transaction_seconds.family("transaction_seconds", "Duration of a transaction.", own)

    def _gauges(self) -> dict[str, float]:
        known = self._partitions.values()
        engines = [each.get("engine", {}) for each in known]
        with_cohorts = [engine for engine in engines if engine.get("cohorts")]
        return {
            "loss": _mean(known, "loss"),
            "delay": _mean(known, "delay"),
            "open_clusters": sum(engine.get("open_clusters", 0.0) for engine in engines),
            "tau": _mean(engines, "tau"),
            **{name: sum(engine.get(name, 0.0) for engine in engines) for name in _OF_PERSONS},
            "fewest_members": min((engine["fewest_members"] for engine in with_cohorts), default=0.0),
            "median_members": _mean(with_cohorts, "median_members"),
            "most_members": max((engine["most_members"] for engine in with_cohorts), default=0.0),
            "followed": sum(each.get("followed", {}).get("persons", 0) for each in known),
            "last_seen": _mean(engines, "last_seen_median"),
            "pending": sum(each.get("pending", 0) for each in known),
            "lag": sum(each.get("lag", 0) for each in known),
            "thin": sum(bool(each.get("thin")) for each in known),
            "rejecting": sum(bool(each.get("rejecting")) for each in known),
            "stopped": len(self._stopped),
            "assigned": len(self._assigned),
        }

    def _achieved(self, model: Model) -> dict[str, Any]:
        """What the least safe published cluster achieved, beside what was asked; None before the first."""
        values = [known["achieved"][model.name] for known in self._partitions.values() if known.get("achieved")]
        worst = (min if model.more_is_safer else max)(values, default=None)
        return {
            "model": model.label,
            "asked": model.asked,
            "achieved": worst,
            "more_is_safer": model.more_is_safer,
        }

    def stuck(self) -> str | None:
        """Why the process should be replaced, None while its loop turns."""
        with self._lock:
            seconds = time.monotonic() - self._step_at
            if not self._is_looping or seconds <= self._patience:
                return None
            return f"the loop has not turned for {seconds:.0f} s, in: {self._step}"

    def unready(self) -> str | None:
        """Why the worker is not doing its job, None when it is."""
        stuck = self.stuck()
        if stuck is not None:
            return stuck
        with self._lock:
            if self._waits_for is not None:
                return self._waits_for
            if self._stopped:
                count = len(self._stopped)
                return "1 partition is stopped" if count == 1 else f"{count} partitions are stopped"
            for doing, known in self._trouble.items():
                return f"{doing} does not work: {known['reason']}"
            quiet = time.monotonic() - (self._polled_at or 0.0)
            if quiet > _QUIET_SECONDS:
                return f"no poll for {quiet:.0f} s, in: {self._step}"
            if not self._assigned:
                return "no partition is assigned"
            if len(self._partitions) < len(self._assigned):
                return "partitions are being restored"
            return None

    def notices(self) -> list[str]:
        """Return what an operator should look at although the worker is doing its job."""
        with self._lock:
            found = {one.number: each["rejecting"] for one, each in self._partitions.items() if each.get("rejecting")}
            behind = [] if self._behind is None else [self._behind]
        return behind + [f"partition {number}: {rejecting['text']}" for number, rejecting in sorted(found.items())]

    def status(self) -> dict[str, Any]:
        """Everything that API and console show of this worker."""
        reason = self.unready()
        with self._lock:
            return {
                "stream": self._stream.name,
                "input": self._stream.input,
                "output": self._stream.output,
                "started": _utc(self._started),
                "ready": reason is None,
                "reason": reason,
                "counts": dict(self._counts),
                "gauges": self._gauges(),
                "guarantee": [self._achieved(model) for model in self._stream.models],
                "delay_limit": self._stream.delay_seconds,
                "partitions": {
                    str(partition.number): dict(known) for partition, known in sorted(self._partitions.items())
                },
                "stopped": {str(partition.number): why for partition, why in sorted(self._stopped.items())},
                "kafka_errors": dict(self._errors),
                "trouble": {doing: dict(known) for doing, known in self._trouble.items()},
                "old_schemas": self._behind,
            }


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _blend(known: dict[str, Any], key: str, value: float) -> None:
    """Move a running mean towards a new value."""
    known[key] = round(known.get(key, value) * (1 - _RECENT) + value * _RECENT, 6)


def _mean(parts: Collection[Mapping[str, Any]], key: str) -> float:
    values = [part[key] for part in parts if key in part]
    return float(np.mean(values)) if values else 0.0

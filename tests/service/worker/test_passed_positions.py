"""δ is counted in offsets: records that are refused, lost or never were events pass like any other."""

from collections.abc import Iterator
from typing import Any

import pytest

from service.kafka import GoneError
from stream_algos import BurelW, Castle, SabreW
from tests.service.worker.test_cycle import RAW, Hall, event

WINDOW = {"window": {"size": 1_000, "advance": 100}}
ENGINES = {
    "deadline": (Castle, {"delta": 1_000}),
    "arrival": (Castle, {"delta": 1_000, "formation": "arrival"}),
    "sabre_w": (SabreW, {"t": 0.5, **WINDOW}),
    "burel_w": (BurelW, {"beta": 2.0, **WINDOW}),
}


@pytest.fixture(params=ENGINES)
def hall(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A worker that has taken 100 events, of which some may wait for company."""
    kind, given = ENGINES[request.param]
    hall = Hall(kind=kind, settings={"accept_loss": True}, **given)  # type: ignore[arg-type]
    hall.cycle()
    hall.feed(*(event(n, n % 50, age=n % 100) for n in range(100)))
    hall.cycle()
    yield hall
    hall.worker.close()


def waiting(hall: Any) -> Any:
    return hall.worker._owned.running[RAW].engine.pending()


def decided(hall: Any) -> Any:
    hall.cycle(2)
    return sum(len(cluster["rows"]) for cluster in hall.output())


def test_refused_records_pass(hall: Any) -> None:
    assert len(waiting(hall)) == 100
    hall.feed(*[(None, b"poison")] * 900)
    hall.cycle()
    assert len(waiting(hall)) == 100 or hall.stream.engine().windowed
    hall.feed(*[(None, b"poison")] * 4_100)
    hall.cycle()
    assert not len(waiting(hall))
    assert decided(hall) == 100


def test_offsets_without_a_record_pass(hall: Any) -> None:
    """As a transaction's marker, or what an aborted one has written."""
    hall.feed(*[(None, b"")] * 1_100)
    hall.paper.gone |= {(RAW, offset) for offset in range(100, 1_199)}
    hall.cycle()
    assert not len(waiting(hall))
    assert decided(hall) == 100


def test_offsets_that_retention_took_pass(hall: Any) -> None:
    hall.feed(*[(None, b"")] * 5_000, event(100, 0))
    hall.paper.low[RAW] = 5_100
    hall.paper.errors["poll"] = GoneError(*RAW, 100)
    hall.cycle()
    assert set(waiting(hall)) <= {5_100}
    assert decided(hall) == 100


def test_what_has_passed_is_known_after_a_restart(hall: Any) -> None:
    hall.feed(*[(None, b"poison")] * 950)
    hall.cycle()
    hall.worker._owned.discard()
    hall.cycle()
    hall.feed(*[(None, b"poison")] * 150)
    hall.cycle()
    assert not len(waiting(hall))
    assert decided(hall) == 100

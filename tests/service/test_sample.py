"""The sample: people who come back and stay who they are."""

from typing import Any

from service.sample import sample_events


def test_customers_repeat_and_keep_their_traits() -> None:
    events = sample_events(2_000, seed=1).to_pylist()
    by_customer: dict[Any, Any] = {}
    for event in events:
        traits = tuple(event[name] for name in ("age", "postcode", "country", "education"))
        assert by_customer.setdefault(event["customer_id"], traits) == traits
    assert len(by_customer) < 500
    assert [event["order"] for event in events] == list(range(2_000))


def test_later_events_are_about_the_same_people() -> None:
    first, later = (sample_events(500, seed=1, persons=50, first=start) for start in (0, 500))
    traits = [{row["customer_id"]: row["age"] for row in part.to_pylist()} for part in (first, later)]
    assert all(traits[1].get(person, age) == age for person, age in traits[0].items())
    assert first.column("item") != later.column("item")


def test_a_seed_repeats() -> None:
    assert sample_events(100, seed=3).equals(sample_events(100, seed=3))
    assert not sample_events(100, seed=3).equals(sample_events(100, seed=4))

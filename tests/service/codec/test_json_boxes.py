"""Boxes that leave again and again are written once, and never as another one."""

from typing import Any

import msgspec
import numpy as np
import pytest

from microdata import Boxes, Category, Hierarchy, Number, Schema, generalizations
from service.codec import json_messages
from service.codec.events import Leaving
from service.codec.json_messages import JsonMessages

SCHEMA = Schema(
    "who",
    (Number("age", 0, 99, integer=True), Category("city", Hierarchy.flat(["a", "b", "c"]))),
    (Category("item", Hierarchy.flat(["x", "y"])),),
)


def leaving(lo: Any, hi: Any, show: Any = "interval") -> Leaving:
    """A row each, of clusters that all have the same id: texts must go by boxes."""
    count = len(lo)
    boxes, items = Boxes(SCHEMA, lo, hi), np.arange(count, dtype=np.int32).reshape(-1, 1) % 2
    return Leaving(np.zeros(count, np.uint64), boxes, np.arange(count + 1), items, (), show)


@pytest.mark.parametrize("most", [0, 3, 50_000])
def test_every_row_has_the_text_of_its_own_box(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_messages, "_MOST_BOXES", most)
    generator, messages = np.random.default_rng(1), JsonMessages(SCHEMA, 10_000)
    for show in ("interval", "interval", "mean", "interval"):
        lo = np.stack([generator.integers(0, 4, 30), generator.integers(0, 3, 30)], axis=1).astype(float)
        hi = lo if show == "mean" else np.stack([lo[:, 0] + 5, lo[:, 1]], axis=1)
        one = leaving(lo, hi, show)
        written = [msgspec.json.decode(message) for (message,) in messages.encode(one, "tuples")]
        wanted = generalizations(one.boxes, one.show)
        assert written == [{**box, "item": "xy"[row % 2]} for row, box in enumerate(wanted)]
        classes = [msgspec.json.decode(message) for (message,) in messages.encode(one, "clusters")]
        assert [each["generalization"] for each in classes] == wanted

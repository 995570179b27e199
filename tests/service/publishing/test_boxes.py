"""Boxes that left are known by their ids, however many there are."""

import numpy as np

from service.publishing.boxes import PublishedBoxes


def test_what_left_is_found_with_its_very_box_and_nothing_else() -> None:
    generator = np.random.default_rng(1)
    ids = generator.permutation(5000).astype(np.uint64) << np.uint64(20)  # meet often
    lo = generator.integers(0, 9, (5000, 3)).astype(float)
    published, hi = PublishedBoxes(3), lo + 1
    for begin in range(0, 4000, 700):
        own = slice(begin, min(begin + 700, 4000))
        published.add(ids[own], lo[own], hi[own])
    assert len(published) == 4000
    assert published.ids.tolist() == ids[:4000].tolist()
    found, known_lo, known_hi = published.find(ids)
    assert found.tolist() == [place < 4000 for place in range(5000)]
    assert np.array_equal(known_lo[found], lo[:4000])
    assert np.array_equal(known_hi[found], hi[:4000])
    assert published.have(ids, lo, hi).tolist() == found.tolist()
    for side in range(2):
        other = [lo.copy(), hi.copy()]
        other[side][:, 2] += 0.5
        assert not published.have(ids, *other).any()
    published.keep(ids[100:200])
    assert len(published) == 100
    assert published.have(ids, lo, hi).tolist() == [100 <= place < 200 for place in range(5000)]
    published.add(ids[4000:], lo[4000:], hi[4000:])
    assert published.have(ids[4000:], lo[4000:], hi[4000:]).all()

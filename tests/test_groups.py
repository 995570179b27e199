"""The suite itself: tests of one group run on one xdist worker, so that what they share is started once."""

import pytest


@pytest.mark.xdist_group("example")
def test_groups_reach_xdist(request: pytest.FixtureRequest) -> None:
    grouped = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@example") == grouped

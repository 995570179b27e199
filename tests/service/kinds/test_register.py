"""Which kinds of data there are, and what a policy says about its own."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from service.kinds import data_kind, data_kinds, register
from service.kinds.records.kind import Records
from service.policy import PolicyError, parse_policy

ADULT = Path(__file__).parents[3] / "examples" / "adult"
GIVEN = yaml.safe_load((ADULT / "policy.yaml").read_text())


def test_records_are_the_default_and_keep_their_fingerprint() -> None:
    assert data_kinds()[0] is data_kind("records")
    plain, named = (parse_policy({**GIVEN, **more}, ADULT) for more in ({}, {"data": "records"}))
    assert plain.data is named.data is data_kind("records")
    assert plain.fingerprint() == named.fingerprint()


@pytest.mark.parametrize("data", ["record", "", 7, None, ["records"], {"records": True}])
def test_another_kind_is_refused_by_its_place(data: Any) -> None:
    with pytest.raises(PolicyError, match=r"^data: must be one of records"):
        parse_policy({**GIVEN, "data": data}, ADULT)


def test_a_kind_is_registered_once_and_its_reports_tell_it() -> None:
    class Nameless(Records):
        name = "nameless"
        report_model = BaseModel  # type: ignore[assignment]

    with pytest.raises(ValueError, match="registered twice"):
        register(Records())
    with pytest.raises(TypeError, match="needs a field `data`"):
        register(Nameless())
    assert "nameless" not in [kind.name for kind in data_kinds()]

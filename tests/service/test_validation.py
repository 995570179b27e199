"""Models that no policy of ours has: what is wrong is said of them too, where it is and with what is allowed."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from service.policy import PolicyError
from service.policy.validation import validated


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Point(Part):
    shape: Literal["point"]
    x: int = 0


class Line(Part):
    shape: Literal["line"]
    ends: tuple[Point, ...] = ()


class Area(Part):
    shape: Literal["area"]
    border: dict[str, Line] = Field(default_factory=dict)
    x: str = ""


class Drawing(Part):
    shapes: list[Annotated[Point | Line | Area, Field(discriminator="shape")]] = Field(default_factory=list)
    named: dict[str, Annotated[Point | Line, Field(discriminator="shape")]] = Field(default_factory=dict)
    frame: Area | None = None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shapes": [{"x": 1}]}, "shapes[0].shape: is missing; must be 'point' or 'line' or 'area'"),
        ({"shapes": [{"shape": "dot"}]}, "shapes[0].shape: must be 'point' or 'line' or 'area', given 'dot'"),
        ({"shapes": [{"shape": "point", "y": 1}]}, "shapes[0].y: unknown key; known keys: shape, x"),
        ({"named": {"point": {"shape": "point", "x": "a"}}}, "named.point.x: must be a valid integer, given 'a'"),
        ({"named": {"line": {"ends": []}}}, "named.line.shape: is missing; must be 'point' or 'line'"),
        ({"named": {"a": {"shape": "line", "ends": [{"z": 1}]}}}, "named.a.ends[0].shape: is missing"),
        ({"frame": {"shape": "area", "bordre": {}}}, "frame.bordre: unknown key; did you mean 'border'?"),
        ({"frame": {"shape": "area", "border": {"area": {"shape": "line", "z": 1}}}}, "frame.border.area.z: unknown"),
    ],
)
def test_what_is_wrong_is_said_of_any_model(given: Any, said: str) -> None:
    with pytest.raises(PolicyError) as error:
        validated(Drawing, given)
    assert said in str(error.value)

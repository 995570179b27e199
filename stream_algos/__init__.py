"""How a stream is made safe."""

from stream_algos._order import InOrder
from stream_algos.burel_w import BurelW
from stream_algos.castle import Castle
from stream_algos.dynamic_group import DynamicGroup
from stream_algos.engine import STREAM_ALGORITHMS, Batch, Engine, Release, Snapshot
from stream_algos.incognito_w import IncognitoW
from stream_algos.mondrian_w import MondrianW
from stream_algos.sabre_w import SabreW
from stream_algos.workload import Workload, workload_error

__all__ = [
    "STREAM_ALGORITHMS",
    "Batch",
    "BurelW",
    "Castle",
    "DynamicGroup",
    "Engine",
    "InOrder",
    "IncognitoW",
    "MondrianW",
    "Release",
    "SabreW",
    "Snapshot",
    "Workload",
    "workload_error",
]

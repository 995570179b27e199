"""How a stream is made safe."""

from microdata.extensions import load_extensions as _load_extensions
from stream_algos._order import InOrder
from stream_algos.blocks import Blocks
from stream_algos.burel_w import BurelW
from stream_algos.castle import Castle
from stream_algos.castle_arrival import ArrivalCastle
from stream_algos.castle_deadline import DeadlineCastle
from stream_algos.cohorts import Cohorts
from stream_algos.dynamic_group import DynamicGroup
from stream_algos.engine import STREAM_ALGORITHMS, Batch, Engine, Hold, Release, Snapshot, StreamParameters
from stream_algos.incognito_w import IncognitoW
from stream_algos.memory import Columns, Memory, PublishedWith, Room, Terms
from stream_algos.mondrian_w import MondrianW
from stream_algos.quantile import Quantile
from stream_algos.sabre_w import SabreW
from stream_algos.workload import Workload, workload_error
from stream_algos.z import Z

__all__ = [
    "STREAM_ALGORITHMS",
    "ArrivalCastle",
    "Batch",
    "Blocks",
    "BurelW",
    "Castle",
    "Cohorts",
    "Columns",
    "DeadlineCastle",
    "DynamicGroup",
    "Engine",
    "Hold",
    "InOrder",
    "IncognitoW",
    "Memory",
    "MondrianW",
    "PublishedWith",
    "Quantile",
    "Release",
    "Room",
    "SabreW",
    "Snapshot",
    "StreamParameters",
    "Terms",
    "Workload",
    "Z",
    "workload_error",
]

# Last: what packages bring, for tables and for streams, stands on all that is above.
_load_extensions("portcullis.algorithms")

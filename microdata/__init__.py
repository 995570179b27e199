"""What data is: schemas, hierarchies, encoded tables, generalizations and what they cost."""

from microdata.borrowing import borrowed
from microdata.boxes import Boxes
from microdata.builders import date_hierarchy, interval_hierarchy, prefix_hierarchy, quantile_hierarchy
from microdata.compile import kernel, part
from microdata.decoding import decode
from microdata.encoding import Encoded, RejectedRows, encode
from microdata.errors import (
    Cancelled,
    DataError,
    DiskFullError,
    GuaranteeError,
    HierarchyError,
    InfeasibleError,
    PortcullisError,
    SchemaError,
    UnavailableError,
)
from microdata.events import arrow_schema, encode_events
from microdata.example import EXAMPLE_QUASI, EXAMPLE_SENSITIVE, example_table
from microdata.extensions import load_extensions, missing_extensions
from microdata.field_keys import FieldKeys, read_fields
from microdata.files import OnRefused, read_batches, read_table, table_from_frame, write_table
from microdata.generalizations import boxes_from, generalizations
from microdata.geometry import Geometry, box_loss, geometry, range_loss, widened_range
from microdata.hierarchy import Hierarchy
from microdata.id_table import IdTable
from microdata.invisible import invisible_character, shown_escaped
from microdata.loss import (
    SquaredError,
    Squares,
    attribute_loss,
    average_class_size,
    class_loss,
    discernibility,
    entropy_loss,
    squared_error,
    table_loss,
)
from microdata.measures import hidden_cells, leaf_loss, normalized_error, rank_difference, weighted_discernibility
from microdata.persons import PersonKey, count_persons
from microdata.prefetch import prefetch
from microdata.progress import Progress, silent
from microdata.publication import Publication
from microdata.published import Published, class_column, published_of, read_published
from microdata.publishing import published_columns, write_published
from microdata.randomness import Words, seeded_words, system_words, words
from microdata.refusals import KEY, RECORD, Reason, Refusals
from microdata.sampling import Sample, read_sample
from microdata.schema import Attribute, Category, Number, PersonSource, Schema
from microdata.selection import nth_smallest
from microdata.sensitivity import Sensitivity
from microdata.showing import Show, means
from microdata.table import Table

__all__ = [
    "EXAMPLE_QUASI",
    "EXAMPLE_SENSITIVE",
    "KEY",
    "RECORD",
    "Attribute",
    "Boxes",
    "Cancelled",
    "Category",
    "DataError",
    "DiskFullError",
    "Encoded",
    "FieldKeys",
    "Geometry",
    "GuaranteeError",
    "Hierarchy",
    "HierarchyError",
    "IdTable",
    "InfeasibleError",
    "Number",
    "OnRefused",
    "PersonKey",
    "PersonSource",
    "PortcullisError",
    "Progress",
    "Publication",
    "Published",
    "Reason",
    "Refusals",
    "RejectedRows",
    "Sample",
    "Schema",
    "SchemaError",
    "Sensitivity",
    "Show",
    "SquaredError",
    "Squares",
    "Table",
    "UnavailableError",
    "Words",
    "arrow_schema",
    "attribute_loss",
    "average_class_size",
    "borrowed",
    "box_loss",
    "boxes_from",
    "class_column",
    "class_loss",
    "count_persons",
    "date_hierarchy",
    "decode",
    "discernibility",
    "encode",
    "encode_events",
    "entropy_loss",
    "example_table",
    "generalizations",
    "geometry",
    "hidden_cells",
    "interval_hierarchy",
    "invisible_character",
    "kernel",
    "leaf_loss",
    "load_extensions",
    "means",
    "missing_extensions",
    "normalized_error",
    "nth_smallest",
    "part",
    "prefetch",
    "prefix_hierarchy",
    "published_columns",
    "published_of",
    "quantile_hierarchy",
    "range_loss",
    "rank_difference",
    "read_batches",
    "read_fields",
    "read_published",
    "read_sample",
    "read_table",
    "seeded_words",
    "shown_escaped",
    "silent",
    "squared_error",
    "system_words",
    "table_from_frame",
    "table_loss",
    "weighted_discernibility",
    "widened_range",
    "words",
    "write_published",
    "write_table",
]

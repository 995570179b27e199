"""Protobuf as protoc and the protobuf package have it: somebody else's word on what texts and bytes mean."""

import functools
import tempfile
import warnings
from pathlib import Path
from typing import Any

from microdata import PersonKey, Schema
from service.codec.protobuf import OneMessage, ProtobufDecoder
from tests.service.codec.avro_world import SCHEMA

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    import grpc_tools
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from grpc_tools import protoc

ORDER = """\
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order {
  string who = 1;
  optional int32 age = 2;
  Home home = 3;
  Item item = 4;
  google.protobuf.StringValue note = 5;
  int64 amount = 6;
  MORE
}
message Home { optional string zip = 1; }
enum Item { x = 0; y = 1; }
"""


def order_text(more: str = "", **changes: str) -> str:
    """The schema of an order, with further fields and other words."""
    text = ORDER.replace("MORE", more)
    for old, new in changes.items():
        text = text.replace(f" {old} = ", f" {new} = ") if "=" not in old else text.replace(old, new)
    return text


@functools.cache
def compiled(*texts: str) -> Any:
    """The descriptors of the last text, which may import the ones before as `0.proto`, `1.proto` and so on."""
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            Path(folder, f"{number}.proto").write_text(text)
        standard = Path(grpc_tools.__file__).parent / "_proto"
        options = [f"-I{folder}", f"-I{standard}", f"-o{folder}/set", "--include_imports", f"{len(texts) - 1}.proto"]
        if protoc.main(["protoc", *options]):
            raise ValueError("protoc does not take it")
        return descriptor_pb2.FileDescriptorSet.FromString(Path(folder, "set").read_bytes())


@functools.cache
def classes(text: str) -> dict[str, Any]:
    """The classes of a schema by the names of their messages."""
    found = compiled(text)
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    return message_factory.GetMessageClassesForFiles([found.file[-1].name], pool)


def message(text: str, name: str = "shop.Order", **fields: Any) -> Any:
    return classes(text)[name](**fields)


def order(number: int, **other: Any) -> dict[str, Any]:
    made = {"who": f"p{number}", "age": number % 100, "home": {"zip": f"z{number % 3}"}, "item": number % 2}
    return made | {"note": {"value": f"n{number}"}, "amount": 2**40 + number} | other


def written(text: str, value: dict[str, Any], name: str = "shop.Order") -> bytes:
    done: bytes = message(text, name, **value).SerializeToString()
    return done


def decoder(text: str, declared: Schema = SCHEMA, name: str | None = None, **bounds: Any) -> ProtobufDecoder:
    given: dict[str, Any] = {"max_bytes": 10_000, "largest_row": 5_000, "person_key": PersonKey.random()} | bounds
    return ProtobufDecoder(declared, OneMessage(text, name, "a test"), **given)

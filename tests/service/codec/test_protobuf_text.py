"""The text of a `.proto` file declares what protoc says that it declares."""

from base64 import b64encode
from typing import Any

import pytest

from microdata import SchemaError
from service.codec.protobuf import default_of, read_message
from service.codec.protobuf_schema import parse, same_declarations, type_name
from service.codec.protobuf_types import Enum
from tests.service.codec.protobuf_world import ORDER, compiled
from tests.service.codec.test_protobuf import ALL, NESTED, OLD

NEW = r"""
// A comment; message Not { }
syntax = 'proto3' ;
package a.b_2 ;
import public "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto";
option java_package = "x;}" "y";
option (odd).thing = { a: 1 b { c: "}" } };
extend google.protobuf.FileOptions { Odd odd = 50001; }
extend google.protobuf.OneofOptions { bool odd_one = 50003; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; string plain = 50002; }
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
message Odd { int32 thing_number = 1; Thing thing = 2; message Thing { int32 a = 1; Thing2 b = 2; }
  message Thing2 { string c = 1; } }
/* message Hidden { string a = 1; } */
message Outer {
  option deprecated = true;
  reserved 5, 7 to 9, 100 to max;
  reserved "gone", 'lost';
  string message = 1; ;
  Inner.Deep deep = 2;
  .a.b_2.Outer.Inner inner = 3
    [deprecated = true, (field_meta) = { doc: "a, b]", tags: ["PII", "x"], params: {key: "tags", value: "no"} }];
  repeated double many = 4 [packed = true];
  optional bool reserved = 6 [json_name = "a,b", (a.b_2.plain) = "]"];
  map<string, b_2.Outer> map = 10;
  oneof choice {
    option (odd_one) = true;
    Colour colour = 11;
    google.protobuf.Timestamp at = 0xc;
    int32 enum = 015;
  }
  int32 oneof = 14; Inner option = 15;
  message Inner { message Deep { Colour colour = 1; Outer.Colour other = 2; } enum Colour { NONE = 0; } Deep deep = 1; }
  enum Colour { option allow_alias = true; reserved 9; RED = 0 [deprecated = true]; GREEN = 0x1; VERT = 1; LOW = -2; }
}
enum Top { ZERO = 0; }
service Shop { rpc Buy (Outer) returns (stream Outer) { option deprecated = true; }
  rpc Sell (stream Outer) returns (Outer); }
"""
ELDER = r"""
syntax = "proto2";
message Elder {
  extensions 1000 to 1999;
  required int32 a = 1 [default = -0x1F];
  optional string b = 2 [default = "q\"\n\x41\101\u00f1" ' joined', deprecated = true];
  optional bytes c = 3 [default = "\xff\000"];
  optional double d = 4 [default = -inf];
  optional float e = 5 [default = 1e-3];
  optional bool f = 6 [default = true];
  optional Kind g = 7 [default = LAST];
  optional uint64 h = 8 [default = 18446744073709551615];
  repeated group Part = 9 { optional int32 x = 1; }
  optional double i = 10 [default = nan];
  optional sint32 j = 12 [default = -010];
  optional string k = 13 [default = "a\\nb"];
  optional double l = 14 [default = 0x10];
  optional float m = 15 [default = -010];
  oneof one { string s = 11 [default = "s"]; }
  extend Elder { optional int32 more = 1000; }
}
extend Elder { repeated string further = 1001; }
enum Kind { FIRST = 5; LAST = -3; }
"""


def declared(file: Any) -> dict[str, Any]:
    """All that a file declares, without entries of maps, which only descriptors have."""
    found: dict[str, Any] = {}
    for name, one in file.declared.items():
        if isinstance(one, Enum):
            found[name] = one.names
        elif not name.endswith("Entry"):
            inner = [each.full_name for each in one.messages]
            found[name] = (
                inner,
                {
                    each.number: (
                        each.name,
                        each.kind,
                        "" if each.kind == "group" or (each.repeated and each.kind == "message") else type_name(each),
                        each.repeated,
                        each.present,
                        each.oneof,
                        str(default_of(each)),
                    )
                    for each in one.fields
                },
            )
    return found


@pytest.mark.parametrize("text", [NEW, ELDER, OLD, NESTED, ALL, ORDER.replace("MORE", "")], ids=range(6))
def test_a_text_declares_what_protoc_reads_in_it(text: str) -> None:
    theirs = b64encode(compiled(text).SerializeToString()).decode()
    ours, other = parse(text), parse(theirs)
    assert declared(ours) == declared(other)
    assert [one.full_name for one in ours.messages] == [one.full_name for one in other.messages]
    assert ours.package == other.package


def test_tags_are_read_from_texts_and_descriptors() -> None:
    for text in (NEW, b64encode(compiled(NEW).SerializeToString()).decode()):
        outer = parse(text).declared["a.b_2.Outer"]
        tags = {each.name: each.tags for each in outer.fields if each.tags}  # type: ignore[union-attr]
        # In a text the option is known by its name, which is Confluent's only in their package.
        assert tags == ({"inner": ("PII", "x")} if text != NEW else {})
    said = 'syntax = "proto3"; message A { string a = 1 [(confluent.field_meta).tags = "PII"]; int32 b = 2; '
    said += 'int32 c = 3 [(confluent.field_meta) = { doc: "x" tags: ["EMAIL", "PII"] }, deprecated = true]; }'
    assert [each.tags for each in read_message(said, None, "a test").fields] == [("PII",), (), ("EMAIL", "PII")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "declares nothing"),
        ("package a;", "declares no message"),
        ("{", r"is not the text of a \.proto file"),
        ("message A { string a = 1;", "ends too early"),
        ("message A { string a = 1 }", "lacks a ';' somewhere"),
        ("message A { string a = x; }", "something else where a whole number belongs"),
        ("message A { string = 1; }", "something else where a name belongs"),
        ("message A { string a = 1; int32 a = 2; }", "two fields of one name or number"),
        ("message A { string a = 1; int32 b = 1; }", "two fields of one name or number"),
        ("message A { string a = 0; }", "whose number Protobuf does not have"),
        ("message A { string a = 536870912; }", "whose number Protobuf does not have"),
        ("message A {} enum A { x = 0; }", "declares a name twice"),
        ('syntax = "proto4";', "is neither proto2 nor proto3"),
        ('edition = "2023";', "is of an edition"),
        ("message A { oneof b { /* ", "is not the text"),
        ("message M {" * 40, "is nested too deeply"),
        ("message A { string a = 1 [default = ", "ends too early"),
        ("option x = " + "{" * 5_000, "ends too early"),
        ("//" + "x" * (1 << 20), "is larger than 1 MB"),
        ("".join(f"message M{n} {{}}" for n in range(20_001)), "declares more than 20000 names"),
        (b64encode(b"\x0a\x05abc").decode(), "is not a descriptor of Protobuf, or one that is cut off"),
        (b64encode(b"\x22\x02\x0a\0").decode(), "is not a descriptor"),
        (b64encode(b"\xff" * 11).decode(), "is not a descriptor"),
        (b64encode(b"\x0b").decode(), "is not a descriptor"),
        (b64encode(b"\x08\x01").decode(), "is not a descriptor"),
        (b64encode(b"\x62\x08editions").decode(), "is of an edition"),
    ],
)
def test_what_is_no_schema_is_told(text: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=f"the Protobuf schema of subject 'x' .*{complaint}"):
        read_message(text, None, "subject 'x'")


def test_two_texts_are_the_same_schema_if_they_declare_the_same() -> None:
    own = ORDER.replace("MORE", "")
    assert same_declarations(own, "// said otherwise\n" + own.replace("\n", " \n "))
    assert same_declarations(own, b64encode(compiled(own).SerializeToString()).decode())
    assert not same_declarations(own, own.replace("int64 amount", "sint64 amount"))
    assert not same_declarations(own, own.replace("amount = 6", "amount = 7"))
    assert not same_declarations(own, "?")

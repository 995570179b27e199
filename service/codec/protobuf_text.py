"""Reads the text of a `.proto` file, proto2 or proto3: what it declares, and nothing of what it says to compilers.

A text comes from a registry or a file, so it may be anything: whatever is not one raises `ProtobufSchemaError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from service.codec.protobuf_types import SCALARS, Enum, Field, File, Message, ProtobufSchemaError, check_message

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>\.?[0-9](?:[0-9A-Za-z_.]|(?<=[eE])[+-])*)
    |(?P<sign>[{}\[\]()<>=;,.:+/-])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|[xX][0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_MOST_BYTES = 1 << 20
_DEEPEST = 32
_TAGS, _MESSAGE_TAGS = ("confluent", "field_meta", "tags"), ("confluent", "message_meta", "tags")
_PLAIN = frozenset(SCALARS) - {"group", "message", "enum"}
_PAIRS = {"{": "}", "[": "]", "(": ")", "<": ">"}


def parse_text(text: str) -> File:
    """What the text of a file declares."""
    if len(text) > _MOST_BYTES:
        raise ProtobufSchemaError("is larger than 1 MB")
    return _Parser(_tokens(text)).file()


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ProtobufSchemaError("is not the text of a .proto file")
        at = match.end()
        if match.lastgroup != "space":
            found.append(match.group())
    return found


def unescaped(text: str) -> bytes:
    """The bytes that an escaped text stands for."""

    def meant(match: re.Match[str]) -> str:
        said = match[1]
        if said[0] in "01234567":
            return chr(int(said, 8) & 255)
        if len(said) > 1:
            # Characters of one byte each stand for bytes here, so those of a code point are written one by one.
            code = int(said[1:], 16)
            if said[0] in "xX":
                return chr(code)
            return chr(min(code, 0x10FFFF)).encode("utf-8", "replace").decode("latin-1")
        return _ESCAPES.get(said, said)

    return _ESCAPE.sub(meant, text.encode("utf-8", "replace").decode("latin-1")).encode("latin-1")


def whole(text: str) -> int:
    """The whole number that a text of a `.proto` file stands for."""
    return int(text, 8 if re.fullmatch("-?0[0-7]+", text) else 0)


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._file = File()
        self._new = True
        """Of proto3, where a field may be without presence."""
        self._depth = 0

    # -- tokens --------------------------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise ProtobufSchemaError("ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, wanted: str) -> bool:
        if self._peek() != wanted:
            return False
        self._at += 1
        return True

    def _must(self, wanted: str) -> None:
        if self._next() != wanted:
            raise ProtobufSchemaError(f"lacks a {wanted!r} somewhere")

    def _name(self) -> str:
        word = self._next()
        if not (word[0].isalpha() or word[0] == "_"):
            raise ProtobufSchemaError("has something else where a name belongs")
        return word

    def _dotted(self) -> str:
        name = "." if self._take(".") else ""
        name += self._name()
        while self._take("."):
            name += "." + self._name()
        return name

    def _whole(self) -> int:
        minus, word = self._take("-"), self._next()
        try:
            return whole(f"{'-' if minus else ''}{word}")
        except ValueError:
            raise ProtobufSchemaError("has something else where a whole number belongs") from None

    def _text(self) -> str:
        """Texts side by side, without quotes and as they are escaped."""
        parts = []
        while self._peek()[:1] in {'"', "'"} and self._peek():
            parts.append(self._next()[1:-1])
        if not parts:
            raise ProtobufSchemaError("has something else where a text belongs")
        return "".join(parts)

    def _pass_over(self) -> None:
        """To the end of a statement, with all that is in braces."""
        while True:
            word = self._next()
            if word in _PAIRS:
                self._pass_pair(_PAIRS[word])
                if word == "{":
                    self._take(";")
                    return
            elif word == ";":
                return

    def _pass_pair(self, *closing: str) -> None:
        waiting = [*closing]
        while waiting:
            word = self._next()
            if word in _PAIRS:
                waiting.append(_PAIRS[word])
            elif word == waiting[-1]:
                waiting.pop()

    # -- declarations --------------------------------------------------------------------------------------------------

    def file(self) -> File:
        self._new = False  # a file that does not say is proto2
        package = ""
        while self._peek():
            match self._next():
                case "syntax":
                    self._must("=")
                    said = self._text()
                    if said not in {"proto2", "proto3"}:
                        raise ProtobufSchemaError("is neither proto2 nor proto3")
                    self._new = said == "proto3"
                    self._must(";")
                case "edition":
                    raise ProtobufSchemaError("is of an edition; proto2 and proto3 are understood")
                case "package":
                    package = self._dotted()
                    self._must(";")
                case "message":
                    self._file.messages.append(self._message(package))
                case "enum":
                    self._enum(package)
                case "import" | "option" | "service" | "extend":
                    self._pass_over()
                case ";":
                    pass
                case _:
                    raise ProtobufSchemaError("is not the text of a .proto file")
        self._file.package = package
        return self._file

    def _message(self, scope: str, name: str | None = None) -> Message:
        name = name or self._name()
        made = Message(f"{scope}.{name}" if scope else name)
        self._file.add(made)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ProtobufSchemaError("is nested too deeply")
        self._must("{")
        while not self._take("}"):
            self._member(made)
        self._depth -= 1
        check_message(made)
        return made

    def _member(self, message: Message) -> None:
        word = self._peek()
        following = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else ""
        declares = following[:1].isalpha() or following[:1] == "_"
        if word == ";":
            self._next()
        elif word in {"message", "enum", "oneof"} and declares:
            statement: dict[str, Callable[[], object]] = {
                "message": lambda: message.messages.append(self._message(message.full_name)),
                "enum": lambda: self._enum(message.full_name),
                "oneof": lambda: self._oneof(message),
            }
            self._next()
            statement[word]()
        elif word == "option" and following == "(":
            self._message_option(message)
        elif (word in {"option", "extend"} and (declares or following in {"(", "."})) or word in {
            "extensions",
            "reserved",
        }:
            self._pass_over()
        elif word == "map" and following == "<":
            self._map(message)
        else:
            label = self._next() if word in {"optional", "required", "repeated"} else ""
            self._field(message, label)

    def _oneof(self, message: Message) -> None:
        name = self._name()
        self._must("{")
        while not self._take("}"):
            if self._peek() == "option":
                self._pass_over()
            elif not self._take(";"):
                self._field(message, "optional", name)

    def _map(self, message: Message) -> None:
        self._at += 2
        self._dotted()
        self._must(",")
        self._dotted()
        self._must(">")
        self._end_field(message, Field(self._name(), 0, "message", repeated=True, present=False))

    def _field(self, message: Message, label: str, oneof: str = "") -> None:
        kind = self._dotted()
        made = Field(self._name(), 0, kind if kind in _PLAIN else "", "" if kind in _PLAIN else kind)
        made.oneof, made.repeated = oneof, label == "repeated"
        made.present = not made.repeated and (not self._new or bool(label))
        if kind == "group":
            made.kind, made.type_name = "group", ""
        self._end_field(message, made)

    def _end_field(self, message: Message, made: Field) -> None:
        self._must("=")
        made.number = self._whole()
        if self._take("["):
            self._options(made)
        message.fields.append(made)
        if made.kind == "group":
            message.messages.append(self._message(message.full_name, made.name))
            made.name = made.name.lower()
        else:
            self._must(";")

    def _enum(self, scope: str) -> None:
        name = self._name()
        made = Enum(f"{scope}.{name}" if scope else name)
        self._file.add(made)
        self._must("{")
        while not self._take("}"):
            word, following = self._next(), self._peek()
            if word == ";":
                continue
            if following != "=":
                self._pass_over()
                continue
            self._must("=")
            made.names.setdefault(self._whole(), word)
            if self._take("["):
                self._pass_pair("]")
            self._must(";")

    def _options(self, made: Field) -> None:
        """What stands in brackets: the default, and tags."""
        while True:
            path = tuple(word for word in self._option_name() if word not in {"(", ")", "."})
            if path == ("default",):
                minus = "-" if self._take("-") else ""
                quoted = self._peek()[:1] in {'"', "'"}
                made.default = self._text() if quoted else minus + self._next()
            else:
                made.tags += self._tags(path, _TAGS, {",", "]"})
            if self._take("]"):
                return
            self._must(",")

    def _message_option(self, message: Message) -> None:
        """Read the tags of a message, and pass over any other option."""
        self._next()
        path = tuple(word for word in self._option_name() if word not in {"(", ")", "."})
        message.tags += self._tags(path, _MESSAGE_TAGS, {";"})
        self._must(";")

    def _option_name(self) -> list[str]:
        name = []
        while not self._take("="):
            name.append(self._next())
        return name

    def _tags(self, path: tuple[str, ...], wanted: tuple[str, ...], ends: set[str]) -> tuple[str, ...]:
        """Pass over the value of an option; return the texts in it where it is about tags."""
        start = self._at
        while self._peek() not in ends:
            word = self._next()
            if word in _PAIRS:
                self._pass_pair(_PAIRS[word])
        value = self._tokens[start : self._at]
        if path == wanted[:2] and "tags" in value:
            value = value[value.index("tags") + 1 :]
            value = value[: value.index("]") if "]" in value and "[" in value[:2] else min(2, len(value))]
        elif path != wanted:
            return ()
        return tuple(word[1:-1] for word in value if word[0] in "\"'")

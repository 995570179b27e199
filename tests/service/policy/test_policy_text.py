"""Texts become mappings, within limits and without YAML's surprises."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from service.policy import PolicyError
from service.policy.text import MAX_BYTES, MAX_DEPTH, parse_text, read_policy_text


def refused(text: Any, **options: Any) -> Any:
    with pytest.raises(PolicyError) as caught:
        parse_text(text, **options)
    return str(caught.value)


def test_yaml_reads_countries_days_and_numbers_as_they_are_written() -> None:
    text = "schema: [NO, yes, on, 2020-01-01, 12:30:00, 1_000, 1.5, 0.5, 10, 0, -3, true, null, ~, .inf]"
    expected = ["NO", "yes", "on", "2020-01-01", "12:30:00", "1_000", 1.5, 0.5, 10, 0, -3, True, None, None, ".inf"]
    assert parse_text(text) == {"schema": expected}


def test_digits_behind_a_leading_zero_are_a_text() -> None:
    """PyYAML writes the text 008 without quotes, so that a label of a hierarchy was read as 8.0."""
    written = ["007", "008", "0123", "-08", "00.5", "0"]
    text = yaml.safe_dump({"schema": written})
    assert "- 008\n" in text
    assert parse_text(text) == {"schema": written}
    assert parse_text("schema: {008: [008, 8]}") == {"schema": {"008": ["008", 8]}}


def test_keys_are_texts() -> None:
    assert parse_text("schema: {1: a, 1.10: b, no: c}")["schema"] == {"1": "a", "1.10": "b", "no": "c"}


def test_json_in_braces_and_yaml_in_braces() -> None:
    assert parse_text('{"schema": "\\ud83d\\ude00"}') == {"schema": "😀"}
    assert parse_text("{schema: b}") == {"schema": "b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        ("  \n # nothing\n", "this is no policy"),
        ("- a\n- b\n", "this is no policy"),
        ("just text", "this is no policy"),
        ('{"name": "Ada", "age": 36}', "this is no policy"),
        ("a: [1, 2\nb: 3", "line 2, column"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1: a key is there twice in one mapping, given 'a'"),
        ("a: {b: 1, b: 2}", "a key is there twice in one mapping, given 'b'"),
        ('{"a": 1, "a": 2}', "a key is there twice in one mapping, given 'a'"),
        ("? [a, b]\n: c", "a key must be a text"),
        ("a: !!python/object:os.system x", "tags"),
        ("a: !!binary aGk=", "tags"),
        ("a: \x00", "a character that YAML does not allow"),
        ("a: *b", "no anchor before it, or contains itself, given 'b'"),
        ("a: &x [*x]", "contains itself"),
        ("a: 1\n---\nb: 2", "expected a single document"),
    ],
)
def test_what_is_wrong_is_said(text: str, expected: str) -> None:
    assert expected in refused(text)


def test_json_syntax_has_line_and_column() -> None:
    assert "JSON syntax, line 2, column 1" in refused('{"a": 1,\n}', json_only=True)
    assert "numbers must be finite" in refused('{"a": NaN}', json_only=True)


def test_a_small_text_cannot_become_a_large_one() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert "aliases expanded" in refused("\n".join(lines))


def test_aliases_within_the_limit_are_fine() -> None:
    assert parse_text("schema: &x [1, 2]\nb: *x") == {"schema": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 10_000])
def test_deep_nesting_is_refused(depth: Any) -> None:
    nested = "[" * depth + "]" * depth
    assert "nested deeper" in refused(f"a: {nested}")
    assert "nested deeper" in refused(f'{{"a": {nested}}}')


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    for content, expected in [
        (b"name: caf\xe9", "not UTF-8 text (byte 9)"),
        (b"#" * (MAX_BYTES + 1), f"at most {MAX_BYTES} bytes"),
    ]:
        path.write_bytes(content)
        with pytest.raises(PolicyError, match=r".") as caught:
            read_policy_text(path)
        assert expected in str(caught.value)
    with pytest.raises(PolicyError, match="cannot be read"):
        read_policy_text(tmp_path / "absent.yaml")
    with pytest.raises(PolicyError, match="cannot be read"):
        read_policy_text(tmp_path)
    path.write_bytes(b"\xef\xbb\xbfname: x")
    assert read_policy_text(path) == "name: x"

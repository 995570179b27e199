"""`portcullis key new`."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from service.kafka import Partition
from service.settings import SettingsError
from service.worker.sealing import SealError, add_key, load_keys

WHERE = Partition("portcullis.safe.memory", 3)


def test_a_further_key_seals_and_the_older_one_still_opens(tmp_path: Path, portcullis: Any) -> None:
    file = tmp_path / "keys.json"
    assert "made key" in portcullis("key", "new", file).stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    old = load_keys(file)
    sealed = old.seal(b"secret", WHERE, b"persons/0", 7)
    assert b"secret" not in sealed
    assert "added key b" in portcullis("key", "new", file, "--id", "b").stdout
    keys = load_keys(file)
    assert keys.current == "b"
    assert bytes(keys.persons) == bytes(old.persons), "persons are known by the same key for ever"
    assert keys.open(sealed, WHERE, b"persons/0") == (b"secret", 7)
    assert load_keys(file, old.current).current == old.current
    with pytest.raises(SettingsError, match="holds no key 'z'"):
        load_keys(file, "z")
    with pytest.raises(SealError, match="'b', which is not in the key file"):
        old.open(keys.seal(b"secret", WHERE, b"persons/0", 7), WHERE, b"persons/0")
    assert portcullis("key", "new", file, "--id", "b").exit_code == 2
    assert portcullis("key", "new", file, "--id", "a b").exit_code == 2
    assert portcullis("key", "new", tmp_path / "nowhere" / "keys.json").exit_code == 2
    assert list(json.loads(file.read_text())["seals"]) == [old.current, "b"]


@pytest.mark.parametrize("moved", ["topic", "partition", "key", "sequence", "byte"])
def test_a_record_opens_only_where_it_was_sealed_for(tmp_path: Path, moved: str) -> None:
    add_key(tmp_path / "keys.json", "a")
    keys = load_keys(tmp_path / "keys.json")
    sealed, where, key = keys.seal(b"secret", WHERE, b"pool/0", 7), WHERE, b"pool/0"
    assert keys.open(sealed, where, key) == (b"secret", 7)
    if moved in {"topic", "partition"}:
        where = Partition("other", 3) if moved == "topic" else Partition(WHERE.topic, 4)
    elif moved == "key":
        key = b"pool/1"
    else:
        place = 5 if moved == "sequence" else len(sealed) - 1
        sealed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
    with pytest.raises(SealError, match="does not open with key 'a'"):
        keys.open(sealed, where, key)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"persons": "", "seals": {}}',
        '{"persons": "AAAAAAAAAAAAAAAAAAAAAA==", "seals": {}}',
        '{"persons": "AAAAAAAAAAAAAAAAAAAAAA==", "seals": {"a": "AAAA"}}',
        '{"persons": "AAAAAAAAAAAAAAAAAAAAAA==", "seals": {"a": 1}}',
    ],
)
def test_a_file_that_holds_no_keys_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(content)
    with pytest.raises(SettingsError, match="key new"):
        load_keys(file)
    with pytest.raises(SettingsError):
        add_key(file)
    assert file.read_text() == content

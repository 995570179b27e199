"""Evidence: what is in it, that it holds, and that it stops holding whatever is changed."""

import csv
import hashlib
import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from service.evidence.filing import canonical
from tests.service.cli.cli_world import CITIES, ITEMS, MARK
from tests.service.cli.evidence_world import UNVERIFIED, refiled, sha256


@pytest.fixture
def filed(portcullis: Any, shop: Path) -> Path:
    """A directory with a table that was published, and evidence of it."""
    arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv", "--evidence", shop / "e.json")
    result = portcullis("anonymize", shop / "table.csv", *arguments)
    assert result.exit_code == 0, result.output
    return shop


@pytest.fixture
def verified(portcullis: Any) -> Any:
    """Verify with all that is there; returns the exit status and what came of each check."""

    def run(home: Path, *more: Any) -> Any:
        given = ("--policy", home / "policy.yaml", "--original", home / "table.csv", "--published", home / "safe.csv")
        result = portcullis("evidence", "verify", home / "e.json", *given, *more, "--json")
        assert result.exit_code in {0, 1}, result.output
        assert MARK not in result.output
        made = json.loads(result.stdout)
        return result.exit_code, {one["about"]: one["outcome"] for one in made["checks"]}

    return run


def test_it_holds_for_what_was_published(filed: Path, verified: Any) -> None:
    status, outcomes = verified(filed)
    assert status == 0
    left = {about for about, outcome in outcomes.items() if outcome != "holds"}
    assert left == UNVERIFIED


@pytest.fixture
def repeated(portcullis: Any, shop: Path) -> Any:
    """The same of a table in which everybody has ten rows; more arguments may keep the links."""

    def run(*more: Any) -> Path:
        rows = [f"{MARK}{row % 40},{20 + row % 50},{CITIES[row % 4]},{ITEMS[row % 3]},east" for row in range(400)]
        (shop / "table.csv").write_text("\n".join(["id,age,city,item,shop", *rows]))
        policy = (shop / "policy.yaml").read_text().replace("mondrian, k: 4, l: 2", "sabre, k: 4, t: 0.4")
        (shop / "policy.yaml").write_text(policy)
        arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv", "--evidence", shop / "e.json")
        result = portcullis("anonymize", shop / "table.csv", *arguments, *more)
        assert result.exit_code == 0, result.output
        return shop

    return run


def test_what_the_file_alone_cannot_show_is_said_to_be_not_shown(repeated: Any, verified: Any, portcullis: Any) -> None:
    home = repeated()
    status, outcomes = verified(home)
    assert (status, outcomes["the guarantee"]) == (0, "not checked")
    audited = json.loads((home / "e.json").read_text())["parts"]["audited"]
    assert (audited["holds"], audited["outcome"], audited["findings"][0]["bound"]) == (False, "not shown", "at least")
    page = portcullis("evidence", "show", home / "e.json").stdout
    assert "k-anonymity cannot be shown from the published file: at least" in page
    assert "not shown" in page
    assert "does not hold" not in page


def test_links_make_it_exact(repeated: Any, verified: Any, portcullis: Any, shop: Path) -> None:
    home = repeated("--links", shop / "e.json.links")
    status, outcomes = verified(home)
    assert status == 0
    assert {about for about, outcome in outcomes.items() if outcome != "holds"} == {
        "the signature",
        "author, time and version",
        "reported: queries",
        "reported: tried",
        "reported: population",
        "reported: beside",
    }
    assert outcomes["the links"] == "holds"
    page = portcullis("evidence", "show", home / "e.json").stdout
    assert "An audit of what was published agrees" in page
    assert "the links that were kept" in page
    links = (home / "e.json.links").read_text().splitlines()
    (home / "e.json.links").write_text("\n".join([*links[1:], links[0]]) + "\n")
    status, outcomes = verified(home)
    assert (status, outcomes["the links"], outcomes["audited: faults"]) == (1, "differs", "differs")


def test_a_violation_that_is_proven_is_none_that_is_not_shown(repeated: Any, verified: Any) -> None:
    """A class that is cut to fewer rows than k is about fewer persons, whoever they are."""
    home = repeated()
    rows = (home / "safe.csv").read_text().splitlines()
    number = rows[1].split(",")[0]
    few = [row for row in rows[1:] if row.split(",")[0] == number][:3]
    (home / "safe.csv").write_text("\n".join([rows[0], *few]) + "\n")
    status, outcomes = verified(home)
    assert (status, outcomes["the guarantee"]) == (1, "differs")


def test_it_has_no_value_and_no_class(filed: Path) -> None:
    text = (filed / "e.json").read_text()
    evidence = json.loads(text)
    assert canonical(evidence) == text.encode()
    assert not any(value in text for value in (MARK, *CITIES, *ITEMS, "North", "South", "east"))
    assert "classes" not in evidence["parts"]["audited"]["findings"][0]
    assert evidence["parts"]["reported"]["attacks"]
    assert evidence["parts"]["policy"]["asked"]["algorithm"] == "mondrian"


def test_one_byte_of_the_published_table_shows(filed: Path, verified: Any) -> None:
    path = filed / "safe.csv"
    path.write_bytes(path.read_bytes() + b"\n")
    status, outcomes = verified(filed)
    assert status == 1
    assert outcomes["what was published"] == "differs"


def test_a_row_in_another_class_shows_though_all_hashes_are_made_to_fit(filed: Path, verified: Any) -> None:
    path = filed / "safe.csv"
    original = path.read_text()
    rows = list(csv.DictReader(io.StringIO(original)))
    for moved in (0, 17, 42):
        other = next(row for row in rows if row["class"] != rows[moved]["class"])
        changed = [dict(row) for row in rows]
        changed[moved] |= {name: other[name] for name in ("class", "age", "city")}
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(changed)
        refiled(filed / "e.json", published={"sha256": [sha256(path)]})
        status, outcomes = verified(filed)
        assert status == 1
        assert outcomes["the hashes of the parts"] == outcomes["what was published"] == "holds"
        assert "differs" in {outcome for about, outcome in outcomes.items() if about.startswith("audited")}


@pytest.mark.parametrize(
    ("changes", "about"),
    [
        ({"audited": {"loss": 0.01}}, "audited: loss"),
        ({"audited": {"rows": 81}}, "audited: rows"),
        ({"policy": {"fingerprint": "0" * 64}}, "the policy: fingerprint"),
        ({"policy": {"asked": {"algorithm": "mondrian", "parameters": {"k": 50, "l": 2}}}}, "the policy: asked"),
        ({"policy": {"name": "another"}}, "the policy: name"),
        ({"policy": {"preset": {"name": "hipaa", "reviewed": []}}}, "the policy: preset"),
        ({"policy": {"attacks": {"prosecutor": 0.01}}}, "the policy: attacks"),
        ({"reported": {"show": "mean"}}, "reported: show"),
        ({"words": {"limits": []}}, "what is assumed and not said"),
        ({"original": {"hmac_sha256": "0" * 64}}, "the original"),
    ],
)
def test_what_is_claimed_and_not_so_shows(filed: Path, verified: Any, changes: Any, about: str) -> None:
    refiled(filed / "e.json", **changes)
    status, outcomes = verified(filed)
    assert (status, outcomes[about]) == (1, "differs")


def test_a_part_that_was_changed_alone_shows(filed: Path, verified: Any) -> None:
    evidence = json.loads((filed / "e.json").read_bytes())
    evidence["parts"]["made"]["by"] = "somebody else"
    (filed / "e.json").write_bytes(canonical(evidence))
    assert verified(filed)[1]["the hashes of the parts"] == "differs"


def test_the_original_is_named_by_a_secret(filed: Path, verified: Any, tmp_path: Path) -> None:
    secret = filed / "e.json.secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    plain = hashlib.sha256((filed / "table.csv").read_bytes()).hexdigest()
    assert plain not in (filed / "e.json").read_text()
    (tmp_path / "other").write_text("00" * 32)
    assert verified(filed, "--secret", tmp_path / "other")[1]["the original"] == "differs"
    secret.unlink()
    status, outcomes = verified(filed)
    assert (status, outcomes["the original"]) == (0, "not checked")


@pytest.fixture
def keys(tmp_path: Path) -> Any:
    """A private key and its public one, and the public one of somebody else."""
    own, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    pem = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files = {"own.pem": pem, "own.pub": public(own), "other.pub": public(other)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_a_signature_is_that_of_its_key_and_of_every_part(
    portcullis: Any, shop: Path, keys: Path, verified: Any
) -> None:
    arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv", "--evidence", shop / "e.json")
    result = portcullis("anonymize", shop / "table.csv", *arguments, "--sign", keys / "own.pem")
    assert result.exit_code == 0, result.output
    assert verified(shop, "--key", keys / "own.pub")[0] == 0
    assert verified(shop)[1]["the signature"] == "not checked"
    assert verified(shop, "--key", keys / "other.pub")[1]["the signature"] == "differs"
    refiled(shop / "e.json", made={"by": "somebody else"})
    status, outcomes = verified(shop, "--key", keys / "own.pub")
    assert (status, outcomes["the hashes of the parts"], outcomes["the signature"]) == (1, "holds", "differs")


def test_what_is_not_signed_is_not_by_anybody(filed: Path, keys: Path, verified: Any) -> None:
    assert verified(filed, "--key", keys / "own.pub")[1]["the signature"] == "differs"


def test_keys_that_cannot_be_used_stop_the_run(portcullis: Any, shop: Path, keys: Path) -> None:
    arguments = ("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "safe.csv")
    result = portcullis(*arguments, "--evidence", shop / "e.json", "--sign", keys / "own.pub")
    assert (result.exit_code, "own.pub: must be an Ed25519 private key" in result.stderr) == (2, True)
    assert portcullis(*arguments, "--sign", keys / "own.pem").exit_code == 2
    assert not (shop / "safe.csv").exists()


def test_what_is_not_given_is_not_checked(filed: Path, portcullis: Any) -> None:
    result = portcullis("evidence", "verify", filed / "e.json", "--json")
    outcomes = [one["outcome"] for one in json.loads(result.stdout)["checks"]]
    assert (result.exit_code, outcomes.count("holds"), outcomes.count("not checked")) == (0, 1, 8)


def test_page_that_is_not_verified_says_so_and_is_not_green(filed: Path, portcullis: Any) -> None:
    page = portcullis("evidence", "show", filed / "e.json").stdout
    for words in (
        "Evidence: <bdi>shop</bdi>",
        "Not verified, the file says: the guarantee holds",
        "k-anonymity",
        "not said",
    ):
        assert words in page
    assert "Nothing on this page was verified" in page
    assert portcullis("evidence", "show", filed / "e.json", "--html", filed / "e.html").exit_code == 0
    assert (filed / "e.html").read_text().startswith("<!doctype html>")


def test_page_of_a_verification_names_each_statement_and_what_came_of_it(filed: Path, verified: Any) -> None:
    status, outcomes = verified(filed, "--html", filed / "e.html")
    page = (filed / "e.html").read_text()
    assert status == 0
    assert "<h2>The guarantee holds" in page or "The guarantee holds" in page
    assert "Not verified" not in page
    for about in outcomes:
        assert about in page
    assert "it is measured with random draws" in page
    refiled(filed / "e.json", policy={"asked": {"algorithm": "mondrian", "parameters": {"k": 50, "l": 2}}})
    assert verified(filed, "--html", filed / "e.html", "--overwrite")[0] == 1
    page = (filed / "e.html").read_text()
    assert "The evidence does not hold" in page
    assert "These differ: the policy: asked" in page


def test_page_without_the_files_is_not_green(filed: Path, portcullis: Any) -> None:
    result = portcullis("evidence", "verify", filed / "e.json", "--html", filed / "e.html")
    assert result.exit_code == 0, result.output
    assert "Not verified, the file says" in (filed / "e.html").read_text()


@pytest.mark.parametrize("text", ["", "[1]", '{"parts": 3}', '{"parts": {"made": {"format": NaN}}}', "\x00"])
def test_something_else_is_no_evidence(portcullis: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "e.json").write_text(text)
    for command in ("verify", "show"):
        result = portcullis("evidence", command, tmp_path / "e.json")
        assert result.exit_code == 2, result.output
        assert "is no evidence of Portcullis" in result.stderr


def test_broken_parts_are_refused_with_their_place(filed: Path, portcullis: Any) -> None:
    refiled(filed / "e.json", audited={"findings": [3]})
    for command in ("show", "verify"):
        result = portcullis("evidence", command, filed / "e.json")
        assert (result.exit_code, "audited.findings.0 is missing, unknown or" in result.stderr) == (2, True)


def test_class_number_of_two_generalizations_is_a_fault(filed: Path, portcullis: Any) -> None:
    """Such a file could pass for one with fewer and larger classes."""
    path = filed / "safe.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    first, other = rows[0]["class"], next(row["class"] for row in rows if row["class"] != rows[0]["class"])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"class": first if row["class"] == other else row["class"]} for row in rows)
    result = portcullis("audit", filed / "table.csv", path, "--policy", filed / "policy.yaml")
    assert result.exit_code == 1
    assert "1 classes whose number belongs to a class with another generalization, too" in result.output


def test_signature_fits_the_key_that_it_names(portcullis: Any, shop: Path, keys: Path, verified: Any) -> None:
    """Without a key nobody knows whose it is, but a change shows."""
    arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv", "--evidence", shop / "e.json")
    result = portcullis("anonymize", shop / "table.csv", *arguments, "--sign", keys / "own.pem")
    assert result.exit_code == 0, result.output
    _, outcomes = verified(shop)
    assert (outcomes["the signature"], outcomes["author, time and version"]) == ("not checked", "not checked")
    assert verified(shop, "--key", keys / "own.pub")[1]["author, time and version"] == "holds"
    evidence = json.loads((shop / "e.json").read_bytes())
    for made in ({"at": "2020-01-01T00:00:00+00:00"}, {"by": "the authority"}, {"portcullis": "9.9"}):
        refiled(shop / "e.json", made=made)
        assert verified(shop)[1]["the signature"] == "differs"
        (shop / "e.json").write_bytes(canonical(evidence))

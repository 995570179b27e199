"""Tokens × routes × ownership: what each token gets of jobs and data sets of others, and what a wrong query does."""

from typing import Any

import pytest

from service.api import Scope, new_token
from service.jobs import LedgerEntry, new_id
from tests.service.api.api_world import parts, submit
from tests.service.cli.cli_world import POLICY
from tests.service.test_ledger import facts, release

SCOPES = {
    "alice": ([Scope.SUBMIT, Scope.READ_OWN], None),
    "bob": ([Scope.SUBMIT, Scope.READ_OWN], None),
    "carol": ([Scope.SUBMIT, Scope.READ_OWN], "analysts"),
    "dave": ([Scope.SUBMIT, Scope.READ_OWN], "analysts"),
    "writer": ([Scope.SUBMIT], None),
    "overseer": ([Scope.READ_ALL], None),
    "admin": ([Scope.ADMIN], None),
}


class World:
    """A service, a header for each token, and jobs that released a table of the data set `shops`."""

    def __init__(self, client: Any, headers: Any) -> None:
        self.client, self.headers, self.store = client, headers, client.app.state.service.store

    def released(self, who: str, made: Any, data_set: str = "shops") -> str:
        """Let a token release a table; the job."""
        job = submit(self.client, headers=self.headers[who])
        claimed = self.store.claim("runner", 60)
        assert claimed.id == job["id"]
        (self.client.app.state.service.files.new_result(claimed.id, 1) / "result.csv").write_text("a\n1\n")
        assert self.store.finish(
            claimed, "succeeded", report="{}", release=LedgerEntry(release(made, data_set), allow=False)
        )
        return str(claimed.id)

    def asks(self, who: str, method: str, path: str) -> Any:
        return self.client.request(method, path, headers=self.headers[who])


@pytest.fixture
def world(open_client: Any) -> World:
    made = {name: new_token(name, scopes, group) for name, (scopes, group) in SCOPES.items()}
    client = open_client(tokens=tuple(token for _, token in made.values()))
    return World(client, {name: {"Authorization": f"Bearer {text}"} for name, (text, _) in made.items()})


ROUTES = [
    # method, path below the job, then the status for: alice (owner), bob, carol, writer, overseer, admin
    ("GET", "", 200, 404, 404, 403, 200, 200),
    ("GET", "/report", 200, 404, 404, 403, 200, 200),
    ("GET", "/result", 200, 404, 404, 403, 200, 200),
    ("GET", "/evidence", 404, 404, 404, 403, 404, 404),
    ("GET", "/evidence/secret", 404, 404, 404, 403, 403, 404),
    ("POST", "/stop-search", 200, 404, 404, 404, 403, 200),
    ("DELETE", "", 204, 404, 404, 404, 403, 204),
]


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row[0]}{row[1]}")
def test_status_of_each_route_for_each_token(world: World, row: Any) -> None:
    method, below, *statuses = row
    for who, status in zip(("alice", "bob", "carol", "writer", "overseer", "admin"), statuses, strict=True):
        job = world.released("alice", facts(1, 1))
        found = world.asks(who, method, f"/v1/jobs/{job}{below}")
        assert found.status_code == status, (who, method, below, found.text)
        unknown = world.asks(who, method, f"/v1/jobs/{new_id()}{below}")
        if status == 404 and who in {"bob", "carol"}:
            assert found.json() == unknown.json(), "a job of another token is like one that never was"


def test_stopping_the_search_of_an_ended_job_keeps_its_result(world: World) -> None:
    job = world.released("alice", facts(1, 1))
    for _ in range(2):
        answer = world.asks("alice", "POST", f"/v1/jobs/{job}/stop-search")
        assert (answer.status_code, answer.json()["state"]) == (200, "succeeded")
    assert world.asks("alice", "GET", f"/v1/jobs/{job}/result").text == "a\n1\n"


@pytest.mark.parametrize("query", ["keep_best=true", "keep_best=true&keep_best=false", "force=1", "="])
def test_deletion_with_a_query_deletes_nothing(world: World, query: str) -> None:
    job = world.released("alice", facts(1, 1))
    answer = world.asks("alice", "DELETE", f"/v1/jobs/{job}?{query}")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:portcullis:problem:bad-parameter")
    assert world.asks("alice", "GET", f"/v1/jobs/{job}/result").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/v1/jobs?limit=1&limit=2", "/v1/jobs?limt=1", "/v1/releases?data_set=a&data_set=b", "/v1/policies?x=Zq7mark"],
)
def test_repeated_and_unknown_parameters_are_refused_without_an_echo(world: World, path: str) -> None:
    answer = world.asks("alice", "GET", path)
    assert answer.status_code == 422
    assert "Zq7mark" not in answer.text


def test_data_sets_of_others_are_neither_seen_nor_met(world: World) -> None:
    own = world.released("alice", facts(1, 1))
    world.released("bob", facts(0, 2))  # incomparable with alice's, under the same name
    listed = {
        who: world.asks(who, "GET", "/v1/releases").json()["releases"] for who in ("alice", "bob", "carol", "overseer")
    }
    assert [one["job"] for one in listed["alice"]] == [own]
    assert [one["owner"] for one in listed["bob"]] == ["token:bob"]
    assert listed["carol"] == []
    assert len(listed["overseer"]) == 2
    named = world.asks("carol", "GET", "/v1/releases?data_set=shops").json()
    assert named == world.asks("carol", "GET", "/v1/releases?data_set=unknown").json()


def test_tokens_of_a_group_share_their_data_sets(world: World) -> None:
    world.released("carol", facts(1, 1))
    listed = world.asks("dave", "GET", "/v1/releases").json()["releases"]
    assert [(one["who"], one["owner"]) for one in listed] == [("alice", "group:analysts")]
    with pytest.raises(Exception, match="earlier release"):
        world.released("dave", facts(0, 2))


def test_administrator_removes_an_entry_and_nobody_else(world: World) -> None:
    job = world.released("alice", facts(1, 1))
    for who, status in (("alice", 403), ("bob", 403), ("overseer", 403), ("admin", 204), ("admin", 404)):
        assert world.asks(who, "DELETE", f"/v1/releases/{job}").status_code == status
    assert world.asks("admin", "GET", "/v1/releases").json() == {"releases": []}
    world.released("alice", facts(0, 2))


def test_same_key_with_swapped_hierarchy_files_is_another_request(world: World) -> None:
    policy = POLICY.replace("{World: {North: [Oslo, Umea], South: [Rome, Bari]}}", "cities.csv").replace(
        "{Any: [lamp, book, tea]}", "items.csv"
    )
    cities = b"Oslo;North;World\nUmea;North;World\nRome;South;World\nBari;South;World\n"
    items = b"lamp;Any\nbook;Any\ntea;Any\n"
    headers = {**world.headers["alice"], "Idempotency-Key": "k"}

    def ask(first: tuple[str, bytes], second: tuple[str, bytes]) -> Any:
        files = [*parts(policy=policy).items(), ("hierarchies", first), ("hierarchies", second)]
        return world.client.post("/v1/jobs", files=files, headers=headers)

    job = ask(("cities.csv", cities), ("items.csv", items))
    assert job.status_code == 202, job.text
    assert ask(("items.csv", items), ("cities.csv", cities)).json()["id"] == job.json()["id"], "their order is nothing"
    swapped = ask(("items.csv", cities), ("cities.csv", items))
    assert swapped.status_code in {409, 422}, swapped.text
    assert swapped.json()["type"].endswith(("idempotency-key-reused", "bad-policy"))
    again = ask(("cities.csv", cities.replace(b"North", b"Nord")), ("items.csv", items))
    assert again.json()["type"].endswith("idempotency-key-reused")


def test_two_hierarchy_files_of_one_name_are_refused(world: World) -> None:
    """The last one counted for both, and requests with them in another order had the same digest."""
    policy = POLICY.replace("{World: {North: [Oslo, Umea], South: [Rome, Bari]}}", "a/tree.csv").replace(
        "{Any: [lamp, book, tea]}", "b/tree.csv"
    )
    files = [("hierarchies", ("a/tree.csv", b"Oslo;World\n")), ("hierarchies", ("b/tree.csv", b"lamp;Any\n"))]
    answer = world.client.post(
        "/v1/jobs", files=[*parts(policy=policy).items(), *files], headers=world.headers["alice"]
    )
    assert answer.status_code == 422
    assert answer.json()["type"].endswith("bad-upload")
    assert "two files of one name" in answer.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/releases"),
        ("GET", "/v1/jobs"),
        ("POST", "/v1/jobs"),
        ("DELETE", "/v1/jobs/x"),
        ("PUT", "/v1/policies/p"),
    ],
)
def test_who_has_no_token_learns_nothing_of_the_query(world: World, method: str, path: str) -> None:
    answer = world.client.request(method, f"{path}?unknown=1")
    assert answer.status_code == 401, answer.text
    assert "parameter" not in answer.text
    assert world.client.request(method, f"{path}?unknown=1", headers=world.headers["admin"]).status_code == 422

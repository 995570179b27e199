"""Policies that are small to send and would be large to read: what each costs the service, and who else waits for it.

    python -m load_tests.http_bombs [--only NAME …] [--json FILE]

Every one is at most 1 MB (or comes with at most 8 MB of hierarchies) and is sent to `/v1/policies/check`, alone and
then many at once, while another client asks `/healthz`. The goal for each: answered within 2 s, with 500 MB.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import httpx

from load_tests.harness import arguments, print_machine, print_table, write_json
from service.ports import free_port

MOST = 1 << 20
PATIENCE = 40.0
"""Seconds after which nobody waits for an answer any longer, and the service is started anew."""
AT_ONCE = 41
BOUNDARY = "bomb"


def policy(**schema: Any) -> dict[str, Any]:
    """A policy with another schema."""
    quasi = {"age": {"type": "number", "min": 0, "max": 120}}
    return {"name": "bomb", "schema": {"person": "id", "quasi": quasi, **schema}, "guarantee": {"k": 5}}


def with_tree(tree: Any) -> str:
    return json.dumps(policy(quasi={"a": {"type": "category", "hierarchy": tree}}))


def filled(ends: tuple[str, str], item: Callable[[int], str], most: int = MOST, between: str = ",") -> str:
    """As many items between these ends as make no more than `most` bytes."""
    head, tail = ends
    parts, room, number = [], most - len((head + tail).encode()), 0
    while (room := room - len((one := item(number) + between).encode())) >= 0:
        parts.append(one)
        number += 1
    return head + "".join(parts).removesuffix(between) + tail


def around(mark: str, text: str) -> tuple[str, str]:
    """What stands before and behind a mark."""
    before, _, behind = text.partition(mark)
    return before, behind


def in_schema() -> tuple[str, str]:
    """What stands before and behind the fields that are quasi-identifiers."""
    return around('"mark": 0', json.dumps(policy(quasi={"mark": 0})))


def in_tree(begin: str, end: str) -> tuple[str, str]:
    """The same for what is in one hierarchy."""
    before, behind = around('{"mark": 0}', with_tree({"mark": 0}))
    return before + begin, end + behind


def years(number: int) -> str:
    return (
        f'"f{number}":{{"type":"category","hierarchy":{{"builder":"dates","start":"1900-01-01","end":"2400-01-01"}}}}'
    )


def wide(number: int) -> str:
    return f'"f{number}":{{"type":"category","hierarchy":{{"builder":"intervals","min":0,"max":199999}}}}'


def guaranteed(guarantee: dict[str, Any], **schema: Any) -> str:
    """A policy with another guarantee."""
    return json.dumps({**policy(**schema), "guarantee": guarantee})


def fields(count: int, **field: Any) -> dict[str, Any]:
    """So many fields, all alike."""
    return {f"f{number}": field for number in range(count)}


STRONG = {
    "k": 10**12,
    "l": {"entropy": 1.5},
    "alpha": 0.5,
    "t": 0.2,
    "beta": {"range": {"beta": 1, "width": 1e300}},
    "disclosure": 1,
    "max_share": 0.5,
}
"""As much as can be asked for."""
YAML = "name: bomb\nguarantee: {k: 5}\nschema:\n person: id\n quasi:\n"
NUMBER = '{"type":"number","min":0,"max":9}'
BOMBS: dict[str, Callable[[], str]] = {
    "999 widths": lambda: with_tree({"builder": "intervals", "min": 0, "max": 199_999, "widths": [*range(2, 1001)]}),
    "150,000 widths": lambda: filled(
        in_tree('{"builder":"intervals","min":0,"max":199999,"widths":[', "]}"), lambda n: str(n + 2)
    ),
    "50,000 quantile levels": lambda: with_tree(
        {"builder": "quantiles", "values": [*range(80_000)], "levels": [*range(50_000, 0, -1)]}
    ),
    "20,000 prefixes": lambda: with_tree(
        {"builder": "prefixes", "values": [f"{n:06}" for n in range(60_000)], "keep": [*range(20_000, 0, -1)]}
    ),
    "one long prefix": lambda: with_tree(
        {"builder": "prefixes", "values": ["a" * 400_000, "b" * 400_000], "keep": [*range(20_000, 0, -1)]}
    ),
    "a key twice": lambda: filled(('{"schema":1,', ',"zz":1,"zz":2}'), lambda n: f'"{n:x}":1'),
    "a key twice in YAML": lambda: filled(("schema: 1\n", "\nzz: 1\nzz: 2\n"), lambda n: f"k{n:x}: 1", between="\n"),
    "20,000 fields": lambda: filled(in_schema(), lambda n: f'"f{n}":{NUMBER}'),
    "nested names": lambda: filled(in_schema(), lambda n: f'"{"a." * (n % 40)}f{n}":{NUMBER}'),
    "public names": lambda: filled(around('"mark"', json.dumps(policy(public=["mark"]))), lambda n: f'"p{n}"'),
    "many years": lambda: filled(in_schema(), years),
    "many intervals": lambda: filled(in_schema(), wide),
    "a flat tree": lambda: filled(in_tree('{"*":[', "]}"), lambda n: f'"{n:x}"'),
    "a deep tree": lambda: filled(
        in_tree('{"*":', "}"), lambda _: '{"a":' * 50 + "1" + "}" * 50, most=2_000, between=""
    ),
    "chains": lambda: filled(in_tree('{"*":{', "}}"), chain),
    "unknown keys": lambda: filled(('{"schema":{},"guarantee":{},', "}"), lambda n: f'"{n:x}":1'),
    "a long unknown key": lambda: '{"schema":{},"guarantee":{},"' + "a" * (MOST - 40) + '":1}',
    "keys like known ones": lambda: filled(
        ('{"guarantee":{},"schema":{', "}}"), lambda n: f'"{"quasi sensitive public person " * 9}{n}":1'
    ),
    "a long label twice": lambda: with_tree({"*": ["'\"" * 120_000, "'\"" * 120_000]}),
    "wrong fields": lambda: filled(in_schema(), lambda n: f'"{n:x}":1'),
    "wrong numbers": lambda: filled(in_schema(), lambda n: f'"{n:x}":{{"type":"number","min":9,"max":0}}'),
    "a long name": lambda: json.dumps({**policy(), "name": "a" * (MOST - 300)}),
    "deep brackets": lambda: "[" * (MOST - 1),
    "deep braces": lambda: '{"a":' * (MOST // 5),
    "deep braces in YAML": lambda: "{a: " * (MOST // 4),
    "deep blocks": lambda: "".join(f"{' ' * n}a:\n" for n in range(1_400)),
    "question marks": lambda: "? " * (MOST // 2),
    "dashes": lambda: "- " * (MOST // 2),
    "a long number": lambda: with_tree({"*": ["x"]}).replace('"x"', "9" * (MOST - 300)),
    "a long number in YAML": lambda: f"schema: {'9' * (MOST - 20)}\n",
    "long numbers": lambda: filled(in_tree('{"*":[', "]}"), lambda n: str(10**4_000 + n)),
    "long fractions": lambda: filled(in_tree('{"*":[', "]}"), lambda n: f"0.{n:04000}"),
    "exponents": lambda: filled(in_schema(), lambda n: f'"f{n}":{{"type":"number","min":0,"max":1e308,"step":1e-300}}'),
    "a laugh": lambda: (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    ),
    "many aliases": lambda: filled(("a: &a x\nschema: [", "]\n"), lambda _: "*a"),
    "anchored": lambda: filled(("schema: [", "]\n"), lambda n: f"&{n:x} x"),
    "one anchor, large trees": lambda: filled(
        (YAML + "  f: {type: category, hierarchy: &x {builder: intervals, min: 0, max: 199999}}\n", "\n"),
        lambda n: f"  f{n}: {{type: category, hierarchy: *x}}",
        between="\n",
    ),
    "scalars in YAML": lambda: filled(("schema: [", "]\n"), lambda _: "a"),
    "keys in YAML": lambda: filled(("schema: {", "}\n"), lambda n: f"{n:x}: 1"),
    "a tree in YAML": lambda: filled(
        (YAML + "  a:\n   type: category\n   hierarchy:\n    R:\n", "\n"), lambda n: f"     - x{n:x}", between="\n"
    ),
    "quotes": lambda: 'schema: "' + "\\n" * (MOST // 2 - 20) + '"\n',
    "an open quote": lambda: "schema: '" + "''" * (MOST // 2 - 20),
    "folded lines": lambda: "schema: >\n" + " a\n" * (MOST // 3 - 20),
    "comments": lambda: "#\n" * (MOST // 2 - 20) + "schema: 1\n",
    "documents": lambda: "---\n" * (MOST // 4 - 20) + "schema: 1\n",
    "directives": lambda: "%TAG !a! b\n" * (MOST // 12) + "---\nschema: 1\n",
    "spaces": lambda: " " * (MOST - 20) + "schema: 1\n",
    "quantiles of everything": lambda: filled(
        in_tree('{"builder":"quantiles","levels":[100000,1000,10],"values":[', "]}"), str
    ),
    "prefixes of everything": lambda: filled(
        in_tree('{"builder":"prefixes","keep":[6,5,4,3,2,1],"values":[', "]}"), lambda n: f'"{n:06x}"'
    ),
    "a large domain": lambda: json.dumps(
        policy(sensitive={f"s{n}": {"type": "number", "min": 0, "max": 999_999, "step": 1} for n in range(9_000)})
    ),
    "aliases of a long label": lambda: filled(
        (f"{YAML}  a:\n   type: category\n   other: &a {'x' * 500_000}\n   hierarchy: {{R: [", "]}\n"), lambda _: "*a"
    ),
    "5 leaves, 165,000 widths": lambda: filled(
        in_tree('{"builder":"intervals","min":0,"max":4,"widths":[', "]}"), lambda n: str(n + 2)
    ),
    "5 values, 150,000 levels": lambda: filled(
        in_tree('{"builder":"quantiles","values":[1,2,3,4,5],"levels":[', "]}"), lambda n: str(999_999 - n)
    ),
    "widths that descend": lambda: filled(
        in_tree('{"builder":"intervals","min":0,"max":4,"widths":[', "]}"), lambda n: str(999_999 - n)
    ),
    "80,000 days": lambda: with_tree({"builder": "dates", "start": "1800-01-01", "end": "2018-12-31"}),
    "80,000 numbers": lambda: with_tree({"builder": "intervals", "min": 0.1, "max": 7_999.9, "step": 0.1}),
    "100 prefixes": lambda: with_tree(
        {"builder": "prefixes", "values": [f"{n:0100}" for n in range(3_900)], "keep": [*range(100, 0, -1)]}
    ),
    "100 widths": lambda: with_tree({"builder": "intervals", "min": 0, "max": 3_900, "widths": [*range(2, 102)]}),
    "999 times 197 days": lambda: json.dumps(
        policy(
            quasi=fields(
                999, type="category", hierarchy={"builder": "dates", "start": "2024-01-01", "end": "2024-07-15"}
            )
        )
    ),
    "999 trees": lambda: json.dumps(policy(quasi=fields(999, type="category", hierarchy={"*": ["a", "b"]}))),
    "999 strong attributes": lambda: guaranteed(STRONG, sensitive=fields(999, type="number", min=1, max=1_000, step=1)),
    "a million values": lambda: guaranteed(STRONG, sensitive=fields(1, type="number", min=1, max=1_000_000, step=1)),
    "999 semantic trees": lambda: guaranteed(
        {"beta": {"semantic": {"beta": 1, "height": 1_000}}},
        sensitive=fields(999, type="category", hierarchy={"*": ["a", "b"]}),
    ),
    "half a million dots": lambda: json.dumps(policy(public=["a" + ".a" * 520_000])),
    "999 names of 400 dots": lambda: json.dumps(policy(public=[f"a{'.a' * 400}{n}" for n in range(990)])),
    "as many boxes as CASTLE keeps": lambda: guaranteed(
        {"algorithm": "castle", "k": 5, "delta": 1_000, "reuse": True, "reuse_bound": 100_000},
        quasi=fields(999, type="number", min=0, max=9),
    ),
    "as long as CASTLE waits": lambda: guaranteed(
        {"algorithm": "castle", "k": 1_000_000, "l": 2, "delta": 10_000_000},
        sensitive=fields(999, type="number", min=0, max=999, step=1),
    ),
    "widths for numbers that are not there": lambda: filled(
        around('"mark": 0', guaranteed({"algorithm": "incognito", "k": 5, "widths": {"mark": 0}})),
        lambda n: f'"{n:x}":[1]',
    ),
    "a guarantee of many keys": lambda: filled(around('"mark": 0', guaranteed({"mark": 0})), lambda n: f'"{n:x}":1'),
    "large numbers": lambda: guaranteed({"k": 10**399, "l": {"entropy": 10**399}, "t": -(10**399)}),
    "emoji": lambda: filled(in_tree('{"*":[', "]}"), lambda n: f'"\N{GRINNING FACE}{n:x}"'),
    "halves of characters": lambda: filled(in_tree('{"*":[', "]}"), lambda n: f'"\\ud800{n:x}"'),
    "empty lists in YAML": lambda: filled(("schema: [", "]\n"), lambda _: "[]"),
    "JSON that ends wrongly": lambda: filled(('{"schema":[', ",]}"), lambda _: '"a"'),
    "noise": lambda: "".join(random.Random(7).choices("{}[]:,-?&*!|>'\"%@` \n#ab1", k=MOST - 1)),
}


def chain(number: int) -> str:
    """A leaf far below the root."""
    labels = [f"{number:x}.{level:x}" for level in range(50)]
    return "{".join(f'"{label}":' for label in labels) + "1" + "}" * 49


def long_labels() -> str:
    return "".join(f"{'a' * 131_000}{n};*\n" for n in range(63))


FILES: dict[str, tuple[int, Callable[[], str]]] = {
    "8 MB, flat": (1, lambda: filled(("", "\n"), lambda n: f"{n:x};*", 8 << 20, "\n")),
    "8 MB, deep": (
        1,
        lambda: filled(("", "\n"), lambda n: ";".join(f"{n:x}.{up:x}" for up in range(999)) + ";*", 8 << 20, "\n"),
    ),
    "8 MB, one row": (1, lambda: filled(("", "\n"), lambda n: f"{n:x}", 8 << 20, ";")),
    "8 MB of quotes": (1, lambda: '"' * (8 << 20)),
    "8 MB, one cell": (1, lambda: "a" * ((8 << 20) - 4) + ";*\n"),
    "8 MB of empty rows": (1, lambda: "\n" * ((8 << 20) - 8) + "a;*\n"),
    "8 MB of empty rows, 999 times": (999, lambda: "\n" * ((8 << 20) - 8) + "a;*\n"),
    "8 MB of empty cells, 999 times": (999, lambda: "a;*\n" + (";" * 99 + "\n") * 83_000),
    "8 MB of long labels": (1, long_labels),
    "8 MB of long labels, 999 times": (999, long_labels),
    "199,000 leaves": (1, lambda: "".join(f"{n:036};*\n" for n in range(199_000))),
    "3,900 leaves on 100 levels": (
        1,
        lambda: "".join(";".join(f"{n}.{up}" for up in range(99)) + ";*\n" for n in range(3_900)),
    ),
    "196 leaves, 999 times": (999, lambda: "".join(f"{n};*\n" for n in range(196))),
}


def naming(times: int) -> str:
    """A policy that names a file so many times."""
    return json.dumps(policy(quasi=fields(times, type="category", hierarchy="h.csv")))


class Service:
    """`portcullis serve` in a process, with a look at its memory."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._port = free_port()
        self.address = f"http://127.0.0.1:{self._port}"
        command = [sys.executable, "-m", "service", "serve", "--port", str(self._port), "--job-workers", "0"]
        log = Path(self._folder.name, "log").open("wb")  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen([*command, "--data", self._folder.name], stdout=log, stderr=log)
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.address}/readyz").status_code == 200:
                    check(self.address, json.dumps(policy()), None)  # whatever is started with the first one
                    return
            time.sleep(0.1)
        raise TimeoutError("the service does not start")

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def megabytes(self) -> float:
        """Resident memory of its process and those below it, what they share counted once."""
        return sum(_own_megabytes(pid) for pid in _family(self._process.pid))

    def processor_seconds(self) -> float:
        """Processor time that they have taken, those included that have ended."""
        return sum(_own_processor_seconds(pid) for pid in _family(self._process.pid))


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _own_megabytes(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _own_processor_seconds(pid: int) -> float:
    with suppress(OSError):
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, values[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def check(address: str, text: str, hierarchy: str | None) -> str:
    """Send a policy to be checked; how it was answered."""
    try:
        if hierarchy is None:
            answer = httpx.post(f"{address}/v1/policies/check", content=text.encode(), timeout=PATIENCE)
        else:
            files = {"policy": ("p", text), "hierarchies": ("h.csv", hierarchy)}
            answer = httpx.post(f"{address}/v1/policies/check", files=files, timeout=PATIENCE)
    except httpx.TransportError as error:
        return type(error).__name__
    return f"{answer.status_code}{'' if answer.status_code != 200 else ' usable' if answer.json()['usable'] else ' no'}"


class Watch:
    """Asks `/healthz` and looks at the memory, over and over, until it is told to stop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._over = threading.Event()
        self.slowest = 0.0
        self.most = 0.0
        self._threads = [threading.Thread(target=look) for look in (self._health, self._memory)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _health(self) -> None:
        with httpx.Client(timeout=PATIENCE) as client:
            while not self._over.wait(0.02):
                started = time.perf_counter()
                with suppress(httpx.TransportError):
                    client.get(f"{self._service.address}/healthz")
                self.slowest = max(self.slowest, time.perf_counter() - started)

    def _memory(self) -> None:
        while not self._over.wait(0.05):
            self.most = max(self.most, self._service.megabytes())


@contextmanager
def measured(service: Service) -> Iterator[dict[str, Any]]:
    """Fills in how long something took, and what it did to the service meanwhile."""
    found: dict[str, Any] = {}
    before, worked = service.megabytes(), service.processor_seconds()
    started = time.perf_counter()
    with Watch(service) as watch:
        yield found
        found["seconds"] = round(time.perf_counter() - started, 2)
        found["processor"] = round(service.processor_seconds() - worked, 2)
    found["megabytes"] = round(max(0.0, watch.most - before))
    found["healthz"] = round(watch.slowest, 3)


def requests(only: list[str]) -> dict[str, tuple[str, str | None]]:
    """Every bomb, as what is sent."""
    texts: dict[str, tuple[str, str | None]] = {name: (make(), None) for name, make in BOMBS.items()}
    texts |= {name: (naming(times), make()) for name, (times, make) in FILES.items()}
    assert all(len(text.encode()) <= MOST for text, _ in texts.values())
    return {name: sent for name, sent in texts.items() if not only or name in only}


def run(only: list[str]) -> list[dict[str, Any]]:
    """Every bomb alone, then the first many times at once."""
    rows = []
    sent = requests(only)
    service = Service()
    for name, (text, hierarchy) in sent.items():
        with measured(service) as found:
            found["answer"] = check(service.address, text, hierarchy)
        rows.append({"policy": name, "bytes": len(text) + len(hierarchy or ""), **found})
        print(rows[-1], flush=True)
        if found["seconds"] > PATIENCE - 1:
            service.stop()
            service = Service()
    mixed = [*sent.values()] * AT_ONCE
    with measured(service) as found, ThreadPoolExecutor(AT_ONCE) as pool:
        answers = [*pool.map(lambda one: check(service.address, *one), mixed[:AT_ONCE])]
        found["answer"] = ", ".join(f"{answers.count(one)} x {one}" for one in sorted(set(answers)))
    rows.append({"policy": f"{AT_ONCE} at once", "bytes": 0, **found})
    service.stop()
    return rows


def main() -> None:
    options = arguments(__doc__, add=lambda parser: parser.add_argument("--only", nargs="*", default=[]))
    print_machine()
    rows = run(options.only)
    columns = ["policy", "bytes", "answer", "seconds", "processor", "megabytes", "healthz"]
    print_table("Policies that would be large", columns, [[row[column] for column in columns] for row in rows])
    write_json(options.json, "http_bombs", rows)


if __name__ == "__main__":
    main()

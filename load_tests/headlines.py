"""The numbers that people ask for: where each stands in the results, its goal, and what peers reach.

README and docs say no number of their own: between `<!-- number: KEY -->` and `<!-- /number -->` stands what
`load_tests.bench` put there, and a test compares it with docs/numbers.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from load_tests.harness import show

Results = Mapping[str, Any]
"""Results of every benchmark by its name."""
MARK = re.compile(r"(<!-- number: (\S+) -->)(.*?)(<!-- /number -->)", re.DOTALL)


@dataclass(frozen=True)
class Headline:
    """A number with its goal (`most` or `least`) and what stands beside it."""

    key: str
    what: str
    find: Callable[[Results], Any]
    unit: str = ""
    most: float | None = None
    least: float | None = None
    beside: Callable[[Results], str] = lambda _: ""

    def value(self, results: Results) -> Any:
        """The number; None where its benchmark has not told it."""
        return _told(self.find, results)

    def goal(self) -> str:
        """In words."""
        if self.most is not None:
            return f"at most {show(self.most)}"
        return "" if self.least is None else f"at least {show(self.least)}"

    def reached(self, value: Any) -> bool:
        """Whether the goal, if there is one, is met."""
        above = self.most is not None and value > self.most
        below = self.least is not None and value < self.least
        return not (above or below)

    def peer(self, results: Results) -> str:
        """What stands beside it; empty where that was not measured."""
        return _told(self.beside, results) or ""


def _told(find: Callable[[Results], Any], results: Results) -> Any:
    try:
        return find(results)
    except (LookupError, TypeError, ValueError, StopIteration):
        return None


def pick(rows: Sequence[Mapping[str, Any]], /, **wanted: Any) -> Mapping[str, Any]:
    """The first row that has all of these values, in itself or in its `case`."""
    for row in rows:
        told = {**row.get("case", {}), **row} if isinstance(row.get("case"), Mapping) else row
        if all(told.get(key) == value for key, value in wanted.items()):
            return row
    raise LookupError(f"no row with {wanted}")


def _static(name: str, data: str, rows: int, field: str = "seconds") -> Callable[[Results], Any]:
    return lambda all_: pick(all_["static_speed"]["times"], name=name, data=data, rows=rows)[field]


def _ours(asked: str, field: str) -> Callable[[Results], Any]:
    return lambda all_: all_["peers"]["anonymizers"][_place(all_, asked)][field]


def _place(all_: Results, asked: str) -> int:
    rows = all_["peers"]["anonymizers"]
    return next(place for place, row in enumerate(rows) if row["asked"] == asked)


def _theirs(asked: str, field: str) -> Callable[[Results], str]:
    """Every peer's number, from the same run."""

    def told(all_: Results) -> str:
        rows = [row for row in all_["peers"]["anonymizers"] if row["asked"] == asked and "portcullis" not in row["who"]]
        cells = (f"{row['who']}: {row.get('failed') or text(row[field]) + _remark(row)}" for row in rows)
        return "; ".join(cells)

    return told


def _remark(row: Mapping[str, Any]) -> str:
    return "" if row["holds"] else " (the guarantee does not hold)"


def _check(model: str, field: str) -> Callable[[Results], Any]:
    def found(all_: Results) -> Any:
        return next(row for row in all_["peers"]["checkers"] if row["check"].startswith(model))[field]

    return found


def _castle(setting: str, field: str = "tuples_per_second") -> Callable[[Results], Any]:
    return lambda all_: pick(all_["stream_speed"]["castle"], setting=setting)[field]


def _longest_push(formation: str, *, long: bool) -> Callable[[Results], Any]:
    """Of the settings of one formation with δ = 100,000, or of all others."""

    def found(all_: Results) -> Any:
        rows = [row for row in all_["stream_speed"]["castle"] if row["setting"].startswith(formation)]
        return max(row["longest_push_cpu_ms"] for row in rows if ("δ=100,000" in row["setting"]) == long)

    return found


def _window(engine: str) -> Callable[[Results], Any]:
    return lambda all_: pick(all_["window_speed"], engine=engine)["tuples_per_second"]


def _counting(part: str, field: str, **wanted: Any) -> Callable[[Results], Any]:
    return lambda all_: pick(all_["counting_speed"][part], **wanted)[field]


def _adult_stream(
    setting: str, *, reuse: bool, formation: str = "deadline", field: str = "loss"
) -> Callable[[Results], Any]:
    def found(all_: Results) -> Any:
        return pick(all_["stream_quality"]["peers"], setting=setting, formation=formation, reuse=reuse)[field]

    return found


def _bursts(k: int, delta: int, formation: str, column: str) -> Callable[[Results], Any]:
    """Of persons who come back in bursts, about one at once."""

    def found(all_: Results) -> Any:
        wanted = {"at once": 0.7, "k": k, "δ": delta, "formation": formation}
        return pick(all_["stream_bursts"], **wanted)[column]

    return found


def _kafka(broker: str, field: str, client: str = "confluent-kafka") -> Callable[[Results], Any]:
    return lambda all_: pick(all_["stream_throughput"], broker=broker, client=client)[field]


def _route(when: str, route: str, field: str) -> Callable[[Results], Any]:
    return lambda all_: pick(all_["http_load"]["routes"], when=when, route=route)[field]


def _adult_table(title: str, algorithm: str, column: str) -> Callable[[Results], Any]:
    def found(all_: Results) -> Any:
        table = pick(all_["static_quality"]["adult"], asked=title)
        row = next(row for row in table["rows"] if row[0] == algorithm)
        return row[list(table["columns"]).index(column)]

    return found


def _windows(series: str, t: float = 0.35) -> Callable[[Results], Any]:
    """Loss in the windows of Figure 6.6."""

    def found(all_: Results) -> Any:
        chart = pick(pick(all_["stream_quality"]["figures"], figure="6.6")["panels"], title="loss")
        return chart["series"][series][list(chart["at"]).index(t)]

    return found


def _points(title: str) -> Callable[[Results], Iterator[Mapping[str, float]]]:
    """What each engine has at every point of the figures about windows."""

    def found(all_: Results) -> Iterator[Mapping[str, float]]:
        for figure in all_["stream_quality"]["figures"]:
            if figure["figure"].startswith("6."):
                series = pick(figure["panels"], title=title)["series"]
                for values in zip(*series.values(), strict=True):
                    yield dict(zip(series, values, strict=True))

    return found


def _below(one: str, other: str) -> Callable[[Results], str]:
    """At how many of the points about windows an engine loses less than another."""

    def found(all_: Results) -> str:
        less = [point[one] < point[other] for point in _points("loss")(all_)]
        return f"{sum(less)} of {len(less)}"

    return found


def _splits(all_: Results) -> list[float]:
    """How many percent less is lost by splitting in blocks."""
    return [100 * (1 - row["in blocks: loss"] / row["all pairs: loss"]) for row in all_["stream_quality"]["splits"]]


def _times_faster(all_: Results) -> list[float]:
    return [row["µs per row"] / row["µs per row "] for row in all_["stream_quality"]["splits"]]


def _most_suppressed(all_: Results) -> int:
    rows = [row for row in all_["stream_quality"]["peers"] if row["formation"] == "deadline"]
    return max(int(row["suppressed"]) for row in rows)


def _always(words: str) -> Callable[[Results], str]:
    return lambda _: words


def _on_adult(key: str, what: str, name: str, asked: str, *, most: float) -> tuple[Headline, Headline]:
    """Time and loss of an algorithm on real Adult, beside those of the peers."""
    seconds = _static(name, "adult", 30_162)
    return (
        Headline(f"{key}.seconds", what, seconds, "s", most=most, beside=_theirs(asked, "seconds")),
        Headline(f"{key}.loss", "… its loss", _ours(asked, "loss"), beside=_theirs(asked, "loss")),
    )


class Setting(NamedTuple):
    """A stream of real Adult that peers have run too."""

    asked: str
    what: str
    prink: float
    more: str = ""


SETTINGS = {
    "200": Setting(
        "8 QI as numbers, k = 10, δ = 200",
        "CASTLE's loss, real Adult, 8 QI as numbers, k = 10, δ = 200",
        0.293,
        "; CASTLEGUARD: 0.371",
    ),
    "1000": Setting("8 QI as numbers, k = 10, δ = 1,000", "… δ = 1,000", 0.197, "; CASTLEGUARD: 0.469"),
    "hierarchies": Setting("7 hierarchies, k = 10, δ = 200", "… 7 hierarchies, δ = 200", 0.522),
    "10000": Setting(
        "8 QI as numbers, k = 100, δ = 10,000",
        "… k = 100, δ = 10,000",
        0.349,
        ", with 7,046 of 30,162 rows never released",
    ),
}


def _castle_losses(name: str, setting: Setting) -> tuple[Headline, Headline]:
    key, prink = f"castle.loss.{name}", f"Prink: {setting.prink}"
    without, reuse = (_adult_stream(setting.asked, reuse=reuse) for reuse in (False, True))
    return (
        Headline(key, setting.what, without, most=setting.prink, beside=_always(prink + setting.more)),
        Headline(f"{key}.reuse", "… with reuse", reuse, most=setting.prink, beside=_always(prink)),
    )


TABLES = (
    *_on_adult("mondrian", "Mondrian, Adult, 8 quasi-identifiers, k = 10", "Mondrian, k", "k = 10", most=0.25),
    *_on_adult("sabre", "SABRE, the same with t = 0.2", "SABRE", "k = 10, t = 0.2", most=0.5),
    *_on_adult("burel", "BUREL, the same with β = 1", "BUREL", "k = 10, β = 1", most=0.5),
    Headline(
        "sabre.census.100k",
        "SABRE-AK, CENSUS-like, 100,000 rows, 7 quasi-identifiers, t = 0.35, k = 6",
        _static("SABRE-AK", "census", 100_000),
        "s",
        most=0.25,
    ),
    Headline(
        "budget.10m",
        "budget, 10 million rows of one number without a grid",
        _counting("columns", "seconds", what="budget", values="numbers without a grid"),
        "s",
        most=2,
    ),
    Headline("sabre.census.500k", "… 500,000 rows", _static("SABRE-AK", "census", 500_000), "s", most=1.5),
    Headline(
        "sabre.classes",
        "SABRE, Adult, occupation sensitive, 7 quasi-identifiers, k = 10, t = 0.2: classes",
        _adult_table("t = 0.2", "SABRE, refined", "classes"),
        least=957,
        beside=_always("ARX: 33, with 2,682 rows suppressed"),
    ),
    Headline(
        "burel.classes",
        "BUREL, the same with β = 1: classes",
        _adult_table("β = 1", "BUREL, refined", "classes"),
        least=322,
        beside=_always("ARX: 3"),
    ),
    Headline(
        "audit.t.seconds",
        "checking t-closeness of raw Adult, 8 quasi-identifiers",
        _check("TCloseness", "ours, seconds"),
        "s",
        beside=lambda all_: f"pyCANON: {text(_check('TCloseness', 'pycanon, seconds')(all_))}",
    ),
    Headline(
        "audit.beta.seconds",
        "… β-likeness",
        _check("BetaLikeness", "ours, seconds"),
        "s",
        beside=lambda all_: f"pyCANON: {text(_check('BetaLikeness', 'pycanon, seconds')(all_))}",
    ),
)
STREAMS = (
    Headline(
        "castle.speed",
        "CASTLE, 10 quasi-identifiers, k = 100, δ = 10,000",
        _castle("deadline: 10 QI, k=100, δ=10,000"),
        "tuples/s of one core",
        least=200_000,
        beside=_always("Prink: 3,580"),
    ),
    Headline(
        "replay.speed",
        "`portcullis replay`, JSON lines to JSON lines, k = 10, δ = 200, 8 quasi-identifiers",
        lambda all_: all_["replay_speed"][0]["events_per_second"],
        "events/s",
        least=200_000,
        beside=lambda all_: f"engine alone {show(all_['replay_speed'][0]['engine_per_second'])}",
    ),
    Headline(
        "castle.speed.small",
        "CASTLE, 8 quasi-identifiers, k = 10, δ = 200",
        _castle("deadline: 8 QI, k=10, δ=200"),
        "tuples/s of one core",
        least=200_000,
        beside=_always("Prink: 3,570; CASTLEGUARD: 33"),
    ),
    Headline(
        "castle.push",
        "… longest push of 1,000 in the first setting",
        _castle("deadline: 10 QI, k=100, δ=10,000", "longest_push_cpu_ms"),
        "ms",
        most=50,
    ),
    Headline(
        "castle.push.long",
        "… at δ = 100,000",
        _longest_push("deadline", long=True),
        "ms",
        most=50,
    ),
    Headline(
        "castle.arrival.speed",
        "CASTLE as in the thesis (formed on arrival), 10 quasi-identifiers, k = 100, δ = 10,000",
        _castle("arrival: 10 QI, k=100, δ=10,000"),
        "tuples/s of one core",
        least=200_000,
    ),
    Headline(
        "castle.arrival.push",
        "… longest push of 1,000 in all settings with δ up to 10,000",
        _longest_push("arrival", long=False),
        "ms",
        most=50,
    ),
    Headline("castle.arrival.push.long", "… at δ = 100,000", _longest_push("arrival", long=True), "ms"),
    *(headline for name, setting in SETTINGS.items() for headline in _castle_losses(name, setting)),
    Headline(
        "sabre_w.speed",
        "SABRE_W, 7 quasi-identifiers, ω = 20,000, advance 5,000, t = 0.35, k = 6",
        _window("SABRE_W, t = 0.35"),
        "tuples/s of one core",
        least=100_000,
    ),
    Headline("sabre_w.loss", "… its loss", _windows("SABRE_W")),
    Headline("sabre_w.loss.floor", "… with `floor: 0`", _windows("SABRE_W, floor 0")),
    Headline("sabre_w.loss.thesis", "… as in the thesis", _windows("SABRE_W as in the thesis")),
    Headline("tmondrian_w.loss", "… of tMondrian_W in the same windows", _windows("tMondrian_W")),
    Headline("burel_w.speed", "BUREL_W, β = 4", _window("BUREL_W, β = 4"), "tuples/s of one core"),
    *(
        Headline(key, what, _counting("engines", field, engine=engine), "tuples/s of one core", least=least)
        for key, what, engine, field, least in (
            ("z.speed", "z, 8 quasi-identifiers, window of 100,000", "z = 10, 8 QI", "tuples_per_second", 300_000),
            ("z.gate", "… its gate in a worker", "z = 10, 8 QI", "checked_in_a_worker", 300_000),
            ("quantile.speed", "quantile, the same", "quantile, 8 QI", "tuples_per_second", 1_000_000),
            ("quantile.gate", "… its gate in a worker", "quantile, 8 QI", "checked_in_a_worker", 300_000),
        )
    ),
)
SERVICE = (
    Headline(
        "worker.apache",
        "the worker, Apache Kafka on the same 2 cores, confluent-kafka",
        _kafka("apache", "worker/s"),
        "events/s",
        least=100_000,
        beside=lambda all_: f"passing through untouched: {text(_kafka('apache', 'pass-through/s')(all_))}",
    ),
    Headline("worker.apache.share", "… as a share of passing through", _kafka("apache", "ratio"), least=0.5),
    Headline(
        "worker.embedded",
        "the worker, embedded broker, confluent-kafka",
        _kafka("embedded", "worker/s"),
        "events/s",
        beside=lambda all_: f"passing through untouched: {text(_kafka('embedded', 'pass-through/s')(all_))}",
    ),
    Headline(
        "faults.twice",
        "events that left twice while workers were killed",
        lambda all_: all_["stream_faults"]["events that left twice"],
        most=0,
    ),
    Headline(
        "faults.unaccounted",
        "… that are unaccounted for",
        lambda all_: all_["stream_faults"]["events unaccounted for"],
        most=0,
    ),
    Headline(
        "endurance.delay",
        "longest way of an event from producer to reader at 50 a second, bound 5 s",
        lambda all_: all_["stream_endurance"]["delay"]["most seconds"],
        "s",
        most=5.0,
    ),
    Headline(
        "endurance.memory",
        "memory of a worker under full load, most over least of the second half",
        lambda all_: (
            all_["stream_endurance"]["memory"]["second half, most MiB"]
            / all_["stream_endurance"]["memory"]["second half, least MiB"]
        ),
        "×",
        most=1.1,
    ),
    Headline(
        "http.light",
        "GET /v1/algorithms while jobs run, times an empty FastAPI route",
        _route("jobs run", "GET /v1/algorithms", "times the empty one"),
        "×",
        most=2.0,
    ),
    Headline("http.p99", "… its 99th percentile", _route("jobs run", "GET /v1/algorithms", "p99 ms"), "ms"),
    Headline(
        "http.job",
        "GET /v1/jobs/{id}, likewise",
        _route("jobs run", "GET /v1/jobs/{id}", "times the empty one"),
        "×",
        most=2.0,
    ),
    Headline(
        "http.jobs",
        "GET /v1/jobs with 20 of them, likewise",
        _route("jobs run", "GET /v1/jobs", "times the empty one"),
        "×",
        most=2.0,
    ),
)
IN_TEXTS = (
    *(
        Headline(
            f"prink.loss.{name}", f"Prink, {setting.asked}", _adult_stream(setting.asked, reuse=True, field="best peer")
        )
        for name, setting in SETTINGS.items()
    ),
    *(
        Headline(f"castle.arrival.{name}", setting.asked, _adult_stream(setting.asked, reuse=True, formation="arrival"))
        for name, setting in SETTINGS.items()
    ),
    *(
        Headline(
            f"bursts.{what}.{formation}.{k}.{delta}",
            f"people in bursts, k = {k}, δ = {delta}, formation {formation}: {column}",
            _bursts(k, delta, formation, column),
        )
        for k, delta in ((10, 1_000), (5, 300), (20, 2_000), (20, 1_000))
        for formation in ("arrival", "deadline")
        for what, column in (
            ("suppressed", "suppressed"),
            ("loss", "loss"),
            ("share", "largest share of a person"),
        )
    ),
    Headline("castle.suppressed", "rows suppressed at most, formed at the deadline", _most_suppressed),
    Headline("castle.split.least", "percent less lost by splitting in blocks", lambda all_: round(min(_splits(all_)))),
    Headline("castle.split.most", "… at most", lambda all_: round(max(_splits(all_)))),
    Headline("castle.split.faster", "… times faster, at most", lambda all_: max(_times_faster(all_))),
    Headline("sabre_w.below", "points where SABRE_W loses less than tMondrian_W", _below("SABRE_W", "tMondrian_W")),
    Headline("sabre_w.floor", "points where it loses less than with floor 0", _below("SABRE_W", "SABRE_W, floor 0")),
    Headline(
        "tincognito_w.loss",
        "tIncognito_W's loss in times that of SABRE_W, at least",
        lambda all_: min(point["tIncognito_W"] / point["SABRE_W"] for point in _points("loss")(all_)),
    ),
    Headline(
        "tincognito_w.seconds",
        "tIncognito_W's time in times that of the thesis' SABRE_W, at most",
        lambda all_: max(
            point["tIncognito_W"] / point["SABRE_W as in the thesis"] for point in _points("processor seconds")(all_)
        ),
    ),
)
"""Numbers that only sentences need."""
GROUPS = {"Tables": TABLES, "Streams": STREAMS, "Service": SERVICE}
HEADLINES = (*(one for group in GROUPS.values() for one in group), *IN_TEXTS)


def collect(results: Results) -> dict[str, Any]:
    """Value by key, without those that were not told."""
    found = {one.key: one.value(results) for one in HEADLINES}
    return {key: value for key, value in found.items() if value is not None}


def text(value: Any) -> str:
    """A number as sentences say it: measured ones with three digits that count, small counts exactly."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) and abs(value) < 10_000:
        return f"{value:,}"
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def fill(page: str, values: Mapping[str, Any]) -> str:
    """The page with the number of every mark; one that is not known keeps what is there."""

    def filled(mark: re.Match[str]) -> str:
        opening, key, old, closing = mark.groups()
        return opening + (text(values[key]) if key in values else old) + closing

    return MARK.sub(filled, page)

"""CASTLE in plain Python, to be read beside the specification: slow, without arrays, with the same random words.

`ArrivalReference` is the thesis' algorithm, `DeadlineReference` the improved one. The kernels must decide as these do,
row by row, as long as they look at all rows (no block cuts, no bounded candidate sets: a few hundred held rows).
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from microdata import Category

TIE = 1e-12
UNIT = 2.0**22
BINS = 256
RECENT = 1024


@dataclass(eq=False)
class Row:
    number: int
    position: int
    person: int
    quasi: tuple[Any, ...]
    sensitive: tuple[Any, ...]
    rarity: int = 0


@dataclass
class Released:
    id: int
    members: list[Any]
    lo: list[Any]
    hi: list[Any]
    reused: bool


@dataclass
class Box:
    id: int
    lo: list[Any]
    hi: list[Any]
    used: int


@dataclass(eq=False)
class Cluster:
    rows: list[Any] = field(default_factory=list)


class Reference:
    keep_below = 1.0

    def __init__(
        self,
        schema: Any,
        words: Any,
        *,
        k: Any,
        delta: Any,
        l: int = 1,  # noqa: E741
        mu: int = 100,
        reuse: bool = False,
        reuse_bound: int = 500,
        share: float = 1.0,
    ) -> None:
        self.schema, self.words, self.delta, self.l = schema, words, delta, l
        self.k = max(k, math.ceil(1 / Fraction(str(share))))  # fewer persons with a row each have larger shares
        self.mu, self.reuse, self.reuse_bound, self.share = mu, reuse, reuse_bound, share
        self.held, self.losses, self.omega, self.turn, self.taken = [], [], [], 0, 0  # type: ignore[var-annotated]
        self.released, self.suppressed, self.due = [], [], -math.inf  # type: ignore[var-annotated]

    # Randomness

    def word(self) -> Any:
        return int(self.words(1)[0])

    def below(self, bound: Any) -> Any:
        return self.word() % bound

    # Boxes and losses

    def side_loss(self, attribute: Any, lo: Any, hi: Any) -> Any:
        described = self.schema.quasi[attribute]
        if isinstance(described, Category):
            tree = described.hierarchy
            leaves = int(tree.leaf_count[tree.lca(int(lo), int(hi))])
            return 0.0 if leaves == 1 else leaves / tree.size
        assert described.step is None, "the reference knows no steps"
        width = described.high - described.low
        return (hi - lo) * (1.0 / width if width > 0 else 0.0)

    def loss(self, lo: Any, hi: Any) -> Any:
        return sum(w * self.side_loss(a, lo[a], hi[a]) for a, w in enumerate(self.schema.weights))

    def around(self, rows: Any) -> Any:
        columns = list(zip(*(row.quasi for row in rows), strict=True))
        return [min(column) for column in columns], [max(column) for column in columns]

    def growth(self, lo: Any, hi: Any, more_lo: Any, more_hi: Any) -> Any:
        total = 0.0
        for a, w in enumerate(self.schema.weights):
            if more_lo[a] < lo[a] or more_hi[a] > hi[a]:
                wider = self.side_loss(a, min(lo[a], more_lo[a]), max(hi[a], more_hi[a]))
                total += w * (wider - self.side_loss(a, lo[a], hi[a]))
        return total

    def widened(self, lo: Any, hi: Any) -> Any:
        low, high = list(lo), list(hi)
        for a, attribute in enumerate(self.schema.quasi):
            if isinstance(attribute, Category):
                node = attribute.hierarchy.lca(int(lo[a]), int(hi[a]))
                low[a], high[a] = float(attribute.hierarchy.first[node]), float(attribute.hierarchy.last[node])
        return low, high

    # Who is there

    @staticmethod
    def persons(rows: Any) -> Any:
        return {row.person for row in rows}

    def diverse(self, rows: Any) -> Any:
        return all(len({row.sensitive[a] for row in rows}) >= self.l for a in range(len(self.schema.sensitive)))

    def is_class(self, rows: Any) -> Any:
        return len(self.persons(rows)) >= self.k and self.diverse(rows)

    # What leaves

    @property
    def tau(self) -> Any:
        return sum(self.losses) / len(self.losses) if self.losses else 0.0

    def release(self, rows: Any) -> None:
        lo, hi = self.around(rows)
        loss = self.loss(lo, hi)
        for index in range(len(rows)):
            self.below(index + 1)
        identity = self.word()
        lo, hi = self.widened(lo, hi)
        self.released.append(Released(identity, sorted(row.position for row in rows), lo, hi, reused=False))
        self.held = [row for row in self.held if row not in rows]
        self.losses = [*self.losses, loss][-self.mu :]
        if self.reuse and loss < self.keep_below * self.tau - TIE:
            self.keep(identity, lo, hi)

    def keep(self, identity: Any, lo: Any, hi: Any) -> None:
        self.turn += 1
        for box in self.omega:
            if box.lo == lo and box.hi == hi:
                box.used = self.turn
                return
        new = Box(identity, lo, hi, self.turn)
        if len(self.omega) < self.reuse_bound:
            self.omega.append(new)
        else:
            self.omega[self.omega.index(min(self.omega, key=lambda box: box.used))] = new

    def reuse_for(self, row: Any) -> Any:
        if not self.reuse:
            return False
        covers = [box for box in self.omega if all(map(lambda v, a, b: a <= v <= b, row.quasi, box.lo, box.hi))]
        if not covers:
            return False
        box = covers[self.below(len(covers))]
        self.turn += 1
        box.used = self.turn
        self.released.append(Released(box.id, [row.position], box.lo, box.hi, reused=True))
        self.held.remove(row)
        return True

    def suppress(self, row: Any) -> None:
        self.suppressed.append(row.position)
        self.held.remove(row)

    def within_share(self, rows: Any, expiring: Any) -> Any:
        """Rows that may leave as one class, and those that must stay."""
        if self.share >= 1:
            return rows, []
        if expiring in rows:
            index = rows.index(expiring)
            rows = [*rows]
            rows[0], rows[index] = rows[index], rows[0]
        most = 1
        owned = [sum(row.person == person for row in rows) for person in self.persons(rows)]
        while max(owned) > most and most + 1 <= self.share * sum(min(own, most + 1) for own in owned) + 1e-9:
            most += 1
        keep, stay, counts = [], [], {}  # type: ignore[var-annotated]
        for row in rows:
            counts[row.person] = counts.get(row.person, 0) + 1
            (keep if counts[row.person] <= most else stay).append(row)
        return keep, stay

    # The stream

    def push(self, position: Any, person: Any, quasi: Any, sensitive: Any) -> None:
        self.advance(position - 1)
        row = Row(self.taken, position, person, tuple(quasi), tuple(sensitive))
        self.taken += 1
        self.held.append(row)
        self.arrive(row)  # type: ignore[attr-defined]
        self.advance(position)

    def advance(self, position: Any) -> None:
        self.due = max(self.due, position - self.delta)
        while self.held and self.held[0].position <= self.due:
            self.decide(self.held[0])  # type: ignore[attr-defined]


class ArrivalReference(Reference):
    def __init__(self, schema: Any, words: Any, *, eta: int = 50, **parameters: Any) -> None:
        super().__init__(schema, words, **parameters)
        self.eta, self.gamma = eta, []  # type: ignore[var-annotated]

    def arrive(self, row: Any) -> None:
        cluster = self.best_selection(row)
        if cluster is None:
            cluster = Cluster()
            self.gamma.append(cluster)
        cluster.rows.append(row)

    def best_selection(self, row: Any) -> Any:
        if not self.gamma:
            return None
        growth = [self.growth(*self.around(c.rows), row.quasi, row.quasi) for c in self.gamma]  # type: ignore[call-arg]
        least = min(growth)
        nearest = [(c, g) for c, g in zip(self.gamma, growth, strict=True) if g <= least + TIE]
        fitting = [c for c, g in nearest if self.loss(*self.around(c.rows)) + g <= self.tau + TIE]
        if fitting:
            return min(fitting, key=lambda c: len(self.persons(c.rows)))
        if len(self.gamma) >= self.eta:
            return min((c for c, _ in nearest), key=lambda c: len(self.persons(c.rows)))
        return None

    def decide(self, row: Any) -> Any:
        cluster = next(c for c in self.gamma if row in c.rows)
        if not self.is_class(cluster.rows):
            if self.reuse_for(row):
                return self.remove(row, cluster)
            if not self.is_class(self.held):
                self.suppress(row)
                return self.remove(row, cluster)
        return self.output(self.merge(cluster), row)

    def remove(self, row: Any, cluster: Any) -> None:
        cluster.rows.remove(row)
        if not cluster.rows:
            self.gamma.remove(cluster)

    def merge(self, cluster: Any) -> Any:
        self.gamma.remove(cluster)
        rows = list(cluster.rows)
        lo, hi = self.around(rows)
        while not self.is_class(rows):
            best, least = None, math.inf
            for other in self.gamma:
                growth = self.growth(lo, hi, *self.around(other.rows))
                if growth < least - TIE:
                    best, least = other, growth
            self.gamma.remove(best)
            rows += best.rows  # type: ignore[union-attr]
            lo, hi = self.around(rows)
        return rows

    def output(self, rows: Any, expiring: Any) -> None:
        parts = [rows]
        if len(self.persons(rows)) >= 2 * self.k:
            parts = self.split_l(rows) if self.l > 1 else self.split_k(rows)
        left = []
        for part in parts:
            keep, stay = self.within_share(part, expiring)
            if stay and not self.diverse(keep):
                keep, stay = [], part
            if keep:
                self.release(keep)
            left += stay
        if expiring in left:
            left.remove(expiring)
            self.suppress(expiring)
        if left:
            self.gamma.append(Cluster(sorted(left, key=lambda row: row.number)))

    def pair(self, one: Any, other: Any) -> Any:
        lo, hi = self.around([one, other])
        return self.loss(lo, hi)

    def split_k(self, rows: Any) -> Any:
        buckets: dict[Any, Any] = {}
        for row in rows:
            buckets.setdefault(row.person, []).append(row)
        parts = []
        while sum(map(bool, buckets.values())) >= self.k:
            own = [bucket for bucket in buckets.values() if bucket][self.below(sum(map(bool, buckets.values())))]
            seed = own.pop(self.below(len(own)))
            near = []
            for order, (person, bucket) in enumerate(buckets.items()):
                if bucket and person != seed.person:
                    row = min(bucket, key=lambda row: self.pair(seed, row))
                    near.append((self.pair(seed, row), order, row))
            chosen = [row for _, _, row in sorted(near, key=lambda item: item[:2])[: self.k - 1]]
            for row in chosen:
                buckets[row.person].remove(row)
            parts.append([seed, *chosen])
        parts = [self.in_order(rows, part) for part in parts]
        return [self.in_order(rows, part) for part in self.assign(parts, [b for b in buckets.values() if b], rows)]

    @staticmethod
    def in_order(rows: Any, part: Any) -> Any:
        return [row for row in rows if row in part]

    def assign(self, parts: Any, buckets: Any, rows: Any) -> Any:
        """Add all rows of each bucket, in the order of their rows, to the part that its first row enlarges least."""
        boxes, target = [self.around(part) for part in parts], {}
        rest = [(row, index) for index, bucket in enumerate(buckets) for row in bucket]
        for row, bucket in sorted(rest, key=lambda item: rows.index(item[0])):
            if bucket not in target:
                growth = [self.growth(*box, row.quasi, row.quasi) for box in boxes]  # type: ignore[call-arg]
                target[bucket] = growth.index(min(growth))
            part = parts[target[bucket]]
            part.append(row)
            boxes[target[bucket]] = self.around(part)
        return parts

    def split_l(self, rows: Any) -> Any:
        by_person: dict[Any, Any] = {}
        for row in rows:
            by_person.setdefault(row.person, []).append(row)
        chosen = [own[skip] for own, skip in [(own, self.below(len(own))) for own in by_person.values()]]
        distinct = [list(dict.fromkeys(row.sensitive[a] for row in chosen)) for a in range(len(self.schema.sensitive))]
        scarce = min(range(len(distinct)), key=lambda a: len(distinct[a]))
        buckets = {value: [row for row in chosen if row.sensitive[scarce] == value] for value in distinct[scarce]}
        parts = []
        while sum(map(bool, buckets.values())) >= self.l and sum(map(len, buckets.values())) >= self.k:
            total = sum(map(len, buckets.values()))
            live = [bucket for bucket in buckets.values() if bucket]
            own = live[self.below(len(live))]
            part = [own.pop(self.below(len(own)))]
            for bucket in buckets.values():
                lo, hi = self.around(part)
                share = min(len(bucket), -(-self.k * len(bucket) // total))
                near = sorted(bucket, key=lambda row: self.growth(lo, hi, row.quasi, row.quasi))[:share]
                for row in near:
                    bucket.remove(row)
                part += near
            parts.append(part)
        if not parts:
            return [rows]
        parts = self.assign(parts, [[row] for bucket in buckets.values() for row in bucket], chosen)
        parts = [[row for row in rows if row.person in self.persons(part)] for part in parts]
        return self.unite_lacking(parts)

    def unite_lacking(self, parts: Any) -> Any:
        index = 0
        while index < len(parts) and len(parts) > 1:
            if self.diverse(parts[index]):
                index += 1
                continue
            mine = self.around(parts[index])
            growth = [
                math.inf if other == index else self.growth(*self.around(part), *mine)
                for other, part in enumerate(parts)
            ]
            low, high = sorted((index, growth.index(min(growth))))
            parts[low] = parts[low] + parts[high]
            parts[high] = parts[-1]
            parts.pop()
            index = min(index, low)
        return parts

    def flush(self) -> None:
        while self.held:
            full = next((c for c in self.gamma if self.is_class(c.rows)), None)
            if full is not None:
                self.gamma.remove(full)
                self.output(list(full.rows), full.rows[0])
                continue
            self.gamma = []
            rest = [row for row in list(self.held) if not self.reuse_for(row)]
            if self.is_class(rest):
                self.output(rest, rest[0])
            else:
                for row in rest:
                    self.suppress(row)


class DeadlineReference(Reference):
    keep_below = 0.6

    def __init__(self, schema: Any, words: Any, **parameters: Any) -> None:
        super().__init__(schema, words, **parameters)
        self.zeal = min(0.4, 0.6 / self.k**0.25)
        self.latest, self.tables = [], None  # type: ignore[var-annotated]

    def arrive(self, row: Any) -> None:
        self.latest = [*self.latest, row][-RECENT:]
        number = self.taken
        if number % RECENT == 0 or (64 <= number < RECENT and number & (number - 1) == 0):
            self.tables = [self.rarity_table(a) for a in range(len(self.schema.quasi))]  # type: ignore[assignment]
        if self.tables:
            row.rarity = round(self.zeal * sum(t[self.bin(a, row.quasi[a])] for a, t in enumerate(self.tables)))  # type: ignore[unreachable]

    def bin(self, attribute: Any, value: Any) -> Any:
        described = self.schema.quasi[attribute]
        if isinstance(described, Category):
            return int(value)
        width = described.high - described.low
        return int((value - described.low) * (1.0 / width if width > 0 else 0.0) * (BINS - 1) + 0.5)

    def units(self, attribute: Any, lo: Any, hi: Any) -> Any:
        return round(self.side_loss(attribute, lo, hi) * self.schema.weights[attribute] * UNIT)

    def rarity_table(self, attribute: Any) -> Any:
        described = self.schema.quasi[attribute]
        bins = [self.bin(attribute, row.quasi[attribute]) for row in self.latest]
        if isinstance(described, Category):
            far = [
                sum(self.units(attribute, min(leaf, b), max(leaf, b)) for b in bins) for leaf in range(described.size)
            ]
            return [round(total / len(bins)) for total in far]
        width = UNIT * self.schema.weights[attribute] / (BINS - 1)
        return [round(sum(abs(b - index) for b in bins) * width / len(bins)) for index in range(BINS)]

    def value(self, attribute: Any, value: Any) -> Any:
        described = self.schema.quasi[attribute]
        if isinstance(described, Category):
            return int(value)
        width = described.high - described.low
        scale = 1.0 / width if width > 0 else 0.0
        return round((value - described.low) * scale * self.schema.weights[attribute] * UNIT)

    def cost(self, attribute: Any, lo: Any, hi: Any, value: Any) -> Any:
        if isinstance(self.schema.quasi[attribute], Category):
            wider = self.units(attribute, min(lo, value), max(hi, value))
            return wider - self.units(attribute, lo, hi)
        return max(lo - value, 0) + max(value - hi, 0)

    def age(self, row: Any, seed: Any) -> Any:
        span = np.float32(256.0) / np.float32(self.taken - seed.number)
        return int(np.floor(np.float32(self.taken - 1 - row.number) * span))

    def worth(self, row: Any, seed: Any) -> Any:
        return row.rarity + int(np.floor(np.float32(row.rarity) * np.float32(self.age(row, seed)) / np.float32(1024.0)))

    def enlargement(self, box: Any, row: Any) -> Any:
        return sum(self.cost(a, lo, hi, self.value(a, row.quasi[a])) for a, (lo, hi) in enumerate(box))

    def score(self, box: Any, row: Any, seed: Any) -> Any:
        return self.enlargement(box, row) - self.worth(row, seed)

    def decide(self, row: Any, *, ending: bool = False) -> None:
        if self.reuse_for(row):
            return
        keep = []
        if self.is_class(self.held):
            members = self.gather(row)
            if len(self.held) > len(self.persons(self.held)):
                self.bring_along(members, row)
            if ending and len(self.persons(r for r in self.held if r not in members)) < self.k:
                members = list(self.held)
            keep, stay = self.within_share(members, row)
            if stay and not self.diverse(keep):
                keep = []
        if keep:
            self.release(keep)
        else:
            self.suppress(row)

    def gather(self, seed: Any) -> Any:
        members, box = [seed], [(self.value(a, v), self.value(a, v)) for a, v in enumerate(seed.quasi)]
        candidates: dict[Any, Any] = {}
        for row in self.held:
            if row.person != seed.person:
                key = self.score(box, row, seed), row.number
                if row.person not in candidates or key < candidates[row.person][0]:
                    candidates[row.person] = key, row
        candidates = [row for _, row in candidates.values()]  # type: ignore[assignment]
        while not self.is_class(members):
            lacking = len(self.persons(members)) >= self.k

            def brings(row: Any) -> Any:
                return any(
                    len({m.sensitive[a] for m in members}) < self.l
                    and row.sensitive[a] not in {m.sensitive[a] for m in members}
                    for a in range(len(self.schema.sensitive))
                )

            met = self.persons(members)
            for pool, of_member in ((candidates, False), (self.held, False), (self.held, True)):
                able = [r for r in pool if (r.person in met) == of_member and (not lacking or brings(r))]
                if able:
                    break
            best = min(able, key=lambda row: (self.score(box, row, seed), row.number))
            members.append(best)
            for a, value in enumerate(best.quasi):
                unit = self.value(a, value)
                box[a] = min(box[a][0], unit), max(box[a][1], unit)
        return members

    def bring_along(self, members: Any, seed: Any) -> None:
        """Further rows of the members' persons: inside the published box, or dearer to leave behind; and lost rows."""

        def further() -> Any:
            persons = dict.fromkeys(row.person for row in members)
            return [row for person in persons for row in self.held if row.person == person and row not in members]

        def join_inside() -> None:
            lo, hi = self.widened(*self.around(members))
            members.extend([row for row in further() if all(map(lambda v, a, b: a <= v <= b, row.quasi, lo, hi))])

        def lost(row: Any) -> Any:
            newcomers = len(self.persons(self.held)) * (256 - self.age(row, seed)) / 256
            return left + newcomers < self.k

        def join_dear(some: Any) -> None:
            for row in some:
                lo, hi = self.around(members)
                box = [(self.value(a, lo[a]), self.value(a, hi[a])) for a in range(len(lo))]
                if len(members) * self.enlargement(box, row) < (UNIT if lost(row) else self.worth(row, seed)):
                    members.append(row)

        join_inside()
        before, left = len(members), len(self.persons(row for row in self.held if row not in members))
        join_dear(further())
        if left < self.k:
            join_dear([row for row in self.held if row not in members and lost(row)])
        if len(members) > before:
            join_inside()

    def flush(self) -> None:
        while self.held:
            self.decide(self.held[0], ending=True)

"""A kind of data that nobody has heard of: who used which word. What leaves are words that k persons used."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, Field

from microdata import GuaranteeError, InfeasibleError, silent
from microdata.sinks import write_columns
from microdata.sources import column_chunks, reading
from service.policy import DataKind, PolicyProblem, register
from service.policy.data import Example, Refused, Verdict
from service.policy.file import Section
from service.report.figures import card, facts
from service.report.page import page
from static_algos import Catalogue, Parameters, parse

WORDS = Catalogue()  # type: ignore[var-annotated]


class WordsSection(Section):
    """Which field is what."""

    person: str = Field(description="who used a word")
    word: str = Field(description="the word")


@dataclass(frozen=True)
class Usage:
    """Every word that leaves was used by so many persons."""

    asked: int
    name = label = "usage"
    more_is_safer = True


class WordsGuarantee(Parameters):
    """So many persons for each word."""

    k: int = Field(ge=1, description="persons that used a word")

    def models(self, schema: Any) -> Any:
        return (Usage(self.k),)


@WORDS.register("common_words", WordsGuarantee)
class CommonWords:
    """Words that at least k persons used."""

    guarantees = (Usage,)

    def __init__(self, **given: Any) -> None:
        self.parameters = parse(WordsGuarantee, given)

    def models(self, schema: Any) -> Any:
        return self.parameters.models(schema)


class WordsReport(BaseModel):
    """What left."""

    data: Literal["words"] = "words"
    name: str
    seconds: float
    words: int
    left_out: int


@dataclass(frozen=True)
class CommonUse:
    """Words with the number of their persons."""

    rows: int
    published: dict  # type: ignore[type-arg]
    left_out: int
    verdict: Verdict
    warnings = ()


@dataclass(frozen=True)
class WordsCheck:
    """What a table says about a policy."""

    rows: int
    problems: tuple  # type: ignore[type-arg]
    refused: tuple[Refused, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class WordsGuess:
    """A column's role."""

    name: str
    role: str
    reason: str = "its name says so"


@dataclass(frozen=True)
class WordsProposal:
    """A policy for a table of words."""

    text: str
    guesses: tuple  # type: ignore[type-arg]
    warnings = ()

    def write(self, directory: Any) -> Any:
        """Write it."""
        path = directory / "policy.yaml"
        path.write_text(self.text)
        return path


class Words(DataKind):
    """Who used which word."""

    name = "words"
    section = WordsSection
    guarantee = WordsGuarantee
    algorithms = WORDS
    report_model = WordsReport

    def schema(self, section: Any, beside: Any, problems: Any) -> Any:
        if section.person == section.word:
            problems.append(PolicyProblem("schema.word", "must be another field than the person's"))
        return section

    def fields(self, schema: Any) -> Any:
        return (schema.person, schema.word)

    def identity(self, schema: Any) -> Any:
        return schema.model_dump()

    def check_feasible(self, models: Any, schema: Any) -> None:
        """Any domain will do."""

    def anonymize(self, policy: Any, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        k, used = policy.algorithm().parameters.k, self._used(policy, table, progress)
        counts = {word: len(persons) for word, persons in used.items()}
        kept = {word: count for word, count in counts.items() if count >= k}
        if not kept:
            raise InfeasibleError("no word has so many persons", parameter="k", nearest=max(counts.values()))
        verdict = self._verdict(policy, kept, counts)
        if not verdict.holds:
            raise GuaranteeError(verdict.failures)
        return CommonUse(sum(counts.values()), kept, len(counts) - len(kept), verdict)

    def write(
        self, policy: Any, result: Any, out: Any, *, links: Any = None, seed: Any = None, progress: Any = silent
    ) -> None:
        del links
        columns = pa.table({"word": list(result.published), "persons": list(result.published.values())})
        write_columns(columns.schema, columns.to_batches(), out)

    def report(self, policy: Any, result: Any, *, seconds: Any, repeatable: bool = False) -> Any:
        words, left_out = len(result.published), result.left_out
        return WordsReport(name=policy.name, seconds=seconds, words=words, left_out=left_out)

    def page(self, report: Any) -> Any:
        lines = [("published", str(report.words)), ("left out", str(report.left_out))]
        return page(f"Words: {report.name}", card("Words", "How many leave.", facts(("words", "number"), lines)))

    def audit(self, policy: Any, published: Any, basis: Any, *, progress: Any = silent) -> Any:
        used = self._used(policy, basis["original"], progress)
        claimed = self._columns(published, ("word", "persons"))
        counts = {word: len(persons) for word, persons in used.items()}
        return self._verdict(policy, {word: int(count) for word, count in claimed}, counts)

    def check(self, policy: Any, table: Any, *, progress: Any = silent) -> Any:
        used = self._used(policy, table, progress)
        most = max(map(len, used.values()))
        wrong = PolicyProblem("guarantee.k", "no word has so many persons", nearest=most)
        return WordsCheck(sum(map(len, used.values())), (wrong,) if most < policy.parameters.k else ())

    def propose(self, sample: Any, name: Any) -> Any:
        if set(sample.columns.column_names) != {"person", "word"}:
            return None
        schema = "schema: {person: person, word: word}"
        text = f"name: {name}\ndata: words\n{schema}\nguarantee: {{algorithm: common_words, k: 2}}\n"
        return WordsProposal(text, (WordsGuess("person", "person"), WordsGuess("word", "word")))

    def examples(self) -> Iterator[Any]:
        schema, guarantee = {"person": "p", "word": "w"}, {"algorithm": "common_words", "k": 2}
        policy = {"name": "words", "data": "words", "schema": schema, "guarantee": guarantee}
        yield Example(policy, "p,w\n1,tea\n2,tea\n")

    def _used(self, policy: Any, path: Any, progress: Any) -> Any:
        used = defaultdict(set)
        for person, word in self._columns(path, self.fields(policy.schema)):
            used[word].add(person)
        progress("read", len(used), len(used))
        return used

    def _columns(self, path: Any, names: Any) -> Iterator[Any]:
        with reading(path):
            for chunk in column_chunks(path, names):
                yield from zip(*(chunk.columns.column(name).to_pylist() for name in names), strict=True)

    def _verdict(self, policy: Any, claimed: Any, counts: Any) -> Any:
        (model,) = policy.models()
        least = min((counts.get(word, 0) for word in claimed), default=0)
        false = sum(counts.get(word, 0) != count for word, count in claimed.items())
        holds = least >= model.asked and not false
        finding = {"model": model.label, "asked": model.asked, "achieved": least, "holds": least >= model.asked}
        faults = [{"kind": "false", "count": false, "reason": "counts are not true"}] if false else []
        outcome: Any = "holds" if holds else "does not hold"
        data = {"holds": holds, "outcome": outcome, "findings": [finding], "faults": faults}
        data["published_words"] = len(claimed)
        return Verdict(
            outcome=outcome,
            failures="" if holds else f"usage of {model.asked} is {least}, {false} counts are not true",
            findings=[(model.label, str(model.asked), str(least), "yes" if finding["holds"] else "NO")],
            faults=[f"{fault['count']} {fault['reason']}" for fault in faults],
            notes=[f"{len(claimed)} words"],
            data=data,
            shown={**data, "findings": [{**finding, "failing": 0, "more_is_safer": True}]},
        )


register(Words())

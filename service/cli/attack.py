"""`portcullis attack`: what an attacker gets of something that is already published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from service.cli.findings import say_attacks, warn_of_attacks
from service.cli.output import progress_bar, say, say_json, say_table, warn
from service.cli.stream_topics import read_input, read_output
from service.exit_status import GUARANTEE_FAILED
from service.kafka import connect
from service.kafka.flags import Bootstrap, ClientName, SettingsFile, kafka_settings
from service.policy import Policy, load_policy
from service.report import Attacked, conditions, needs_control
from service.settings import read_settings_file


def attack(
    policy: Annotated[Path, typer.Argument(help="Policy that it was published under.")],
    original: Annotated[Path | None, typer.Option(help="The table or events that were anonymized.")] = None,
    published: Annotated[Path | None, typer.Option(help="What was published of them.")] = None,
    links: Annotated[
        Path | None,
        typer.Option(help="What `anonymize --links` or `replay --links` kept: then it is known which row is whose."),
    ] = None,
    fail_below: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Of a stream: exit with status 1 if an attack leaves fewer than this many persons who could be meant.",
        ),
    ] = None,
    topic: Annotated[
        bool, typer.Option("--topic", help="Attack the policy's output topic, with its input topic as the original.")
    ] = False,
    purpose: Annotated[str | None, typer.Option(help="Which of the policy's purposes it was for.")] = None,
    bootstrap: Bootstrap = None,
    client: ClientName = None,
    settings_file: SettingsFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Attack what is already published, as its owner: a table, the output of a replay, or a topic of a rehearsal.

    Exit status 1 if an attack on a table gets more than the policy allows (`attacks`), if an attack on a stream leaves
    fewer persons than `--fail-below`, or if the file cannot have been made from the original. Without `--fail-below` a
    stream has no condition: the command warns instead.
    """
    loaded = load_policy(policy, purpose=purpose)
    if topic == (original is not None or published is not None) or (original is None) != (published is None):
        raise typer.BadParameter("say --topic, or --original and --published")
    if links is not None and (topic or not loaded.data.keeps_links):
        raise typer.BadParameter("only a file that anonymize or replay wrote has links", param_hint="--links")
    if fail_below is not None and loaded.kind != "stream":
        raise typer.BadParameter(
            "is for streams; say in the policy how far attacks on a table may get (attacks)", param_hint="--fail-below"
        )
    with progress_bar() as progress, TemporaryDirectory() as folder:
        if original is not None and published is not None:
            found: Attacked = loaded.data.attack(loaded, original, published, links=links, progress=progress)
        else:
            read_settings_file(settings_file)
            broker = connect(kafka_settings(bootstrap, client))
            lines = Path(folder) / "left.jsonl"
            ticks = read_output(broker, loaded, lines, progress)
            events = read_input(broker, loaded, progress)
            found = loaded.data.attack(loaded, events, lines, ticks=ticks, progress=progress)
    if as_json:
        say_json(found.model_dump(mode="json"))
    else:
        _say(found)
    _judge(loaded, found, fail_below)


def _say(found: Attacked) -> None:
    if found.attacks:
        lines = [
            (
                one.attack,
                one.attribute or "",
                f"{one.before:.1%}",
                f"{one.after:.1%}",
                f"{one.baseline:.1%}",
            )
            for one in found.attacks
        ]
        say_table(("attack", "of", "before", "after", "without it"), lines)
    if found.tried:
        trials = [
            (
                one.attack,
                one.attribute or "",
                f"{one.after:.1%}",
                f"{one.control:.1%}",
                f"{one.risk:.1%} ({one.risk_low:.1%} to {one.risk_high:.1%})",
            )
            for one in found.tried
        ]
        say_table(("with a control", "of", "in the table", "not in it", "the table adds"), trials)
    say_attacks(found.linked, found.timing)
    if not found.unplaced:
        say(f"{found.rows} published rows: all have a row in the original, {found.certain:.1%} for certain")


def _judge(policy: Policy, found: Attacked, fail_below: int | None) -> None:
    """Exit with status 1 if a condition fails: what the policy allows on a table, or `fail_below` on a stream.

    A file that cannot have been made from the original fails before any condition.
    """
    if found.unplaced:
        warn(
            f"the file is not a release of this original: {found.unplaced} of {found.rows} published rows have no row "
            "of their own there, with the same values and inside of the published box"
        )
        raise typer.Exit(GUARANTEE_FAILED)
    if fail_below is None:
        warn_of_attacks(found.linked, found.timing, "--fail-below makes this a failure")
    elif found.linked is None and found.timing is None and found.rows:
        raise typer.BadParameter(
            "nothing was attacked: every event is about another person, and nobody knows when a row was published",
            param_hint="--fail-below",
        )
    else:
        few = [f"{attack} leaves {left}" for attack, left in _fewest(found) if left < fail_below]
        if few:
            warn(f"an attack leaves fewer than {fail_below} persons who could be meant: {'; '.join(few)}")
            raise typer.Exit(GUARANTEE_FAILED)
    wrong = [one.failure for one in conditions(policy.attacks, found.attacks, found.tried) if not one.holds]
    if found.attacks and needs_control(policy.attacks) and not found.tried:
        wrong.append("attacks with a control cannot be tried on so few persons")
    if wrong:
        warn("an attack gets more than the policy allows: " + "; ".join(wrong))
        raise typer.Exit(GUARANTEE_FAILED)


def _fewest(found: Attacked) -> Iterator[tuple[str, int]]:
    """The persons whom each attack on a stream leaves for one of its victims, the victim included."""
    if found.linked is not None:
        yield "tying the rows of a person together", found.linked.fewest
    if found.timing is not None:
        yield "knowing when a person acted", found.timing.fewest + 1

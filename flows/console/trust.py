"""Confirmation of a run's settings on the command line, by ``--trust NAME,…`` or at a prompt."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

from coevo.configs.errors import CoevoError
from coevo.configs.run import RunConfig
from coevo.configs.trust import Setting, chosen
from coevo.flows.console import output
from coevo.flows.console.options import workspace_of
from coevo.flows.history.reference import Reference, reading
from coevo.lineage.trust import described
from coevo.lineage.workspace import Workspace


def trust_run(place: Workspace, run: str, config: RunConfig, names: str | None, ask: bool = True) -> None:
    """Require that a user has confirmed the settings that a command is about to act on, as ``confirm_run`` does."""
    confirm_run(place, run, config, names, ask)
    place.trust.demand(run, config)


def confirm_run(place: Workspace, run: str, config: RunConfig, names: str | None, ask: bool = True) -> None:
    """Require that a user has confirmed the settings of a run. Nothing that they name needs to exist here.

    Args:
        place: the workspace.
        run: name of the run.
        config: configuration of the run, or of one of its revisions.
        names: settings that the user confirms by this command, separated by commas.
        ask: True to prompt for the other settings on a terminal.

    Raises:
        CoevoError: a setting is not confirmed, or a name matches none.
    """
    place.trust.confirm(run, named(list(chosen(config)), names.split(",") if names else (), run))
    left = place.trust.open_questions(run, config)
    if left and ask and sys.stdin.isatty() and sys.stdout.isatty():
        _ask(run, left)
        place.trust.confirm(run, left)
    place.trust.require(run, config)


def trust_revision(place: Workspace, reference: str, names: str | None, ask: bool = True) -> None:
    """Confirm the settings of ``RUN[@N]``, by the configuration of that revision."""
    with reading(reference, place) as opened:
        run, config = opened.paths.name, opened.config
    trust_run(place, run, config, names, ask)


def trust_served(place: Workspace, what: str, names: str | None) -> None:
    """Confirm the settings of a run to serve; a registered model was confirmed when its run was packaged."""
    if "/" not in what and place.run(Reference.parse(what).run).created.is_file():
        trust_revision(place, what, names)


def trust(reference: str, names: Iterable[str], *, workspace: Path | str | None = None) -> None:
    """Confirm settings of a run from elsewhere, as ``--trust`` does, so that coevo may act on their values.

    Args:
        reference: ``RUN`` or ``RUN@N``, whose values are confirmed.
        names: names of the settings, in full or by their end, such as ``engine.python``.
        workspace: directory of the runs.

    Raises:
        CoevoError: the revision or a setting does not exist, or settings remain unconfirmed.
    """
    trust_revision(workspace_of(workspace), reference, ",".join(names), ask=False)


def named(settings: Sequence[Setting], names: Iterable[str], run: str) -> list[Setting]:
    """Find settings by their name, in full or by its end, such as ``engine.python``.

    Raises:
        CoevoError: a name matches none of them, or several.
    """
    return [_named(settings, name.strip(), run) for name in names]


def _named(settings: Sequence[Setting], name: str, run: str) -> Setting:
    found = [each for each in settings if f".{each.name}".endswith(f".{name}")]
    if len(found) != 1:
        known = ", ".join(each.name for each in found or settings) or "none"
        fault = "several settings match that name" if found else "no setting to confirm matches that name"
        raise CoevoError(f"--trust {name!r}: {fault}; settings of run {run!r}: {known}")
    return found[0]


def _ask(run: str, settings: Iterable[Setting]) -> None:
    """Prompt for each setting; nothing is recorded unless all are confirmed."""
    output.line(
        f"Run {run} comes from elsewhere, or its settings have changed. Confirm the settings that coevo may act on:"
    )
    for each in settings:
        output.line(f"  {described(each)}")
        if not typer.confirm(f"Trust {each.name}?"):
            raise CoevoError(f"run {run!r}: {each.name} is not confirmed, so nothing was started")

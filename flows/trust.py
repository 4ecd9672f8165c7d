"""Confirming a run's settings on the command line: by ``--trust NAME,…``, or when asked on a terminal."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

from configs.errors import CoevoError
from configs.run import RunConfig
from configs.trust import Setting, chosen
from flows import output
from flows.reference import Reference, reading
from flows.settings import workspace_of
from lineage.trust import described
from lineage.workspace import Workspace


def trust_run(place: Workspace, run: str, config: RunConfig, names: str | None, ask: bool = True) -> None:
    """Make sure that a user has confirmed what a command is about to act on.

    Args:
        place: the workspace.
        run: name of the run.
        config: of the run, or of one of its revisions.
        names: of the settings that the user confirms by this command, separated by commas.
        ask: whether to ask for the others where there is a terminal.

    Raises:
        CoevoError: a setting is not confirmed, or there is none of a name.
    """
    place.trust.confirm(run, named(list(chosen(config)), names.split(",") if names else (), run))
    left = place.trust.open_questions(run, config)
    if left and ask and sys.stdin.isatty() and sys.stdout.isatty():
        _ask(run, left)
        place.trust.confirm(run, left)
    place.trust.demand(run, config)


def trust_revision(place: Workspace, reference: str, names: str | None, ask: bool = True) -> None:
    """The same for ``RUN[@N]``, by the configuration of that revision."""
    with reading(reference, place) as opened:
        run, config = opened.paths.name, opened.config
    trust_run(place, run, config, names, ask)


def trust_served(place: Workspace, what: str, names: str | None) -> None:
    """The same for what `coevo serve` is given; a registered model was confirmed when its run was packaged."""
    if "/" not in what and place.run(Reference.parse(what).run).created.is_file():
        trust_revision(place, what, names)


def trust(reference: str, names: Iterable[str], *, workspace: Path | str | None = None) -> None:
    """Confirm settings of a run from elsewhere, as ``--trust`` does: coevo may act on their values from now on.

    Args:
        reference: ``RUN`` or ``RUN@N``, whose values are confirmed.
        names: of the settings, in full or by their end, such as ``engine.python``.
        workspace: where runs live.

    Raises:
        CoevoError: there is no such revision or setting, or settings are left that nobody has confirmed.
    """
    trust_revision(workspace_of(workspace), reference, ",".join(names), ask=False)


def named(settings: Sequence[Setting], names: Iterable[str], run: str) -> list[Setting]:
    """The settings that are named in full or by the end of their name, such as ``engine.python``.

    Raises:
        CoevoError: a name belongs to none of them, or to several.
    """
    return [_named(settings, name.strip(), run) for name in names]


def _named(settings: Sequence[Setting], name: str, run: str) -> Setting:
    found = [each for each in settings if f".{each.name}".endswith(f".{name}")]
    if len(found) != 1:
        known = ", ".join(each.name for each in found or settings) or "none"
        fault = "several settings are called so" if found else "there is nothing to confirm under that name"
        raise CoevoError(f"--trust {name!r}: {fault}; settings of run {run!r}: {known}")
    return found[0]


def _ask(run: str, settings: Iterable[Setting]) -> None:
    """Show each setting and ask for it; nothing is recorded unless all are confirmed."""
    output.line(f"Run {run} comes from elsewhere, or its settings have changed. Confirm what coevo is to act on:")
    for each in settings:
        output.line(f"  {described(each)}")
        if not typer.confirm(f"Trust {each.name}?"):
            raise CoevoError(f"run {run!r}: {each.name} is not confirmed, so nothing was started")

"""Confirmation of a run's settings on the command line, by ``--trust NAME,…`` or at a prompt."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from coevo.configs.trust_settings import Setting, chosen
from coevo.flows.console import output
from coevo.flows.console.options import workspace_of
from coevo.flows.history.revision_reference import Reference, reading
from coevo.lineage.trust import Consent, Trust, described
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.reporter import reporter
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.configs.run_config import RunConfig


def trust_run(workspace: Workspace, run: str, config: "RunConfig", names: str | None, ask: bool = True) -> None:
    """Require that a user has confirmed the settings that a command is about to act on, as ``confirm_run`` does."""
    confirm_run(workspace, run, config, names, ask)
    workspace.trust.demand(run, config)


def confirm_run(workspace: Workspace, run: str, config: "RunConfig", names: str | None, ask: bool = True) -> None:
    """Require that a user has confirmed the settings of a run. Nothing that they name needs to exist here.

    Args:
        workspace: the workspace.
        run: name of the run.
        config: configuration of the run, or of one of its revisions.
        names: settings that the user confirms by this command, separated by commas.
        ask: True to prompt for the other settings on a terminal.

    Raises:
        CoevoError: a setting is not confirmed, or a name matches none.
    """
    settings = list(chosen(config))
    workspace.trust.confirm(run, named(settings, names.split(",") if names else (), run))
    _confirm_the_rest(workspace.trust, run, settings, ask)


def consent_by(names: str | None, ask: bool = True) -> Consent:
    """Consent to settings of registered versions, by ``--trust`` or at a prompt; a name holds for all that have it."""

    def consent(trust: Trust, settings: Mapping[str, Sequence[Setting]]) -> None:
        wanted = [name.strip() for name in names.split(",")] if names else []
        every = list({each.name: each for found in settings.values() for each in found}.values())
        chosen_names = {each.name for each in named(every, wanted, " and ".join(settings))}
        for version, found in settings.items():
            trust.confirm(version, [each for each in found if each.name in chosen_names])
            _confirm_the_rest(trust, version, found, ask)

    return consent


def _confirm_the_rest(trust: Trust, name: str, settings: Sequence[Setting], ask: bool) -> None:
    """Ask for the settings that are not confirmed yet, where there is a terminal, and require all of them."""
    left = trust.unconfirmed(name, settings)
    if left and ask and sys.stdin.isatty() and sys.stdout.isatty():
        _ask(name, left)
        trust.confirm(name, left)
    trust.require_settings(name, settings)


def trust_revision(workspace: Workspace, reference: str, names: str | None, ask: bool = True) -> None:
    """Confirm the settings of ``RUN[@N]``, by the configuration of that revision."""
    with reading(reference, workspace) as opened:
        run, config = opened.paths.name, opened.config
    trust_run(workspace, run, config, names, ask)


def trust_served(workspace: Workspace, what: str, names: str | None) -> None:
    """Confirm the settings of a run to serve; those of a registered version are confirmed once it is fetched."""
    if "/" not in what and workspace.run(Reference.parse(what).run).created.is_file():
        trust_revision(workspace, what, names)


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
        raise CoevoError(f"--trust {name!r}: {fault}; settings of {run!r}: {known}")
    return found[0]


def _ask(run: str, settings: Iterable[Setting]) -> None:
    """Prompt for each setting; nothing is recorded unless all are confirmed."""
    kind = "Model" if "/" in run else "Run"
    reporter().note("")  # no step is reported while the user reads
    output.line(
        f"{kind} {run} comes from elsewhere, or its settings have changed. Confirm the settings that coevo may act on:"
    )
    for each in settings:
        output.line(f"  {described(each)}")
        if not typer.confirm(f"Trust {each.name}?"):
            raise CoevoError(f"{kind.lower()} {run!r}: {each.name} is not confirmed, so nothing was started")

"""The Python API: what the ``coevo`` command does, as functions that return values; ``coevo`` re-exports it.

Every function takes ``workspace``, the directory where runs live; without one it is that of ``COEVO_WORKSPACE``, else
``workspace`` here. ``RUN[@N]`` names a run and one of its revisions, by number or tag; the last one where none is
given. A mistake raises ``CoevoError`` with the one line that the command would print.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from flows.settings import workspace_of as _place
from lineage.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

    from flows.evaluate import Evaluation
    from flows.package import Promotion
    from flows.serving import Serving

Place = Path | str | None


def run(
    recipe: str,
    overrides: Mapping[str, object] | None = None,
    *,
    name: str | None = None,
    quiet: bool = False,
    workspace: Place = None,
) -> str:
    """Start a run and play it to its end, as ``coevo run`` does, or until it waits for a person (see ``waiting``).

    Args:
        recipe: name of a shipped recipe, or path of a ``.yaml`` file.
        overrides: settings to change by dotted key, for example ``{"seed": 11, "bank.retrieval.k": 2}``.
        name: of the run; ``<recipe>-<n>`` where none is given.
        quiet: show no progress.
        workspace: where runs live.

    Returns:
        Name of the run.

    Raises:
        CoevoError: the recipe, a setting or the name cannot be used, or no revision was committed.
    """
    import json

    from configs.load import load_recipe

    config = load_recipe(recipe, [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()])
    place = _place(workspace)
    paths = place.create(name or place.next_name(config.recipe), config)
    return _operate(paths.name, place, quiet)


def resume(
    run: str,
    iterations: int | None = None,
    *,
    accept_change: bool = False,
    quiet: bool = False,
    workspace: Place = None,
) -> str:
    """Continue a run from its last revision, as ``coevo resume`` does.

    Args:
        run: its name.
        iterations: its new length; as it was where None.
        accept_change: go on although settings, code or packages have changed.
        quiet: show no progress.
        workspace: where runs live.

    Returns:
        Name of the run.

    Raises:
        CoevoError: there is no such run, another process writes to it, a setting is not confirmed, or code or
            settings have changed.
    """
    return _operate(run, _place(workspace), quiet, accept_change, iterations)


def runs(*, workspace: Place = None) -> "pd.DataFrame":
    """The runs of a workspace, oldest first: ``run``, ``recipe``, ``revision``, ``iteration``, success, seconds.

    ``state`` is ``finished``, ``unfinished``, ``waiting`` (for a person), ``running`` (``process`` says which writes to
    it) or ``faulty`` (``fault`` says why it cannot be read).
    """
    import pandas as pd

    from flows.commands.inspect import RUN_COLUMNS, run_rows

    return pd.DataFrame(run_rows(_place(workspace)), columns=RUN_COLUMNS).set_index("run")


def log(reference: str, *, workspace: Place = None) -> "pd.DataFrame":
    """The figures of every revision up to ``RUN[@N]``: one row a revision, one column a figure.

    Raises:
        CoevoError: there is no such run or revision.
    """
    import pandas as pd

    from flows.reference import reading
    from tasks.tracking.publication import figures

    with reading(reference, _place(workspace)) as opened:
        rows = [{"revision": each.revision, "iteration": each.iteration, **figures(each)} for each in opened.history]
    return pd.DataFrame(rows).set_index("revision")


def bank(reference: str, *, workspace: Place = None) -> "pd.DataFrame":
    """The active entries of ``RUN[@N]`` with their counters: one row an entry, by id.

    Raises:
        CoevoError: there is no such revision, it was dropped, or the run has no bank.
    """
    import pandas as pd

    from flows.reference import reading
    from memory.stats import Stats
    from records.arrow import ENTRIES

    with reading(reference, _place(workspace)) as opened:
        found = opened.bank()
        entries, stats = found.active(), found.stats()
    rows = [asdict(entry) | asdict(stats.get(entry.id, Stats(entry.id))) for entry in entries]
    columns = [name for name in (*ENTRIES.names, *Stats.__slots__) if name != "id"]
    return pd.DataFrame(rows, columns=["id", *columns]).set_index("id")


def evaluate(
    reference: str,
    panel: str = "seen-houses",
    *,
    tasks: int | None = None,
    bank: str = "own",
    discovery: int = 0,
    through: str | None = None,
    workspace: Place = None,
) -> "Evaluation":
    """Play a held-out panel with the policy of ``RUN[@N]``; the bank is read-only, and the run is left as it is.

    Args:
        reference: the revision.
        panel: name of the panel.
        tasks: how many of its tasks; as in the run's own evaluations where None.
        bank: ``own``, ``none``, ``random``, or ``OTHER[@M]``.
        discovery: attempts at each task (k of Discovery@k); 0 for one attempt and no writing.
        through: URL of ``coevo serve``, whose agent then plays with its own policy and bank.
        workspace: where runs live.

    Returns:
        Its ``success`` and ``stderr``, and the ``episodes``.

    Raises:
        CoevoError: one of them is not there.
    """
    from flows.evaluate import Request, evaluate_revision
    from flows.serving import evaluate_through

    place, request = _place(workspace), Request(panel, tasks, bank, discovery)
    if through is not None:
        return evaluate_through(through, reference, request, place)
    return evaluate_revision(reference, request, place)


def compare(*references: str, workspace: Place = None) -> "pd.DataFrame":
    """Paired differences of runs from the first: one row a panel at the end, and once for each kind of equal expense.

    Returns:
        A frame with the columns of ``flows.comparison.Difference``; no bounds where the tasks are not the same.

    Raises:
        CoevoError: one of them is malformed or not there.
    """
    from flows.comparison import compared
    from flows.frames import differences

    return differences(compared(references, _place(workspace)))


def curves(*references: str, workspace: Place = None) -> "pd.DataFrame":
    """Held-out success of runs over the episodes, tokens and seconds that they had spent: one row an evaluation.

    Raises:
        CoevoError: one of them is malformed or not there.
    """
    from flows import frames
    from flows.comparison import compared

    return frames.curves(compared(references, _place(workspace)))


def package(reference: str, model: str | None = None, *, workspace: Place = None) -> str:
    """Register policy, bank and settings of ``RUN[@N]`` as the next version of a model, as ``coevo package`` does.

    Returns:
        ``MODEL/VERSION``.

    Raises:
        CoevoError: there is no such revision, or MLflow does not take it.
    """
    from flows.package import register_revision

    return register_revision(reference, model, _place(workspace))[0].name


def promote(
    version: str,
    panel: str | None = None,
    *,
    tasks: int | None = None,
    margin: float = 0.0,
    seed: int = 0,
    workspace: Place = None,
) -> "Promotion":
    """Make ``MODEL/VERSION`` the champion of its model, if it plays better than the present one.

    Returns:
        Whether it ``passed``, and the ``verdict`` with the paired difference and its interval.

    Raises:
        CoevoError: it is not there, or the two do not play the same tasks.
    """
    from flows.package import promote as decide

    return decide(version, panel, tasks, margin, seed, _place(workspace))


def waiting(*, workspace: Place = None) -> "pd.DataFrame":
    """What waits for a person: one row an admission or a promotion, ``says`` holding all there is to know of it."""
    import pandas as pd

    from flows import approve

    rows = [asdict(each) for each in approve.waiting(_place(workspace))]
    return pd.DataFrame(rows, columns=["what", "kind", "since", "says"]).set_index("what")


def approve(what: str, *, reject: bool = False, by: str | None = None, workspace: Place = None) -> str:
    """Say yes, or no, to what waits for a person, as ``coevo approve`` does.

    Args:
        what: ``RUN[@N]`` or ``MODEL/VERSION``.
        reject: say no.
        by: who decides; the login name where None.
        workspace: where runs live.

    Returns:
        The revision that holds the decision, or the version.

    Raises:
        CoevoError: it does not wait, or another process writes to the run.
    """
    from getpass import getuser

    from flows.approve import decide_model, decide_run, is_promotion
    from tasks.waiting import Vote

    vote, place = Vote(not reject, by or getuser()), _place(workspace)
    if is_promotion(what):
        return decide_model(what, vote, place)
    made = decide_run(what, vote, place)
    return f"{what.partition('@')[0]}@{made.revision}"


@contextmanager
def serve(
    what: str, *, host: str = "127.0.0.1", port: int | None = None, workspace: Place = None
) -> "Iterator[Serving]":
    """Serve ``RUN[@N]``, ``MODEL/VERSION`` or ``MODEL@ALIAS`` within a ``with`` block, as ``coevo serve`` does.

    Yields:
        Its ``name`` and ``url``.

    Raises:
        CoevoError: it is not there, the port is taken, or the server did not start.
    """
    from flows.endpoint.limits import DEFAULT
    from flows.serving import Address
    from flows.serving import serve as serving

    with serving(what, Address(host, port), DEFAULT, _place(workspace)) as served:
        yield served


def _operate(
    name: str, place: Workspace, quiet: bool, accept_change: bool = False, iterations: int | None = None
) -> str:
    from flows.operate import operate
    from flows.output import console

    operate(place, place.existing(name), console(quiet=quiet), accept_change, iterations=iterations)
    return name

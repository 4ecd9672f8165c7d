"""The Python API: the functions of the ``coevo`` command with return values; ``coevo`` re-exports it.

Every function takes ``workspace``, the directory of runs; by default that of ``COEVO_WORKSPACE``, else ``workspace`` in
the current directory. ``RUN[@N]`` names a run and one of its revisions, by number or tag; by default the last one.
Wrong arguments raise ``CoevoError`` with the line that the command would print.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from coevo.flows.console.options import as_typed, workspace_of
from coevo.utilities.extras import extras_named

if TYPE_CHECKING:
    import pandas as pd

    from coevo.configs.load.pairing import Pairing
    from coevo.flows.evaluation.panel_evaluation import Evaluation
    from coevo.flows.from_rows import GivenEnvironment
    from coevo.flows.packages.promotion import Promotion
    from coevo.flows.packages.serving import Serving

WorkspacePath = Path | str | None


@extras_named()
def run(
    recipe: "str | Pairing",
    overrides: Mapping[str, object] | None = None,
    *,
    env: "GivenEnvironment | None" = None,
    name: str | None = None,
    quiet: bool = False,
    workspace: WorkspacePath = None,
) -> str:
    """Start a run and play it to its end, like ``coevo run``, or until it is pending approval (see ``waiting``).

    Args:
        recipe: name of a shipped recipe, path of a ``.yaml`` file, or ``coevo.Pairing("webshop", "grpo", "./model")``.
        overrides: settings to change by dotted key, for example ``{"seed": 11, "bank.retrieval.k": 2}``.
        env: environment in place of the recipe's, from ``coevo.from_rows``, ``coevo.from_gymnasium`` and the like.
        name: name of the run; ``<recipe>-<n>`` by default, of a pairing ``ENV_METHOD_MODEL-<n>``.
        quiet: show no progress.
        workspace: directory of runs.

    Returns:
        Name of the run.

    Raises:
        CoevoError: the recipe, the pairing, a setting or the name is not valid, this machine cannot play the run, or no
            revision was committed.
    """
    from coevo.flows.configure import configure, configure_pairing

    given = as_typed({**({} if env is None else env.settings()), **(overrides or {})})
    config = configure(recipe, given) if isinstance(recipe, str) else configure_pairing(recipe, given)
    opened = workspace_of(workspace)
    from coevo.flows.start_run import RunOptions, start_run

    return start_run(config, opened, name, RunOptions(quiet=quiet)).run


@extras_named()
def resume(
    run: str,
    iterations: int | None = None,
    *,
    accept_change: bool = False,
    quiet: bool = False,
    workspace: WorkspacePath = None,
) -> str:
    """Continue a run from its last revision, like ``coevo resume``.

    Args:
        run: name of the run.
        iterations: new total number of iterations; unchanged if None.
        accept_change: continue although settings, code or packages have changed.
        quiet: show no progress.
        workspace: directory of runs.

    Returns:
        Name of the run.

    Raises:
        CoevoError: the run does not exist, another process writes to it, a setting is not confirmed, or code or
            settings have changed.
    """
    opened = workspace_of(workspace)
    from coevo.flows.start_run import RunOptions, resume_run

    return resume_run(run, opened, RunOptions(quiet=quiet, iterations=iterations, accept_change=accept_change)).run


@extras_named()
def runs(*, workspace: WorkspacePath = None) -> "pd.DataFrame":
    """The runs of a workspace, oldest first: ``run``, ``recipe``, ``revision``, ``iteration``, success, seconds.

    ``status`` is ``running`` (``process`` is the one that writes to it), ``waiting`` (for approval), ``finished``,
    ``stopped``, ``crashed``, ``new`` (no revision yet) or ``faulty`` (``fault`` is the reason).
    """
    import pandas as pd

    from coevo.flows.history.run_summaries import COLUMNS, run_rows

    return pd.DataFrame(run_rows(workspace_of(workspace)), columns=COLUMNS).set_index("run")


@extras_named()
def log(reference: str, *, workspace: WorkspacePath = None) -> "pd.DataFrame":
    """Metrics of every revision up to ``RUN[@N]``: one row per revision, one column per metric.

    Raises:
        CoevoError: the run or revision does not exist.
    """
    import pandas as pd

    from coevo.flows.history.revision_reference import reading
    from coevo.tasks.publish.mlflow.publication import figures

    with reading(reference, workspace_of(workspace)) as opened:
        rows = [{"revision": each.revision, "iteration": each.iteration, **figures(each)} for each in opened.history]
    return pd.DataFrame(rows).set_index("revision")


@extras_named()
def episodes(
    reference: str, *, training: bool = False, failed: bool = False, workspace: WorkspacePath = None
) -> "pd.DataFrame":
    """Held-out or training episodes of ``RUN[@N]``: one row per episode, by id, with the reason of each failure.

    Raises:
        CoevoError: the revision does not exist, was dropped, or keeps no such episodes.
    """
    import pandas as pd

    from coevo.flows.history.revision_reference import reading
    from coevo.flows.history.stored_episodes import COLUMNS, EpisodeFilter, episode_rows

    with reading(reference, workspace_of(workspace)) as opened:
        rows = episode_rows(opened, EpisodeFilter(training, failed))
    return pd.DataFrame(rows, columns=COLUMNS).set_index("id")


@extras_named()
def bank(reference: str, *, workspace: WorkspacePath = None) -> "pd.DataFrame":
    """Active entries of ``RUN[@N]`` with their counters: one row per entry, by id.

    Raises:
        CoevoError: the revision does not exist or was dropped, or the run has no bank.
    """
    import pandas as pd

    from coevo.flows.history.revision_reference import reading
    from coevo.memory.stats import Stats
    from coevo.records.arrow import ENTRIES

    with reading(reference, workspace_of(workspace)) as opened:
        found = opened.bank()
        entries, stats = found.active(), found.stats()
    rows = [asdict(entry) | asdict(stats.get(entry.id, Stats(entry.id))) for entry in entries]
    columns = [name for name in (*ENTRIES.names, *Stats.__slots__) if name != "id"]
    return pd.DataFrame(rows, columns=["id", *columns]).set_index("id")


@extras_named()
def evaluate(
    reference: str,
    panel: str | None = None,
    *,
    tasks: int | None = None,
    bank: str = "own",
    discovery: int = 0,
    workspace: WorkspacePath = None,
) -> "Evaluation":
    """Play a held-out panel with the policy of ``RUN[@N]``; the bank is read-only, and the run does not change.

    Args:
        reference: the revision.
        panel: name of the panel; by default the first of the run's evaluations.
        tasks: number of its tasks; by default as in the run's own evaluations.
        bank: ``own``, ``none``, ``random``, or ``OTHER[@M]``.
        discovery: attempts per task (k of Discovery@k); 0 for one attempt without writing.
        workspace: directory of runs.

    Returns:
        Evaluation with ``success``, ``stderr``, ``vendi`` and ``episodes``.

    Raises:
        CoevoError: the revision, the panel or the bank does not exist.
    """
    from coevo.flows.evaluation.evaluate_revision import evaluate_revision
    from coevo.flows.evaluation.panel_evaluation import EvaluationRequest

    return evaluate_revision(reference, EvaluationRequest(panel, tasks, bank, discovery), workspace_of(workspace))


@extras_named()
def compare(*references: str, evaluate: bool = False, workspace: WorkspacePath = None) -> "pd.DataFrame":
    """Paired differences of runs from the first: one row per panel, at their revisions and at equal cost of each kind.

    Args:
        references: ``RUN@N``, or ``RUN`` for the run at its last evaluated revision.
        evaluate: evaluate revisions that were not evaluated; the runs do not change.
        workspace: directory of runs.

    Returns:
        Frame with the columns of ``coevo.flows.evaluation.comparison.Difference``; bounds are over tasks, and missing
        if the tasks differ.

    Raises:
        CoevoError: a reference is malformed or does not exist, or a named revision was not evaluated.
    """
    from coevo.flows.evaluation.comparison import compared, differences
    from coevo.flows.evaluation.evaluate_revision import evaluate_panels

    opened = workspace_of(workspace)
    return differences(compared(references, opened, partial(evaluate_panels, workspace=opened) if evaluate else None))


@extras_named()
def curves(*references: str, workspace: WorkspacePath = None) -> "pd.DataFrame":
    """Held-out success of runs by episodes, tokens and seconds spent: one row per evaluation.

    Raises:
        CoevoError: a reference is malformed or does not exist.
    """
    from coevo.flows.evaluation import comparison
    from coevo.flows.evaluation.comparison import sides_of

    return comparison.curves(sides_of(references, workspace_of(workspace)))


@extras_named()
def package(reference: str, name: str | None = None, *, workspace: WorkspacePath = None) -> str:
    """Register policy, bank and settings of ``RUN[@N]`` as the next version of a model, like ``coevo package``.

    Args:
        reference: the revision.
        name: registered model; by default the name of the recipe.
        workspace: directory of runs.

    Returns:
        ``MODEL/VERSION``.

    Raises:
        CoevoError: the revision does not exist, or MLflow refuses the package.
    """
    from coevo.flows.packages.make_package import register_revision

    return register_revision(reference, name, workspace_of(workspace))[0].name


@extras_named()
def export(reference: str, directory: Path | str, *, workspace: WorkspacePath = None) -> str:
    """Write ``RUN[@N]`` for the tools of others into a new or empty directory, like ``coevo export``.

    Returns:
        ``RUN@N``.

    Raises:
        CoevoError: the revision does not exist, a setting is not confirmed, or the directory holds something.
    """
    from coevo.flows.packages.export import export as write

    return write(reference, Path(directory), workspace_of(workspace))


@extras_named()
def promote(
    version: str,
    panel: str | None = None,
    *,
    tasks: int | None = None,
    margin: float = 0.0,
    seed: int = 0,
    workspace: WorkspacePath = None,
) -> "Promotion":
    """Make ``MODEL/VERSION`` the champion of its model if it plays better than the current one.

    Returns:
        Promotion with ``passed``, and ``verdict`` with the paired difference and its interval.

    Raises:
        CoevoError: the version does not exist, or the two play different tasks.
    """
    from coevo.flows.packages.promotion import PromotionTerms
    from coevo.flows.packages.promotion import promote as decide

    return decide(version, PromotionTerms(panel, tasks, margin, seed), workspace_of(workspace))


@extras_named()
def waiting(*, workspace: WorkspacePath = None) -> "pd.DataFrame":
    """Admissions and promotions pending approval, one row each; ``says`` has the details."""
    import pandas as pd

    from coevo.flows import pending

    rows = [asdict(each) for each in pending.waiting(workspace_of(workspace))]
    return pd.DataFrame(rows, columns=["what", "kind", "since", "says"]).set_index("what")


@extras_named()
def approve(what: str, *, reject: bool = False, by: str | None = None, workspace: WorkspacePath = None) -> str:
    """Approve or reject an admission or a promotion, like ``coevo approve``.

    Args:
        what: ``RUN[@N]`` or ``MODEL/VERSION``.
        reject: reject instead of approving.
        by: name of the person; the login name by default.
        workspace: directory of runs.

    Returns:
        The revision with the decision, or the version.

    Raises:
        CoevoError: it is not pending, or another process writes to the run.
    """
    from getpass import getuser

    from coevo.flows.pending import decide_model, decide_run, is_promotion
    from coevo.tasks.run.approval import Vote

    vote, opened = Vote(not reject, by or getuser()), workspace_of(workspace)
    if is_promotion(what):
        return decide_model(what, vote, opened)
    made = decide_run(what, vote, opened)
    return f"{what.partition('@')[0]}@{made.revision}"


@extras_named()
def ablate(
    study: str,
    overrides: Mapping[str, object] | None = None,
    *,
    seeds: int | None = None,
    name: str | None = None,
    quiet: bool = False,
    workspace: WorkspacePath = None,
) -> "pd.DataFrame":
    """Play the runs of a study that are not finished, like ``coevo ablate``, and compare its arms.

    It stops early where a run is pending approval (see ``waiting``); finished runs are compared all the same.

    Args:
        study: name of a shipped study, or path of a ``.yaml`` file.
        overrides: settings of every arm by dotted key.
        seeds: number of seeds; the study's by default.
        name: name that its runs begin with; the study's by default.
        quiet: show no progress.
        workspace: directory of runs.

    Returns:
        Frame with one row per metric and arm, and the columns of ``coevo.flows.studies.result.ArmRow``.

    Raises:
        CoevoError: the study cannot run here, an arm is not possible, or a run cannot continue.
    """
    import pandas as pd

    from coevo.configs.load.load_study import changed, load_study
    from coevo.flows.studies.ablate import result_of, start
    from coevo.flows.studies.result import COLUMNS

    opened, described = workspace_of(workspace), changed(load_study(study), name, seeds, as_typed(overrides))
    start(described, opened, quiet, alone=False)
    return pd.DataFrame([asdict(row) for row in result_of(described, opened).rows], columns=COLUMNS)


@contextmanager
def serve(
    what: str, *, host: str = "127.0.0.1", port: int | None = None, workspace: WorkspacePath = None
) -> "Iterator[Serving]":
    """Serve ``RUN[@N]``, ``MODEL/VERSION`` or ``MODEL@ALIAS`` within a ``with`` block, like ``coevo serve``.

    Yields:
        Server with ``name`` and ``url``.

    Raises:
        CoevoError: the package does not exist, the port is in use, or the server did not start.
    """
    with extras_named():
        from coevo.flows.endpoint.request_limits import DEFAULT
        from coevo.flows.packages.serving import Address
        from coevo.flows.packages.serving import serve as serving

    with serving(what, Address(host, port), DEFAULT, workspace_of(workspace)) as served:
        yield served

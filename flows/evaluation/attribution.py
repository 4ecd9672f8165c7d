"""Effects on success: of a lesson in the bank, and of the policy and the bank of a revision against the one before.

Every side is played on the same tasks with the same draws, so that the differences are paired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coevo.flows.evaluation.evaluate_revision import evaluate_revision
from coevo.flows.evaluation.panel_evaluation import Evaluation, EvaluationRequest
from coevo.flows.history.history import trail
from coevo.flows.history.revision_reference import Reading, find_entry, reading
from coevo.flows.history.stored_episodes import TRAINING
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import earlier
from coevo.lineage.workspace import Workspace
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.intervals import Interval, chance_of_fall, paired_success
from coevo.tasks.publish.alarms import alarms, training_rate
from coevo.utilities.errors import CoevoError

SHORT = 0.02
"""Share of the longest stage below which a stage is left out."""


@dataclass(frozen=True)
class EntryEffect:
    """Held-out success with and without one entry.

    Attributes:
        reference: ``RUN@N`` that was played.
        entry: the entry.
        panel: name of the panel.
        tasks: paired tasks that neither side lost; ``readers`` is the number of those whose prompts held the entry.
        success: success rate with the entry; ``without`` is that without it, on the same tasks and draws.
        difference: of the two, with its 95 % interval over tasks.
        among_readers: the same over tasks whose prompts held the entry; None with fewer than two of them.
    """

    reference: str
    entry: Entry
    panel: str
    tasks: int
    readers: int
    success: float
    without: float
    difference: Interval
    among_readers: Interval | None


@dataclass(frozen=True)
class Cause:
    """A possible cause of a change of success.

    Attributes:
        what: ``tasks`` (which ones were drawn), ``policy`` or ``bank``.
        of: ``training`` or the name of a panel.
        effect: share of the change in success, with its 95 % interval; without bounds for tasks that were drawn.
        beyond_noise: True if the interval excludes 0; None without an interval.
        command: command that shows it.
    """

    what: str
    of: str
    effect: Interval
    beyond_noise: bool | None
    command: str


@dataclass(frozen=True)
class Explanation:
    """Change from a revision to a later one.

    Attributes:
        before, after: the two revisions, ``RUN@N``.
        training: training success before and after.
        chance: probability that training success changes as much if nothing changed; None if unknown.
        panel: name of the panel that was played.
        held_out: its success before and after, on the same draws.
        causes: possible causes, the largest effect first.
        kinds: success by kind of the panel's tasks, before and after.
        seconds: by stage, before and after, the longest stage first; short ones are left out.
        alarms: of the later revision.
    """

    before: str
    after: str
    training: tuple[float | None, float | None]
    chance: float | None
    panel: str
    held_out: tuple[float, float]
    causes: tuple[Cause, ...]
    kinds: Mapping[str, tuple[float, float]]
    seconds: Mapping[str, tuple[float, float]]
    alarms: tuple[str, ...]


def entry_effect(reference: str, entry: str, request: EvaluationRequest, workspace: Workspace) -> EntryEffect:
    """Play a panel with a revision's bank, and with the bank without one entry.

    Args:
        reference: ``RUN``, ``RUN@N`` or ``RUN@TAG``.
        entry: id of an active entry, its beginning, or its lesson.
        request: panel and number of tasks.
        workspace: the workspace.

    Raises:
        CoevoError: the revision or panel does not exist, the bank does not hold the entry, or all tasks were lost.
    """
    with reading(reference, workspace) as opened:
        name, tested = opened.name, _active(opened, entry)
    panel, tasks = request.panel, request.tasks
    ours = evaluate_revision(name, EvaluationRequest(panel, tasks, keeps=True), workspace)
    theirs = evaluate_revision(name, EvaluationRequest(panel, tasks, without=(tested.id,), keeps=True), workspace)
    pairs = _pairs(ours, theirs)
    read = [(one, other) for one, other in pairs if any(tested.id in turn.retrieved for turn in one.turns)]
    return EntryEffect(
        name,
        tested,
        ours.panel.name,
        len(pairs),
        len(read),
        _rate([one for one, _ in pairs]),
        _rate([other for _, other in pairs]),
        _difference(pairs),
        _difference(read) if len(read) > 1 else None,
    )


def explain(reference: str, request: EvaluationRequest, workspace: Workspace, since: int | None = None) -> Explanation:
    """Split the change since an earlier revision into tasks that were drawn, policy and bank.

    The panel of the later revision is played with each policy and each bank. The effect of the policy is the mean of
    its effects with both banks, that of the bank the mean of its effects with both policies; together they are the
    whole change (Shapley).

    Args:
        reference: ``RUN``, ``RUN@N`` or ``RUN@TAG``, not the first revision.
        request: panel and number of tasks.
        workspace: the workspace.
        since: revision to start from, one of those that led to the later one; by default the one before it.

    Raises:
        CoevoError: the revision is the first, was dropped, or did not follow ``since``, or the panel does not exist.
    """
    if request.panel == TRAINING:
        raise CoevoError("revisions were trained on different tasks: choose a held-out panel in place of training")
    with reading(reference, workspace) as opened:
        old, new = _ends(opened, since)
        run, has_bank = opened.paths.name, opened.config.bank is not None
        drawn = _drawn(opened, old, new)
        found = tuple(alarms(new, earlier(opened.lineage.history.manifest, new)))
    names = [f"{run}@{each.revision}" for each in (old, new)]
    played = _crossed(names, replace(request, iteration=new.iteration), workspace, has_bank)
    panel = played[0][0].panel.name
    causes = [*_held_out_causes(played, names, panel, has_bank), *drawn]
    return Explanation(
        names[0],
        names[1],
        (old.metrics.get("agent/success/train"), new.metrics.get("agent/success/train")),
        _chance(old, new),
        panel,
        (played[0][0].success, played[1][1].success),
        tuple(sorted(causes, key=lambda cause: -abs(cause.effect.mean))),
        _by_kind(played[0][0], played[1][1]),
        _seconds(old, new),
        found,
    )


def _ends(opened: Reading, since: int | None) -> tuple[Manifest, Manifest]:
    """The earlier revision and the later one."""
    led = {each.revision: each for each in trail(opened.history)}
    *before, new = led.values()
    if not before:
        raise CoevoError(f"{opened.name} is the first revision: explain a later one")
    if since is None:
        return before[-1], new
    if since not in led or led[since] is new:
        raise CoevoError(f"revision {since} did not lead to {opened.name}: choose one that `coevo log` shows before it")
    return led[since], new


def _active(opened: Reading, entry: str) -> Entry:
    active = {each.id: each for each in opened.bank().active()}
    found = active.get(find_entry(entry, {each.id: each.strategy for each in opened.bank().entries()}))
    if found is None:
        raise CoevoError(f"the bank of {opened.name} does not hold {entry} any more: test it at an earlier revision")
    return found


def _crossed(
    names: Sequence[str], request: EvaluationRequest, workspace: Workspace, has_bank: bool
) -> list[list[Evaluation]]:
    """Evaluations by policy, then by bank, of both revisions; without a bank, one for each policy, twice."""
    made = []
    for policy in names:
        banks = ["own" if bank == policy else bank for bank in names] if has_bank else ["own"]
        found = [evaluate_revision(policy, replace(request, bank=bank), workspace) for bank in banks]
        made.append(found if has_bank else [found[0], found[0]])
    return made


def _held_out_causes(played: list[list[Evaluation]], names: Sequence[str], panel: str, has_bank: bool) -> list[Cause]:
    outcomes = _outcomes([*played[0], *played[1]])
    policy = paired_success(_halves(outcomes, 2, 3), _halves(outcomes, 0, 1))
    found = [_cause("policy", panel, policy, f"coevo log {names[1]} --json")]
    if has_bank:
        bank = paired_success(_halves(outcomes, 1, 3), _halves(outcomes, 0, 2))
        found.append(_cause("bank", panel, bank, f"coevo bank diff {names[0]} {names[1]}"))
    return found


def _outcomes(sides: Sequence[Evaluation]) -> list[tuple[float, ...]]:
    """Successes of all sides by task, without tasks that any side lost.

    Raises:
        CoevoError: fewer than two tasks are left.
    """
    rows = list(zip(*(side.episodes for side in sides), strict=True))
    kept = [tuple(float(each.success) for each in row) for row in rows if not any(each.lost for each in row)]
    if len(kept) < 2:
        raise CoevoError(f"panel {sides[0].panel.name}: fewer than two tasks were played on all sides: raise --tasks")
    return kept


def _halves(outcomes: Sequence[tuple[float, ...]], one: int, other: int) -> list[float]:
    return [(row[one] + row[other]) / 2 for row in outcomes]


def _drawn(opened: Reading, old: Manifest, new: Manifest) -> list[Cause]:
    """Effect of the kinds of training tasks that were drawn, and of how often a task found a lesson.

    The change of a mean over kinds is the sum of two parts (Kitagawa): other shares of the kinds at equal success, and
    other success at equal shares. The first is the effect of the draw.
    """
    shares = [_shares(opened, each) for each in (old, new)]
    if not all(shares):
        return []
    kinds = sorted({kind for each in shares for kind in each})  # the sum has the same last digits in every process
    effect = 0.0
    for kind in kinds:
        (was, rate), (now, later) = (each.get(kind, (0.0, None)) for each in shares)
        known = [each for each in (rate, later) if each is not None]
        effect += (now - was) * sum(known) / len(known)
    command = f"coevo episodes {opened.name} --training"
    return [Cause("tasks", "training", Interval(effect, effect, effect), None, command)]


def _shares(opened: Reading, manifest: Manifest) -> dict[str, tuple[float, float]]:
    """Share and success rate of each kind among a revision's training episodes."""
    tables = list(opened.episode_tables(("kind", "success"), {manifest.revision}))
    rows = [(row["kind"], row["success"]) for table in tables for row in table.to_pylist()]
    found = {}
    for kind in sorted({kind for kind, _ in rows}):
        solved = [success for each, success in rows if each == kind]
        found[kind] = (len(solved) / len(rows), sum(solved) / len(solved))
    return found


def _cause(what: str, of: str, effect: Interval, command: str) -> Cause:
    return Cause(what, of, effect, not effect.low <= 0 <= effect.high, command)


def _chance(old: Manifest, new: Manifest) -> float | None:
    before, after = training_rate(old), training_rate(new)
    if before is None or after is None:
        return None
    fall = chance_of_fall(before, after)
    return 2 * min(fall, 1 - fall)


def _by_kind(old: Evaluation, new: Evaluation) -> dict[str, tuple[float, float]]:
    before, after = old.by_kind(), new.by_kind()
    return {kind: (before[kind].success, after[kind].success) for kind in before if kind in after}


def _seconds(old: Manifest, new: Manifest) -> dict[str, tuple[float, float]]:
    stem = "cost/seconds/"
    named = sorted({name for each in (old, new) for name in each.rates if name.startswith(stem)})
    spent = {name.removeprefix(stem): (old.rates.get(name, 0.0), new.rates.get(name, 0.0)) for name in named}
    longest = max(map(max, spent.values()), default=0.0)
    return {
        name: spent[name]
        for name in sorted(spent, key=lambda name: (-max(spent[name]), name))
        if max(spent[name]) >= SHORT * longest
    }


def _pairs(ours: Evaluation, theirs: Evaluation) -> list[tuple[Episode, Episode]]:
    pairs = [
        (one, other) for one, other in zip(ours.episodes, theirs.episodes, strict=True) if not (one.lost or other.lost)
    ]
    if len(pairs) < 2:
        raise CoevoError(f"panel {ours.panel.name}: fewer than two tasks were played on both sides: raise --tasks")
    return pairs


def _difference(pairs: Sequence[tuple[Episode, Episode]]) -> Interval:
    return paired_success([one.success for one, _ in pairs], [other.success for _, other in pairs])


def _rate(episodes: Sequence[Episode]) -> float:
    return sum(episode.success for episode in episodes) / len(episodes)

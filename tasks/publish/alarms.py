"""Alarms of a revision: what keeps a run from learning, and the setting that helps."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from coevo.lineage.revision.manifest import Manifest
from coevo.records.answer_faults import REMEDIES, Fault
from coevo.records.intervals import Rate, chance_of_fall, chance_of_losses
from coevo.records.metric_names import (
    FAULTS,
    MOVED,
    SPREAD,
    STREAK,
    UNREWARDED,
    UNSHOWN,
    UNTAKEN,
    UNUSABLE,
    UNWRITTEN,
)

if TYPE_CHECKING:
    from coevo.configs.sections import AlarmConfig

SOLVED = 0.9
"""Training success from which on an idle writer is no alarm: little is left to write."""
REASONS = {f"{FAULTS}{fault.replace(' ', '_')}": fault for fault in Fault}
"""Fault by the metric that counts it."""


RULE = "rules quote feedback; another bank.writer, or imported entries"
TAIL = 10
"""Distance of the 99th percentile of tokens, in means, from which on engine and trainer differ too much."""
UNREAD = ("bank/writer/rejected_not_json", "bank/writer/rejected_not_words")
"""Metrics that count answers of which nothing can be read."""
CUT = "bank/writer/rejected_cut"
"""Metric that counts items, or whole answers, that end at the limit of tokens."""
IDLE = ("the writer has proposed nothing", "the bank has taken nothing")
"""Beginnings of the alarms of a writer that is idle."""
FELL = "success in "
"""Beginning of the alarm that success fell."""
MODEL = "bank/writer/unanswered and rejected, bank.writer.model"
SILENT = 3
"""Number of iterations in a row in which no prompt shows an entry of the bank, from which on that is an alarm."""
CHANCES = 500
"""Pairs of an entry and a task without a match from which on pools are too narrow: of 100 pools, one would match."""
FALSE = 0.01
"""Probability of a false alarm, in a whole run, that training success fell; likewise for its panels."""
NEAR = 1e-3
"""KL per token below which an update has hardly moved the policy."""
NAME = 16
"""Most characters of a panel's name in a line."""


def alarms(manifest: Manifest, earlier: Iterable[Manifest] = ()) -> list[str]:
    """Alarms of a revision, in lines of at most 71 characters; none if it learns.

    Args:
        manifest: of the revision.
        earlier: revisions before it, newest first; no more of them are read than are compared.
    """
    alone = (_unusable, _unrewarded, _flat, _mismatch, _unshown, _unread, _idle)
    return [*(line for found in alone for line in found(manifest)), *_fallen(manifest, earlier)]


def _unrewarded(manifest: Manifest) -> Iterator[str]:
    count = manifest.metrics.get(UNREWARDED)
    if count is not None:
        yield f"success earns nothing: {count:.0f} successful episodes, none above a failure"
        yield "remedy: reward success in the environment's step (coevo envs check)"


def _unshown(manifest: Manifest) -> Iterator[str]:
    metrics, config = manifest.metrics, manifest.state["config"]
    count, bins = metrics.get(UNSHOWN, 0.0), "bank/retrieval/count_histogram/"
    entries = sum(number for name, number in metrics.items() if name.startswith(bins))
    retrieval = (config.get("bank") or {}).get("retrieval") or {}
    least: float = SILENT
    if metrics.get("bank/retrieval/enabled") == 0:
        least, why = max(least, config["iterations"] / 2), "it is too small"
        remedy = "bank.retrieval.min_entries=0"
    elif metrics.get("bank/retrieval/left_out", 0.0):
        why, remedy = "all exceed the budget", "a larger context.experience_tokens"
    else:
        narrow = retrieval.get("scoped", True) or retrieval.get("type") == "cluster"
        matches = count * entries * config.get("rollout", {}).get("tasks", 1)
        least, why = (least if not narrow or matches >= CHANCES else count + 1), "none is retrieved"
        remedy = _wider(retrieval)
    if count >= least:
        yield f"no prompt has shown the bank for {count:.0f} iterations: {why}"
        yield f"remedy: {remedy}"


def _wider(retrieval: Mapping[str, Any]) -> str:
    """Settings under which more is retrieved."""
    if retrieval.get("type") == "cluster":
        return "a lower bank.retrieval.threshold or clusters.delta"
    scoped = "bank.retrieval.scoped=false, or another bank.key"
    return scoped if retrieval.get("scoped", True) else "another bank.retrieval.type"


def _fallen(manifest: Manifest, earlier: Iterable[Manifest]) -> Iterator[str]:
    """Success that fell beyond noise: in training since the revision before, in a panel since its last evaluation."""
    trail = iter(earlier)
    before = next(trail, None)
    if before is None:
        return
    yield from _in_training(manifest, before)
    outcomes = manifest.state.get("outcomes") or {}
    panels = [name for name in manifest.state["config"]["evaluation"]["panels"] if name in outcomes]
    evaluated = (each for each in chain([before], trail) if each.state.get("outcomes"))
    for since in islice(evaluated, 1 if panels else 0):
        for name in panels:
            yield from _in_panel(manifest, since, name, len(panels))


def _in_training(manifest: Manifest, before: Manifest) -> Iterator[str]:
    old, new = training_rate(before), training_rate(manifest)
    steps = max(1, manifest.state["config"]["iterations"])
    if old is not None and new is not None and chance_of_fall(old, new) * steps < FALSE:
        yield _fell("training", old.mean, new.mean, before)
        yield from _cause(before)


def _in_panel(manifest: Manifest, since: Manifest, name: str, panels: int) -> Iterator[str]:
    config, was, now = manifest.state["config"], since.state["outcomes"], manifest.state["outcomes"]
    if since.state["panels"].get(name) != manifest.state["panels"][name]:
        return
    times = panels * max(1, -(-config["iterations"] // config["evaluation"].get("every", 1)))
    if chance_of_losses(was[name], now[name]) * times < FALSE:
        old, new = (each.metrics.get(f"agent/success/{name}", 0.0) for each in (since, manifest))
        yield _fell(name, old, new, since)
        yield from _cause(manifest)


def _fell(where: str, old: float, new: float, since: Manifest) -> str:
    return f"{FELL}{where[:NAME]} fell beyond noise: {old:.2f} to {new:.2f} since r{since.revision}"


def training_rate(manifest: Manifest) -> Rate | None:
    """Training success of a revision's last iteration over its tasks; None where its noise is not known."""
    metrics = manifest.metrics
    if SPREAD not in metrics:
        return None
    planned = metrics.get("agent/episodes/ended", manifest.state["config"]["rollout"]["tasks"])
    tasks = metrics.get("agent/sessions/groups", planned)  # agents play as many as they like
    return Rate(metrics["agent/success/train"], metrics[SPREAD], max(2, int(tasks)))


def _cause(updated: Manifest) -> Iterator[str]:
    """Gradient and distance of the last update before the fall, and what helps if it did harm."""
    norm, moved = (updated.metrics.get(name) for name in ("policy/update/grad_norm", MOVED))
    if norm is None or moved is None:
        yield "remedy: another bank.admission.type; the policy was not updated"
        return
    yield f"gradient norm {norm:.2g}, KL to the policy before that update {moved:.2g}"
    if moved < NEAR:
        yield "remedy: another bank.admission.type; the policy hardly moved"
    else:
        yield "remedy: a lower update.optimizer.lr, from `coevo branch RUN@REVISION`"


def _unusable(manifest: Manifest) -> Iterator[str]:
    metrics = manifest.metrics
    share = metrics.get(UNUSABLE)
    if share is not None:
        reason = max(REASONS, key=lambda name: metrics.get(name, 0.0))
        yield f"{share:.0%} of the answers are unusable, mostly: {REASONS[reason]}"
        yield f"remedy: {REMEDIES[REASONS[reason]]}"


def _flat(manifest: Manifest) -> Iterator[str]:
    from coevo.configs.rollout.rollout_config import COLD

    limit = _limits(manifest).flat
    count = manifest.metrics.get(STREAK, 0.0)
    if count >= limit:
        solved = manifest.metrics.get("agent/success/train", 0.0)
        rollout = manifest.state["config"].get("rollout") or {}
        cold = (rollout.get("sampling") or {}).get("temperature", 1.0) <= COLD
        tasks = f"{'harder' if solved > 0.5 else 'easier'} tasks, or a larger rollout.group_size"
        yield f"no group has had different rewards for {count:.0f} iterations: nothing is learned"
        yield f"remedy: {'rollout.sampling.temperature=1.0' if cold else tasks}"


def _mismatch(manifest: Manifest) -> Iterator[str]:
    """Distance of engine and trainer, unless the run has the engine draw from another distribution on purpose."""
    limit, config = _limits(manifest).mismatch, manifest.state["config"]
    mean, tail = (manifest.metrics.get(f"policy/update/mismatch_{name}", 0.0) for name in ("mean", "p99"))
    rollout = config.get("rollout") or {}
    sampling = rollout.get("sampling") or {}
    meant = rollout.get("ahead", 0) or sampling.get("top_p", 1.0) < 1 or sampling.get("top_k", 0) > 0
    if meant or (mean <= limit and tail <= TAIL * limit):
        return
    yield f"engine and trainer differ by {mean:.2g} per token, 1 % by over {tail:.2g}"
    capped = ((config.get("update") or {}).get("loss") or {}).get("importance_cap") is not None
    yield f"remedy: policy.dtype=float32{'' if capped else ', or update.loss.importance_cap=2.0'}"


def _unread(manifest: Manifest) -> Iterator[str]:
    asked = manifest.metrics.get("bank/writer/questions", 0.0)
    unread = sum(manifest.metrics.get(name, 0.0) for name in UNREAD)
    if unread > asked * _limits(manifest).unusable:
        yield f"{unread:.0f} of the writer's {asked:.0f} answers have not the form that it asks for"
        yield "remedy: another bank.writer.model, or a policy that is taught to write"
    cut = manifest.metrics.get(CUT, 0.0)
    if cut > asked * _limits(manifest).unusable:
        yield f"{cut:.0f} of the writer's {asked:.0f} answers end at the limit of tokens"
        yield "remedy: a larger bank.writer.model.max_new_tokens"


def _limits(manifest: Manifest) -> "AlarmConfig":
    from coevo.configs.sections import AlarmConfig

    return AlarmConfig(**manifest.state["config"].get("alarm", {}))


def _writes(manifest: Manifest) -> str:
    """Type of the run's writer; empty without a bank."""
    bank = manifest.state["config"].get("bank") or {}
    return str((bank.get("writer") or {}).get("type", ""))


def _idle(manifest: Manifest) -> Iterator[str]:
    limit = _limits(manifest).idle
    unwritten, untaken = (manifest.metrics.get(name, 0.0) for name in (UNWRITTEN, UNTAKEN))
    if max(unwritten, untaken) < limit or manifest.metrics.get("agent/success/train", 0.0) >= SOLVED:
        return
    if unwritten >= limit:
        yield f"{IDLE[0]} in {unwritten:.0f} firings"
        yield f"remedy: {MODEL if _writes(manifest).startswith('model-') else RULE}"
    else:
        yield f"{IDLE[1]} in {untaken:.0f} firings"
        yield "remedy: bank.admission, or another bank.writer"

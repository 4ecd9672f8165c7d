"""A run with four revisions, made with the real stores but without a policy: what the reading commands read.

Revision 0 is the start, 1 admits two lessons, 2 rejects one, 3 edits one, rejects an operation on another and is
evaluated again. Success on the four
panel tasks goes from 0 to 0.5 to 1; each of revisions 1 to 3 holds four training episodes, which see what was admitted
before them.
"""

import shutil
from dataclasses import replace

import pyarrow.parquet as pq

from coevo.configs.load.load import load_recipe
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange, Judged, Ruling
from coevo.memory.stats import tally
from coevo.records.arrow import episodes_to_table
from coevo.records.entry import Entry, Verdict, entry_id
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import Task
from coevo.tasks.pending_revision import HeldOutEpisode
from coevo.tasks.revision_artifacts import write_held_out

RECIPE = "homerules-coevo-rl"
PANEL = "seen-houses"
TASK = Task("homerules", "heat", "house lotus . task heat mug to counter", "lotus", "train", {"n": 1})
MINUTE = 60_000
SAFE = "lotus mug in safe"
HEAT = "lotus heat with microwave"
STOVE = "lotus heat not stove"


def source(revision, replica):
    return f"{revision}/rollout-{revision - 1}/{TASK.id}/{replica}"


def entry(strategy, concerns, example, revision=1):
    return Entry(
        id=entry_id("lotus", strategy),
        strategy=strategy,
        condition=concerns,
        example=example,
        keywords=f"lotus {concerns}",
        scope="lotus",
        split="train",
        sources=(source(revision, 0), source(revision, 1)),
        created=revision,
        edited=revision,
    )


MUG = entry(SAFE, "mug", "go safe")
MICROWAVE = entry(HEAT, "heat mug", "use microwave")
REJECTED = entry(STOVE, "heat", "use stove", revision=2)
EDITED = replace(MUG, strategy="lotus mug in drawer", edited=3)


def episodes(revision, seen=()):
    """Four of them, the first two solved."""
    return [_episode(revision, replica, tuple(entry.id for entry in seen)) for replica in range(4)]


def _episode(revision, replica, seen):
    return _played(revision, source(revision, replica), TASK, replica < 2, seen, replica)


def _played(revision, name, task, solved, seen, replica=0):
    completion = Completion((5, 6), (-0.1, -0.2), "think x act go safe", True)
    reward = float(solved)
    turns = (
        Turn("at hall", (1, 2), completion, "go safe", "mug in safe", 0.0, True, seen),
        Turn("at safe", (1, 2), completion, "put counter", "done" if reward else "not done", reward, True, seen),
    )
    return Episode(name, task, revision, replica, turns, solved, False)


def held_out(revision, solved):
    """An episode per task of the panel; the failed ones have read the bank, the odd ones with no usable action."""
    found = []
    for number, mark in enumerate(solved):
        task = replace(TASK, kind=("heat", "put")[number % 2], split="held-out", data={"n": number})
        name, seen = f"{revision}/evaluate-{PANEL}/{task.id}/0", (MUG.id,) if revision else ()
        episode = _played(revision, name, task, mark == "1", seen)
        if mark == "1":
            found.append(HeldOutEpisode(PANEL, episode, "", ""))
        else:
            reason = ("wrong end", "no usable action")[number % 2]
            found.append(HeldOutEpisode(PANEL, episode, reason, "not followed" if revision else "no fitting lesson"))
    return found


def judged(revision, candidates, gains):
    """Gains are the paired differences."""
    mean = sum(gains) / len(gains)
    variance = sum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1)
    verdict = Verdict(
        revision=revision,
        candidates=tuple(candidate.id for candidate in candidates),
        admitted=mean > 0,
        reward_with=0.5 + mean,
        reward_without=0.5,
        difference=mean,
        stderr=(variance / len(gains)) ** 0.5,
        pairs=len(gains),
        delta=0.0,
        bound=mean - 0.25,
    )
    return Judged(verdict, tuple(candidates))


OPERATIONS = (
    Ruling("00000003/000000", 3, "lotus", f'EDIT("{MUG.id}", "lotus mug in drawer")', "applied", entries=(MUG.id,)),
    Ruling("00000003/000001", 3, "lotus", 'UPVOTE("cafecafecafe")', "rejected", "names an entry that is not there"),
)
CHANGES = (
    BankChange(),
    BankChange(entries=(MUG, MICROWAVE), judged=(judged(1, (MUG, MICROWAVE), (1.0, 0.0, 1.0, 0.0)),)),
    BankChange(judged=(judged(2, (REJECTED,), (0.0, 0.0, -1.0, 0.0)),)),
    BankChange(entries=(EDITED,), operations=OPERATIONS),
)
PLAYED = ([], episodes(1), episodes(2, (MUG,)), episodes(3, (MUG, MICROWAVE)))
METRICS = (
    {},
    {"agent/success/train": 0.5, "bank/admitted": 2.0, "bank/rejected": 0.0, "bank/size": 2.0},
    {"agent/success/train": 0.5, "bank/admitted": 0.0, "bank/rejected": 1.0, "bank/size": 2.0},
    {"agent/success/train": 0.5},
)
OUTCOMES = ("0000", None, "1100", "1111")


def build(
    root,
    name="first",
    overrides=(),
    outcomes=OUTCOMES,
    panel="p" * 64,
    tokens=100,
    policy=None,
    optimizer=False,
):
    """Make the run in a workspace; an episode costs so many tokens, None for a run that does not count; ``policy`` is
    the directory of one that all revisions have; with ``optimizer``, they have its state too."""
    workspace = Workspace(root)
    config = load_recipe(RECIPE, [*overrides])
    paths = workspace.create(name, config)
    bank = Bank(paths.bank)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        for revision, (change, played, metrics) in enumerate(zip(CHANGES, PLAYED, METRICS, strict=True)):
            stats = tally(bank.stats(), played)
            evaluated = {} if outcomes[revision] is None else {PANEL: outcomes[revision]}
            success = {f"agent/success/{PANEL}": row.count("1") / len(row) for row in evaluated.values()}
            bank.merge(replace(change, stats=stats))
            state = {
                "iteration": revision,
                "fired": revision,
                "config": config.model_dump(mode="json"),
                "config_hash": config.digest(),
                "code": "c" * 64,
                "accepted_change": [],
                "tables": bank.hashes(),
                "panels": dict.fromkeys(evaluated, panel),
                "outcomes": evaluated,
                "metrics": metrics | success | _spent(played, tokens),
            }
            observed = {
                "run": name,
                "timestamp": revision * MINUTE,
                "tables": bank.versions(),
                "metrics": {"cost/seconds/wall": 2.0, "cost/seconds/rollout": 1.5},
            }
            staged = _stage(paths, revision, played, policy, optimizer)
            if evaluated:
                staged["held_out"] = paths.staging / "held_out"
                write_held_out(held_out(revision, outcomes[revision]), staged["held_out"])
            lineage.commit(staged, state, observed)
    return paths


def _spent(played, tokens):
    if tokens is None or not played:
        return {}
    return {"cost/episodes": float(len(played)), "cost/tokens": float(len(played) * tokens)}


def _stage(paths, revision, played, policy, optimizer):
    staged = {name: paths.staging / name for name in ("policy", "episodes")}
    staged["episodes"].mkdir(parents=True)
    if policy is None:
        staged["policy"].mkdir()
        (staged["policy"] / "weights").write_text(f"policy of {revision}")
    else:
        shutil.copytree(policy, staged["policy"])
    if optimizer:
        staged["optimizer"] = paths.staging / "optimizer"
        staged["optimizer"].mkdir()
        (staged["optimizer"] / "state").write_text(f"optimizer of {revision}")
    pq.write_table(episodes_to_table(played), staged["episodes"] / "episodes.parquet")
    return staged

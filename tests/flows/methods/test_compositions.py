"""Compositions drawn at random from all parts: each runs, and does what its parts say and nothing else.

Ones that show a choice for the first time run in the full tier, further ones in the soak.
"""

from itertools import count, pairwise

import numpy as np
import pytest
from support.loop import novice, played

from coevo.configs.load.load import load_recipe
from coevo.memory.bank.change import SCHEMAS
from coevo.records.draws import generator, key
from coevo.records.metric_names import GROUPS
from coevo.utilities.errors import ConfigError

SHOWING, FURTHER = 14, 30
"""Compositions that show every choice, and further ones."""
SMALL = (
    "warmstart=null", "iterations=2", "rollout.tasks=4", "evaluation.tasks=8",
    "evaluation.every=2", "evaluation.panels=[seen-houses]", "evaluation.final_panels=[]", "bank.every=1",
    "update.optimizer.lr=1e-3",
)  # fmt: skip
TFIDF = "similarity: {type: tfidf}, threshold: 0.0"
PARTS = {
    "retrieval": {
        "{type: tfidf}": "bank/retrieval/tfidf_score",
        "{type: bm25, per: both}": "bank/retrieval/bm25_score",
        "{type: embedding, per: step}": "bank/retrieval/embedding_score",
        "{type: tfidf+embedding}": "bank/retrieval/tfidf_embedding_score",
        "{type: bm25+embedding}": "bank/retrieval/bm25_embedding_score",
        "{type: utility}": "bank/retrieval/utility_score",
        f"{{type: simutil-ucb, share: 0.5, {TFIDF}}}": "bank/retrieval/simutil_ucb_score",
        f"{{type: two-phase, {TFIDF}}}": "bank/retrieval/two_phase_score",
        "{type: cluster, threshold: 0.5}": "bank/retrieval/cluster_score",
    },
    "writer": {
        "{type: quote-contrast}": "bank/writer/contrast_lessons",
        "{type: quote-extremes}": "bank/writer/upper",
        "{type: quote-reflection, induction: single}": "bank/writer/accuracy",
        "{type: quote-skills, below: 1.0}": "bank/writer/failing_kinds",
        "{type: quote-editor}": "bank/writer/operations",
    },
    "admission": {
        "{type: replay, replays: 2, delta: -1.0}": "bank/replay/pairs",
        "{type: replay, per: entry, replays: 1, delta: -1.0}": "bank/replay/pairs",
        "{type: score}": "bank/admission/duplicates",
        "{type: append, capacity: 20}": "bank/admission/added",
        "{type: edits}": "bank/edits/applied",
    },
    "reward": {
        "{type: extrinsic}": "policy/reward/extrinsic",
        "{type: discounted}": "policy/reward/discounted",
        "{type: capability-evolution}": "policy/reward/capability_evolution",
        "{type: progress-guided}": "policy/reward/progress_guided",
    },
    "advantage": {
        "{type: grpo}": "policy/advantage/grpo_spread",
        "{type: mean}": "policy/advantage/mean_spread",
        "{type: rloo}": "policy/advantage/rloo_spread",
        "{type: reinforce}": "policy/advantage/reinforce_spread",
        "{type: gigpo}": "policy/advantage/gigpo_spread",
        "{type: gae}": "policy/advantage/gae_spread",
    },
    "aggregation": {
        name: f"policy/loss/{name.replace('-', '_')}"
        for name in (
            "token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm", "traj-mean-step-mean",
        )
    },
    "schedule": {
        "{type: joint}": None,
        "{type: policy-then-bank, switch_at: 1}": "policy/learns",
        "{type: bank-then-policy, switch_at: 1}": "policy/learns",
        "{type: frozen-after-first}": "policy/learns",
    },
    "frozen": {"nothing": None, "update": None, "bank": None},
    "ahead": {"0": None, "1": "policy/staleness"},
}  # fmt: skip
"""For each part its choices, and the figure that only this choice leaves."""


def valid():
    """Choices and configuration of valid compositions; those that are refused say why in a line."""
    for number in count():
        draw = generator(key("composition", number))
        chosen = {part: list(choices)[int(draw.integers(len(choices)))] for part, choices in PARTS.items()}
        try:
            yield chosen, configured(chosen)
        except ConfigError as error:
            assert "\n" not in str(error)


@pytest.fixture(scope="module")
def compositions():
    """Compositions that show a choice for the first time, then others."""
    drawn, seen, showing, others = valid(), set(), [], []
    while len(seen) < sum(map(len, PARTS.values())) or len(others) < FURTHER:
        chosen, config = next(drawn)
        new = set(chosen.items()) - seen
        seen |= new
        (showing if new else others).append((chosen, config))
    return showing + others


def configured(chosen):
    settings = [f"bank.{part}={chosen[part]}" for part in ("retrieval", "writer", "admission")]
    settings += [f"update.{part}={chosen[part]}" for part in ("reward", "advantage")]
    settings += [f"update.loss.aggregation={chosen['aggregation']}", f"schedule={chosen['schedule']}"]
    settings += ["update.critic={}"] * ("gae" in chosen["advantage"])
    settings += ["clusters.delta=0.85"] * ("cluster" in chosen["retrieval"])
    by_utility = any(kind in chosen["retrieval"] for kind in ("simutil-ucb", "two-phase"))
    settings += ["bank.utility={}"] * (by_utility and "edits" not in chosen["admission"])
    settings += ["bank.key=kind"] * ("skills" in chosen["writer"])
    settings += ["rollout.ahead=1", "update.loss.importance_cap=2.0"] * (chosen["ahead"] == "1")
    settings += [f"{chosen['frozen']}=null"] * (chosen["frozen"] != "nothing")
    return load_recipe("homerules-coevo-rl", [*SMALL, *settings])


@pytest.mark.full
def test_every_choice_is_shown(compositions):
    seen = {(part, choice) for chosen, _ in compositions[:SHOWING] for part, choice in chosen.items()}
    assert not [(part, choice) for part, choices in PARTS.items() for choice in choices if (part, choice) not in seen]


@pytest.fixture(scope="module")
def policy(warmstarts):
    return novice(load_recipe("homerules-coevo-rl"), warmstarts)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.full if number < SHOWING else pytest.mark.soak)
        for number in range(SHOWING + FURTHER)
    ],
)
def test_a_composition_runs_and_does_what_it_says(number, compositions, policy, tmp_path, monkeypatch):
    chosen, config = compositions[number]
    history = played(tmp_path, config, policy, monkeypatch)
    told = {name for manifest in history for name in manifest.state["metrics"]}
    rates = {name for manifest in history for name in manifest.observed["metrics"]}
    assert {name.partition("/")[0] for name in told | rates} <= {*GROUPS}
    for part, choices in PARTS.items():
        expected = {choices[chosen[part]]} if works(part, chosen) else set()
        assert told & {name for name in choices.values() if name} == expected - {None}, part
    for before, after in pairwise(history):
        learns, evolves = changes(chosen, before.iteration)
        assert (after.artifacts["policy"] != before.artifacts["policy"]) == learns
        same = {name for name in SCHEMAS if after.state["tables"][name] == before.state["tables"][name]}
        assert evolves or {"entries", "verdicts", "operations"} <= same
    assert all(np.isfinite(value) for manifest in history for value in manifest.state["metrics"].values())


def works(part, chosen):
    """Whether a part has anything to do in a composition."""
    if part in ("retrieval", "writer", "admission"):
        return chosen["frozen"] != "bank"
    return part != "frozen" and (part == "schedule" or chosen["frozen"] != "update")


def changes(chosen, iteration):
    """Whether an iteration may change policy and bank."""
    learns = "bank-then-policy" not in chosen["schedule"] or iteration >= 1
    learns &= "policy-then-bank" not in chosen["schedule"] or iteration < 1
    evolves = "policy-then-bank" not in chosen["schedule"] or iteration >= 1
    evolves &= "bank-then-policy" not in chosen["schedule"] or iteration < 1
    return learns and chosen["frozen"] != "update", evolves and chosen["frozen"] != "bank"

"""Every recipe of a laptop's size runs from its start to an evaluation, and changes what it says and nothing else."""

from itertools import pairwise

import pytest
from support.loop import novice, played
from support.soak import mostly_soak

from coevo.configs.load.load import load_recipe
from coevo.configs.load.shipped_files import names
from coevo.tasks.run.warmstart import teaches

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
SMALL = (
    "rollout.tasks=4", "evaluation.tasks=8", "evaluation.every=2", "evaluation.final_panels=[]",
)  # fmt: skip
BANK = ("bank.every=1", "bank.retrieval.warmup=0")
REPLAYS = "bank.admission.replays=4"
EVALUATED = ("homerules-react",)
"""Recipes that learn nothing."""
THEIRS = {
    "babyai-context-lite": ("update.critic.warmup=0",),
    "babyai-context-lite-open": ("update.critic.warmup=0",),
    "babyai-context-lite-pick-up-seq-go-to": ("update.critic.warmup=0",),
    "babyai-context-lite-pickup": ("update.critic.warmup=0",),
    "gymnasium-grpo": ("rollout.tasks=16",),
    "homerules-context-lite": ("rollout.tasks=32",),
    "homerules-skillrl-style": ("bank.writer.below=1.0",),
}
"""Overrides that make two iterations enough to learn something."""
UNREWARDED = (
    "babyai-grpo",
    "babyai-rules-coevo-rl",
    "babyai-rules-coevo-rl-writer-model",
    "lifelong-db-grpo",
    "sokoban-grpo",
    "webshop-grpo",
)
"""Where a novice is never rewarded in two iterations."""
UNREAD = ("babyai-rules-coevo-rl", "babyai-rules-coevo-rl-writer-model")
"""Where a rule finds nothing to quote, and where nobody serves the writer model."""
SHOWN = {False: "homerules-coevo-rl", True: "homerules-retroagent-policy"}
"""Recipes whose novices the others of the household start from, by whether these are shown how to write."""
LAPTOP = [name for name in names("recipes") if load_recipe(name).policy.type == "scratch"]
LONG = {
    "babyai-context-lite-open", "babyai-context-lite-pick-up-seq-go-to", "homerules-coevo-rl-trained-writer",
}  # fmt: skip
"""Variants of others that take longest."""
TABLES = ("entries", "verdicts", "operations")


def configured(recipe):
    shipped = load_recipe(recipe)
    settings = [*SMALL, *(BANK if shipped.bank else ()), *(("schedule.switch_at=1",) if staged(shipped) else ())]
    settings += [REPLAYS] if shipped.bank and shipped.bank.admission.type == "replay" else []
    return load_recipe(
        recipe, [*settings, *THEIRS.get(recipe, ()), *(() if recipe in EVALUATED else ("iterations=2",))]
    )


def novice_of(config, directory):
    """A policy that has been shown how to act; those of the household have one shape, and are made once."""
    other = load_recipe(SHOWN[teaches(config) is not None]) if config.env.type == "homerules" else config
    assert config.policy == other.policy
    return novice(other, directory)


def staged(config):
    return hasattr(config.schedule, "switch_at")


@pytest.mark.parametrize("recipe", mostly_soak(LAPTOP, *({*LAPTOP} - LONG)))
def test_a_recipe_runs(recipe, warmstarts, tmp_path, monkeypatch):
    config = configured(recipe)
    history = played(tmp_path, config, novice_of(config, warmstarts), monkeypatch)
    assert history[-1].iteration == config.iterations
    assert f"agent/success/{config.evaluation.panels[0]}" in history[-1].state["metrics"]
    # Whoever had anything to learn from has trained by now, and whoever keeps a bank has written to it.
    taught = any(manifest.state["metrics"].get("policy/update/samples", 0.0) > 0 for manifest in history)
    assert moved(history, "artifacts", "policy") == taught
    assert taught == (config.update is not None and recipe not in UNREWARDED)
    assert any(moved(history, "tables", name) for name in TABLES) == (config.bank is not None and recipe not in UNREAD)


def moved(history, what, name):
    return any(before.state[what][name] != after.state[what][name] for before, after in pairwise(history))

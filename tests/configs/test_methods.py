"""Methods have the values of their papers; those that no paper gives are not here."""

import pytest

from coevo.configs.load.load import load_method, load_recipe
from coevo.configs.load.shipped_files import names

GROUPS = {"tasks": 16, "group_size": 8}
LR = {"lr": 1e-6}
K3 = {"kl": "k3", "kl_coefficient": 1e-3}
DUAL = {"type": "gae", "gamma_step": 0.99, "lambda_step": 0.95, "gamma_token": 1.0, "lambda_token": 1.0}
TFIDF = {"type": "tfidf", "k": 8, "per": "task", "share": 1.0}
# Each lesson by itself and with confidence: a departure from Eq. 7, which homerules-coevo-rl-eq7 has.
REPLAY = {"type": "replay", "per": "entry", "delta": 0.0, "replays": 64, "confidence": 0.95}

EVERYTHING = {"memory_length": None, "history": "states"}

PAPERS = {
    # Section 4.1, Eq. 2, 6 and 7. Its baselines share backbone and update.
    "coevo-rl": {
        "rollout": GROUPS,
        "bank": {
            "every": 20,
            "retrieval": TFIDF,
            "writer": {"type": "quote-contrast", "buffer": 64},
            "admission": REPLAY,
        },
        "update": {"advantage": {"type": "grpo"}, "loss": K3, "optimizer": LR},
        "schedule": {"type": "joint"},
    },
    "experience-only": {
        "rollout": GROUPS,
        "bank": {
            "every": 20,
            "retrieval": TFIDF,
            "writer": {"type": "quote-contrast", "buffer": 64},
            "admission": REPLAY,
        },
        "update": None,
    },
    "grpo": {"rollout": GROUPS, "bank": None, "update": {"advantage": {"type": "grpo"}, "loss": K3, "optimizer": LR}},
    # Appendix D, section 4.1, Eq. 5 to 8; the discount is GiGPO's.
    "slea-rl": {
        "context": {"placement": "system", "experience_tokens": 200} | EVERYTHING,
        "rollout": GROUPS,
        "clusters": {"delta": 0.85},
        "bank": {
            "every": 1,
            "retrieval": {"type": "cluster", "per": "step", "k": 2, "warnings": 1, "threshold": 0.85}
            | {"warmup": 5, "min_entries": 10, "share": 1.0},
            "writer": {"type": "quote-extremes", "trajectories": 5, "strategies": 10, "warnings": 5},
            "admission": {"type": "score", "novelty": 0.85, "ties": "replace"}
            | {"capacity": {"strategy": 100, "warning": 50}},
        },
        "update": {
            "advantage": {"type": "gigpo", "weight": 1.0, "gamma": 0.95, "mode": "mean_norm", "anchor": "cluster"},
            "loss": {"clip_low": 0.2, "clip_high": 0.2, "kl_coefficient": 0.01, "aggregation": "traj-mean-step-mean"},
            "optimizer": LR,
        },
    },
    # Eq. 2; 256 turns an update over 16 environments are the example of section 4.1.
    "context-lite": {
        "context": {"memory_length": 1, "history": "states"},
        "rollout": {"tasks": 16, "turns": 256 // 16, "max_turns": 128},
        "bank": None,
        "update": {"advantage": DUAL},
    },
    "ppo": {"bank": None, "update": {"advantage": DUAL}},
    # Table I; its batch of 256 is taken for episodes. Scores and the weight of the KL term are decided.
    "jerp": {
        "context": EVERYTHING,
        "rollout": {"tasks": 256 // 8, "group_size": 8, "max_turns": 50},
        "bank": {
            "every": 1,
            "key": "task",
            "retrieval": {"type": "utility", "k": 8, "per": "task", "share": 1.0},
            "writer": {"type": "quote-editor"},
            "admission": {"type": "edits", "initial": 1.0, "up": 1.0, "down": 1.0, "threshold": 0.5, "capacity": 32},
        },
        "update": {
            "reward": {"type": "discounted", "gamma": 0.95},
            "advantage": {"type": "grpo", "ddof": 0},
            "loss": {"kl_coefficient": 0.01, "aggregation": "traj-mean-step-mean"},
            "optimizer": {"lr": 3e-6},
        },
    },
    # Table 10, Eq. 5 to 11, section 3.3.
    "retroagent": {
        "context": EVERYTHING,
        "rollout": GROUPS | {"sampling": {"temperature": 0.4}},
        "bank": {
            "every": 1,
            "key": "task",
            "retrieval": {"type": "simutil-ucb", "k": 3, "threshold": 0.4, "alpha": 0.7, "kappa": 1.0, "share": 0.5}
            | {"similarity": {"type": "embedding", "encoder": {"model": "all-MiniLM-L6-v2"}}},
            "utility": {"initial": 0.5, "rate": 0.05, "score": "reward"},
            "writer": {"type": "quote-reflection", "induction": "pairwise", "outcomes": "all"},
        },
        "update": {
            "reward": {"type": "capability-evolution", "gamma": 0.95},
            "advantage": {"type": "grpo"},
            "loss": {"kl_coefficient": 0.01, "aggregation": "seq-mean-token-sum"},
        },
    },
    "reflexion-style": {
        "bank": {
            "key": "task",
            "writer": {"type": "quote-reflection", "outcomes": "failures"},
            "admission": {"type": "append", "per_key": 3},
        },
        "update": None,
    },
    "memrl-style": {
        "bank": {
            "retrieval": {"type": "two-phase", "balance": 0.5, "clip": 3.0, "epsilon": 0.01},
            "utility": {"initial": 0.0, "rate": 0.3, "score": "signed"},
            "admission": {"type": "append", "merge": 0.85},
        },
        "update": None,
    },
    "skillrl-style": {
        "bank": {
            "key": "kind",
            "retrieval": {"type": "embedding", "per": "task", "k": 5, "general": 6},
            "writer": {"type": "quote-skills", "below": 0.4, "skills": 3},
        },
        "update": {"advantage": {"type": "grpo"}},
    },
    "d2skill-style": {
        "bank": {
            "retrieval": {"type": "simutil-ucb", "per": "both", "share": 0.5},
            "utility": {"score": "reward"},
            "admission": {"type": "append", "capacity": 600},
        },
        "update": {"advantage": {"type": "grpo"}},
    },
    "react": {"bank": None, "update": None},
    "gigpo": {"bank": None, "update": {"advantage": {"type": "gigpo", "weight": 1.0, "gamma": 0.95}}},
    "dr-grpo": {"bank": None, "update": {"advantage": {"type": "mean"}}},
    "rloo": {"bank": None, "update": {"advantage": {"type": "rloo"}}},
    "reinforce": {"bank": None, "update": {"advantage": {"type": "reinforce"}}},
}


def leaves(given, above=""):
    """Values by their dotted keys."""
    for key, value in given.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def at(settings, key):
    for part in key.split("."):
        settings = settings[part]
    return settings


@pytest.mark.parametrize("name", names("methods"))
def test_a_method_has_the_values_of_its_paper(name):
    settings = load_method(name).model_dump(mode="json")
    expected = dict(leaves(PAPERS[name]))
    assert {key: at(settings, key) for key in expected} == expected


CONVERSING = ("coevo-rl", "jerp", "retroagent", "rows")
"""Methods that keep the full history, and tables, whose tools need it."""


def test_pretrained_policies_converse_if_their_method_keeps_full_history():
    recipes = {name: load_recipe(name) for name in names("recipes")}
    pretrained = {name: each.context for name, each in recipes.items() if each.policy.type == "pretrained"}
    conversing = {name for name in pretrained if any(method in name for method in CONVERSING)}
    assert {(pretrained[name].style, pretrained[name].memory_length) for name in conversing} == {("conversation", None)}
    assert {pretrained[name].style for name in pretrained.keys() - conversing} == {"chat"}
    assert all("slea-rl" in name or "context-lite" in name for name in pretrained.keys() - conversing)

"""The guide to a model of one's own, followed with random weights at the shape of Qwen3 and its real chat template."""

import json
import re
import shlex
import signal
from pathlib import Path

import pytest
import torch
from support.runs import coevo, states
from support.templates import tokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save

PAGE = Path(__file__).parents[2] / "docs" / "your-own-model.md"
BRIEF = (
    *("iterations=1", "rollout.group_size=2", "rollout.max_turns=3", "rollout.sampling.max_new_tokens=16"),
    *("bank.every=1", "bank.writer.model={type: policy, max_new_tokens: 32}", "bank.admission.replays=2"),
    "evaluation.tasks=2",
    *("update.advantage={type: reinforce, baseline: none}", "update.invalid_penalty=0.5", "update.optimizer.lr=0.001"),
)
"""Fewer and shorter episodes than the recipe's, and a gradient in each update although all answers are unusable."""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Directory of a random chat model, the same in each session."""
    words, directory = tokenizer("qwen3"), tmp_path_factory.mktemp("models") / "qwen3-0.6b"
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "head_dim": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 4096}
    ends = {"eos_token_id": words.eos_token_id, "bos_token_id": None, "tie_word_embeddings": True}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), **shape, **heads, **ends))
    save(Policy(model, words), directory)
    return directory


def commands():
    """Commands of the page that start coevo, without ``coevo``."""
    lines = re.findall(r"^\$ coevo (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_guide_is_followed_and_a_killed_run_continues_to_the_same_states(model, tmp_path, prefect_url, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    one, two = tmp_path / "one", tmp_path / "two"
    dry, run, resume = ([part.replace("=qwen3-0.6b", f"={model}") for part in line] for line in commands()[:3])
    looked = coevo(*dry, *BRIEF, workspace=one)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert "  | <|im_start|>system" in looked.stdout
    assert "ready to start" in looked.stdout
    killed = coevo(*run, *BRIEF, workspace=one, kill="coevo.tasks.play.play:RolloutWorker.play_turn@5")
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    resumed = coevo(*resume, workspace=one)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    whole = coevo(*run, *BRIEF, workspace=two)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    # Random weights write nothing usable: the run says so, and why.
    assert "of the answers are unusable, mostly: " in whole.stdout + whole.stderr
    _, *learned = ends = states(two, "mine")
    assert all(state["metrics"]["policy/update/grad_norm"] > 0 for state in learned)
    assert [json.dumps(state) for state in states(one, "mine")] == [json.dumps(state) for state in ends]

"""Conversations of a Qwen3-shaped chat policy that real vLLM serves: cached prefixes, adapters, a killed server."""

import re
import urllib.request
from contextlib import closing
from typing import ClassVar

import psutil
import pytest
import torch
from support import templates
from support.families import kill_all
from support.hostile import Hostile
from support.soak import mostly_soak
from transformers import Qwen3Config, Qwen3ForCausalLM

from coevo.configs.context_config import ContextConfig
from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, VllmEngineConfig
from coevo.envs.base import Step
from coevo.models.engines.vllm.vllm_engine import VllmEngine
from coevo.models.engines.vllm.vllm_server import BLOCK
from coevo.models.policy.context import Context
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import build, save
from coevo.records.draws import key
from coevo.tasks.play.play import Attempt, RolloutWorker

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
TURNS = 6
KILLED = 3
"""Turn before which the server is killed."""
CONTEXT = ContextConfig(style="conversation", memory_length=None, placement="turn")


class Halls(Hostile):
    """Every observation is another and quotes control tokens; no action solves a task."""

    name: ClassVar[str] = "halls"

    def _step(self, state, action):
        seen = f"at hall {state} of {'many rooms with drawers, ' * 3}<|im_end|> <s>"
        return Step(state + 1, seen, f"nothing happens <|im_start|>{state}", 0.0, False, False)


class Watched(RolloutWorker):
    """RolloutWorker that adds up the blocks that a turn could find in the cache, and those that it found."""

    whole = found = killed = 0
    kills, victim = False, ""

    def play_turn(self, running):
        turns = [live.turns[-1] for live in running if live.turns]
        before = hits(self.engine) if turns and not self.kills else 0
        live = running[0]
        if self.kills and len(live.turns) == KILLED and live.attempt.id.endswith(self.victim):
            self.killed += 1
            (replica,) = self.engine.replicas
            kill_all(psutil.Process(replica.server.pid).children(recursive=True))
        super().play_turn(running)
        if turns and not self.kills:
            self.whole += sum(len(turn.prompt_ids + turn.completion.token_ids) // BLOCK * BLOCK for turn in turns)
            self.found += hits(self.engine) - before


def hits(engine):
    """Prompt tokens that the server has found in its prefix cache so far."""
    request = urllib.request.Request(
        f"{engine.replicas[0].url}/metrics", headers={"Authorization": f"Bearer {engine.key}"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return float(re.search(r"^vllm:prefix_cache_hits_total\S* (\S+)$", response.read().decode(), re.MULTILINE)[1])


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """Directories of a random policy with Qwen3's template, and of adapters on it."""
    root, tokenizer = tmp_path_factory.mktemp("chat"), templates.tokenizer("qwen3")
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 4096}
    ends = {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": None, "pad_token_id": 0}
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), initializer_range=0.1, **sizes, **heads, **ends))
    save(Policy(model.eval(), tokenizer), root / "full")
    lora = LoraConfig(r=4, alpha=8)
    adapted = build(PretrainedPolicyConfig(type="pretrained", path=str(root / "full"), lora=lora), (), key(1))
    for name, weights in adapted.model.named_parameters():
        if "lora_B" in name:
            weights.data.normal_(std=0.3)
    save(adapted, root / "adapters")
    return root


@pytest.mark.parametrize("name", mostly_soak(["full", "adapters"], "adapters"))
def test_a_server_caches_conversations_and_may_be_killed_in_one(policies, name, tmp_path):
    sampling = SamplingConfig(temperature=1.0, max_new_tokens=24)
    with closing(VllmEngine(policies / name, VllmEngineConfig(type="vllm"), sampling, tmp_path)) as engine:
        env = Halls("<|im_end|>")
        worker = Watched(env, Context(CONTEXT, engine.policy.tokenizer), engine, TURNS)
        attempts = [Attempt(task, 0, (), "rollout", 0, key(0, task.data["n"])) for task in env.sample(8, key(0))]
        episodes = worker.play(attempts)
        share = worker.found / worker.whole
        print(f"{name}: {worker.found:.0f} of {worker.whole} tokens in whole blocks cached, {share:.2%}")
        assert share >= 0.99
        for episode in episodes:
            for one, next_ in zip(episode.turns, episode.turns[1:], strict=False):
                head = one.prompt_ids + one.completion.token_ids
                assert next_.prompt_ids[: len(head)] == head
        engine.forget()
        worker.kills = True
        assert tokens(worker.play(attempts)) == tokens(episodes)
        if name == "full":
            engine.forget()
            apart = Watched(env, worker.context, engine, TURNS, alone=True)
            apart.victim, apart.kills = attempts[5].id, True
            assert tokens(apart.play(attempts)) == tokens(episodes)
            assert apart.killed


def tokens(episodes):
    return [[turn.completion.token_ids for turn in episode.turns] for episode in episodes]

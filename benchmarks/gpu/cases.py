"""Updates that are measured on a GPU: models with random weights, and batches of random tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from transformers import AutoModelForCausalLM

from coevo.configs.env import HomeRulesConfig
from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig, ShapeConfig
from coevo.configs.update.update_config import UpdateConfig
from coevo.envs.registry import make
from coevo.models.capacity.footprint import CONTEXT, peak, training
from coevo.models.capacity.model_shape import shape_of, stated
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import build, save
from coevo.models.policy.tokenizers import word_tokenizer
from coevo.models.trainer.samples import SAMPLES
from coevo.records.draws import generator, key
from coevo.tasks.preflight.memory import Lengths, plan_of

DTYPES: dict[torch.dtype, Literal["float32", "bfloat16"]] = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
RESERVED = 6
"""Token ids that are no words."""

SMALL = ShapeConfig(
    architecture="qwen3", vocabulary=151936, hidden_size=1024, layers=28, heads=16, kv_heads=8, head_dim=128,
    intermediate_size=3072, max_positions=40960, tied=True,
)  # fmt: skip
LARGE = ShapeConfig(
    architecture="qwen3", vocabulary=151936, hidden_size=2560, layers=36, heads=32, kv_heads=8, head_dim=128,
    intermediate_size=9728, max_positions=40960, tied=True,
)  # fmt: skip
EIGHT = ShapeConfig(
    architecture="qwen3", vocabulary=151936, hidden_size=4096, layers=36, heads=32, kv_heads=8, head_dim=128,
    intermediate_size=12288, max_positions=40960, tied=False,
)  # fmt: skip
OFFLOADED = {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}}


@dataclass(frozen=True, slots=True)
class Case:
    """One update to be measured: a model, and the rows of a micro-batch.

    Attributes:
        shape: of the model, which gets random weights in bfloat16 on a GPU and float32 on a CPU.
        lora: its adapters; none trains all weights.
        rows: samples of the batch, in groups of eight.
        prompt: tokens of a prompt.
        answer: tokens of an answer.
        target: tokens per second to be reached on one H200; None for a case without.
        expected: maximum seconds it takes.
        checkpointed: True if activations inside a layer are recomputed.
        zero: DeepSpeed's own settings of ZeRO; None for stage 1 on the GPU.
    """

    shape: ShapeConfig
    lora: LoraConfig | None
    rows: int
    prompt: int
    answer: int
    target: float | None
    expected: float
    checkpointed: bool = False
    zero: dict[str, Any] | None = None

    @property
    def passes(self) -> int:
        """Operations per weight and token: two of each forward, four of a backward pass, two where frozen."""
        forwards = 3 if self.checkpointed else 2
        return 2 * forwards + (2 if self.lora else 4)

    @property
    def tokens(self) -> int:
        """Tokens of the batch."""
        return self.rows * (self.prompt + self.answer)

    def update(self, device: Literal["cpu", "cuda"]) -> UpdateConfig:
        """Settings of the update: one micro-batch."""
        settings = {} if self.zero is None else {"settings": {"zero_optimization": self.zero}}
        deepspeed = {"device": device, "tokens": self.tokens, "timeout": self.expected}
        return UpdateConfig.model_validate(
            {"deepspeed": deepspeed | settings | {"activation_checkpointing": self.checkpointed}}
        )

    def forecast(self) -> int:
        """Bytes on a GPU that the dry run expects of the update."""
        policy = PretrainedPolicyConfig(
            type="pretrained", path="absent", shape=self.shape, lora=self.lora, dtype="bfloat16"
        )
        lengths = Lengths(self.prompt, self.prompt, self.answer, last=self.prompt)
        plan = plan_of(self.update("cuda"), shape_of(policy, 0), lengths)
        return peak([item for item in training(plan) if not item.offloaded]) + CONTEXT


CASES = {
    "update-0.6b-full": Case(SMALL, None, 16, 768, 256, 12_000, 120),
    "update-4b-lora": Case(LARGE, LoraConfig(r=64, alpha=64), 16, 768, 256, 6_300, 200, checkpointed=True),
    "update-8b-lora": Case(EIGHT, LoraConfig(r=64, alpha=64), 16, 768, 256, None, 200, checkpointed=True),
    "update-4b-offloaded": Case(LARGE, None, 16, 768, 256, None, 300, checkpointed=True, zero=OFFLOADED),
}


def build_policy(case: Case, dtype: torch.dtype, device: str, directory: Path, seed: int = 0) -> int:
    """Write a policy with random weights, drawn from a seed, and return their number."""
    spoken = (*make(HomeRulesConfig()).vocabulary, *CONTEXT_WORDS)
    words = (*spoken, *(f"word{number}" for number in range(case.shape.vocabulary - RESERVED - len(set(spoken)))))
    base = directory.with_name("base")
    _write_noise(case.shape, words, dtype, device, base, seed)
    named = PretrainedPolicyConfig(type="pretrained", path=str(base), lora=case.lora, dtype=DTYPES[dtype])
    policy = build(named, (), key("gpu"))
    save(policy, directory)
    return sum(parameter.numel() for parameter in policy.model.parameters())


def _write_noise(
    shape: ShapeConfig, words: Sequence[str], dtype: torch.dtype, device: str, directory: Path, seed: int
) -> None:
    """Write a policy of random weights whose tokenizer knows these words; ``device`` creates it, faster on a GPU."""
    tokenizer, config = word_tokenizer(words), stated(shape)
    config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    config.bos_token_id = None
    with torch.random.fork_rng(devices=[]), torch.device(device):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    save(Policy(model.eval(), tokenizer), directory)


def write_batch(case: Case, path: Path) -> None:
    """Write a batch of rows that share nothing but their length, so that every token is forwarded."""
    draws = generator(key("gpu", "batch"))
    drawn = draws.integers(RESERVED, case.shape.vocabulary, (case.rows, case.prompt + case.answer)).tolist()
    rows = [_row(case, number, ids) for number, ids in enumerate(drawn)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES), path)


def _row(case: Case, number: int, ids: list[int]) -> dict[str, object]:
    return {
        "episode": f"e{number}",
        "group": f"g{number // 8}",
        "turn": 0,
        "prompt_ids": ids[: case.prompt],
        "token_ids": ids[case.prompt :],
        "logprobs": [-10.0] * case.answer,
        "advantage": [1.0 - 2.0 * (number % 2)] * case.answer,
        "value": [],
        "return": [],
    }

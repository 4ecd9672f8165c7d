"""Small policies and requests for tests."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.models.engines.requests import Request
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import build
from coevo.models.policy.tokenizers import word_tokenizer
from coevo.records.draws import key

WORDS = (
    "go",
    "take",
    "use",
    "put",
    "mug",
    "plate",
    "safe",
    "drawer",
    "at",
    "hall",
    "hold",
    "nothing",
    "seen",
    "in",
    "heat",
    "microwave",
)
SMALL = ScratchPolicyConfig(hidden_size=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate_size=48)


def qwen(seed=0, **changes):
    """A random policy of the scratch kind."""
    return build(SMALL.model_copy(update=changes), WORDS, key(seed, "test"))


def llama():
    """A random policy of another architecture, without grouped keys."""
    return _policy(LlamaConfig, LlamaForCausalLM, num_hidden_layers=3)


def qwen2():
    """A random policy with biases, and without norms of queries and keys."""
    policy = _policy(Qwen2Config, Qwen2ForCausalLM, num_hidden_layers=2, num_key_value_heads=2)
    rng = torch.Generator().manual_seed(1)
    for name, weight in policy.model.named_parameters():
        if name.endswith("bias"):
            weight.data.normal_(generator=rng)
    return policy


def _policy(config, model, **sizes):
    tokenizer = word_tokenizer(WORDS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=48,
            num_attention_heads=4,
            initializer_range=0.3,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
            **sizes,
        )
        return Policy(model(config).eval(), tokenizer)


def requests(groups=3, members=4, seed=0):
    """Requests whose prompts share a head within their group, and differ in length behind it."""
    made = []
    for group in range(groups):
        rng = torch.Generator().manual_seed(seed * 100 + group)

        def words(count, rng=rng):
            return tuple(torch.randint(6, 6 + len(WORDS), (count,), generator=rng).tolist())

        head = words(5 + 3 * group)
        made += [Request(head + words(1 + row), key(seed, group, row), f"g{group}") for row in range(members)]
    return made

"""A small model with random weights, the architecture of Qwen3, and Qwen3's real chat template."""

import torch
from support.templates import tokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save


def small_model(folder, positions=4096):
    """Directory of a random chat model, the same in each session."""
    words = tokenizer("qwen3")
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "head_dim": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": positions}
    ends = {"eos_token_id": words.eos_token_id, "bos_token_id": None, "tie_word_embeddings": True}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), **shape, **heads, **ends))
    save(Policy(model, words), folder)
    return folder

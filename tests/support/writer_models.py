"""Questions of a writer, and a small random model with a real chat template that answers them."""

import json
import re

import torch
from support.completions import said
from support.templates import tokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

from coevo.models.policy.language_model import Policy
from coevo.records.writing import Question

SCHEMA = '{"type": "object", "properties": {"lesson": {"type": "string"}}, "required": ["lesson"]}'
STEP = re.compile(
    r'^(\d+)\. observed ".*", action ".*", feedback "(.* (?:in|with|not) .*)"(?:, reward .*)?$', re.MULTILINE
)


def question(user="why did it fail?", **changes):
    fields = {"purpose": "reflection", "task": "t", "episodes": ("e",), "system": "Be brief."}
    return Question(**{**fields, "user": user, **changes})


def model(template="qwen3", positions=1024, seed=0, head_dim=16):
    """A random chat model, the same in each session; some of its answers end."""
    words = tokenizer(template)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": head_dim}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": positions}
    ends = {"eos_token_id": words.eos_token_id, "bos_token_id": None, "tie_word_embeddings": True}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), initializer_range=0.3, **shape, **heads, **ends))
    return Policy(made.eval(), words)


def quoting(asked):
    """Quote the last fact in the feedback of the first attempt, in a fence; without one, write no lesson."""
    first = asked.user.split("Attempt 1")[1].split("Attempt 2 (")[0]
    facts = STEP.findall(first)
    lessons = [
        {"lesson": fact, "when": "a task needs it", "when_not": "", "attempt": 1, "step": int(number)}
        for number, fact in facts[-1:]
    ]
    return said(f"```json\n{json.dumps({'first_wrong_step': 1, 'lessons': lessons})}\n```")


def quoting_writer(url):
    """The setting of a writer with this writer model behind an endpoint."""
    asked = f"{{type: endpoint, url: '{url}', model: writer model, concurrency: 1}}"
    return f"bank.writer={{type: model-contrast, lessons: 1, model: {asked}}}"

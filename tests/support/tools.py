"""The embedded household by tools, and a chat policy that gives one answer to every prompt."""

import json

import torch
from support.templates import tokenizer as tokenizer_of
from tokenizers import AddedToken
from transformers import Qwen3Config, Qwen3ForCausalLM

from coevo.envs.base import Guide
from coevo.envs.homerules import HomeRules
from coevo.models.policy.language_model import Policy

CALL = '<tool_call>\n{"name": "go", "arguments": {"place": "safe"}}\n</tool_call>'
ACTION = '{"name": "go", "arguments": {"place": "safe"}}'


def tool(name):
    schema = {"type": "object", "required": ["place"], "properties": {"place": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": f"{name} to it", "parameters": schema}}


class ToolHouse(HomeRules):
    """The household, whose actions are calls of tools with a place as their argument."""

    tools = tuple(map(tool, ("go", "take", "use", "put")))

    def guide(self, task):
        return Guide("Act by calling a tool.", (), self.tools)

    def step(self, states, actions):
        return super().step(states, list(map(_words, actions)))


def _words(action):
    call = json.loads(action or "{}")
    return " ".join((call["name"], *call["arguments"].values())) if call else ""


def parrot(text):
    """A policy with the template of Qwen3 and one layer; it says the text, a token of its own, whatever the prompt."""
    tokenizer = tokenizer_of("qwen3")
    copy = type(tokenizer)(
        tokenizer_object=tokenizer.backend_tokenizer, eos_token="<|im_end|>", chat_template=tokenizer.chat_template
    )
    copy.add_tokens([AddedToken(text, normalized=False, special=False)])
    said, end, size = copy.convert_tokens_to_ids(text), copy.eos_token_id, len(copy)
    config = Qwen3Config(
        vocab_size=size, hidden_size=size + size % 2, intermediate_size=8, num_hidden_layers=1, head_dim=8,
        num_attention_heads=1, num_key_value_heads=1, max_position_embeddings=8192, tie_word_embeddings=False,
        eos_token_id=end, pad_token_id=end,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        for weight in (model.model.layers[0].self_attn.o_proj, model.model.layers[0].mlp.down_proj, model.lm_head):
            weight.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size, config.hidden_size))
        model.lm_head.weight[said, :size] = 10.0
        model.lm_head.weight[:, said] = 0.0
        model.lm_head.weight[end, said] = 10.0
    return Policy(model, copy)

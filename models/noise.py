"""Policies of random weights at any size, for measurements."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from configs.shape import ShapeConfig
from models.policy import Policy, save
from models.shape import stated
from models.tokenizer import word_tokenizer


def write_noise(shape: ShapeConfig, words: Sequence[str], dtype: torch.dtype, device: str, directory: Path) -> None:
    """Write a policy of this shape whose tokenizer knows these words; made on a device, which is faster on a GPU."""
    tokenizer, config = word_tokenizer(words), stated(shape)
    config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    config.bos_token_id = None
    with torch.random.fork_rng(devices=[]), torch.device(device):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    save(Policy(model.eval(), tokenizer), directory)

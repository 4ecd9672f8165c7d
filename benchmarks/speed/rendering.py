"""Rendering: CPU time to make the prompts of episodes that grow to 5,000 tokens, none of them repeated.

The tokenizer is byte-level BPE with the pre-tokenization, the control tokens and the chat template of Qwen3; its
vocabulary is learned from the documentation here. A prompt's time includes that of its moment.
"""

import random
from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import distribution
from pathlib import Path
from time import process_time
from typing import Literal

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from benchmarks.bench import ROOT, Bench, BenchResult
from coevo.configs.context_config import ContextConfig
from coevo.envs.base import Guide, Step
from coevo.models.policy.context import Context
from coevo.records.demonstration import Answer
from coevo.records.draws import key
from coevo.records.episode import Completion
from coevo.records.task import Task
from coevo.tasks.play.play import Attempt, Running

Style = Literal["conversation", "chat"]
STYLES: tuple[Style, ...] = ("conversation", "chat")
TARGET_SECONDS = 2.0
"""CPU-s per 1,000 prompts of a conversation."""
MAX_PROMPT_TOKENS = 5000
"""Tokens of an episode's last prompt."""
EPISODES = 24
VOCABULARY = 8192
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Pre-tokenization of Qwen3."""


def run(bench: Bench) -> None:
    """Measure each style where it is missing, and print the figures."""
    for style in STYLES:
        report(style, bench.cell(style, partial(measure, style)))


def report(style: Style, result: BenchResult) -> None:
    """Print the time of a style; the target is the conversation's."""
    target = f" (target {TARGET_SECONDS:g})" if style == "conversation" else ""
    print(
        f"{style}: {result['seconds_per_1000']:.2f} CPU-s per 1,000 prompts{target}; {result['prompts']} prompts of "
        f"{result['mean_tokens']:.0f} tokens on average, at most {result['longest']}"
    )


def measure(style: Style) -> BenchResult:
    """Play episodes without a policy, and sum the CPU time of their prompts."""
    tokenizer = qwen()
    context = Context(ContextConfig(style=style, memory_length=None, history="states"), tokenizer)
    seconds, lengths = 0.0, list[int]()
    running = [_begun(number) for number in range(EPISODES)]
    context.prompt(running[0].moment(context))  # finds out the template's layout
    while running:
        since = process_time()
        prompts = [context.prompt(live.moment(context)) for live in running]
        seconds += process_time() - since
        lengths += map(len, prompts)
        for live, prompt in zip(running, prompts, strict=True):
            _advance(live, prompt, tokenizer)
        running = [live for live, prompt in zip(running, prompts, strict=True) if len(prompt) < MAX_PROMPT_TOKENS]
    return {
        "seconds_per_1000": 1000 * seconds / len(lengths),
        "prompts": len(lengths),
        "mean_tokens": sum(lengths) / len(lengths),
        "longest": max(lengths),
    }


def qwen() -> PreTrainedTokenizerFast:
    """A tokenizer like that of Qwen3, with a small vocabulary."""
    backend = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    backend.decoder = decoders.ByteLevel()
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=letters, show_progress=False)
    backend.train_from_iterator(_texts(), trainer)
    backend.add_tokens([AddedToken(text, normalized=False, special=text in CONTROL) for text in (*CONTROL, *MARKS)])
    template = Path(str(distribution("trl").locate_file("trl/chat_templates/qwen3.jinja"))).read_text()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", extra_special_tokens=list(CONTROL), chat_template=template
    )


def _texts() -> Sequence[str]:
    return [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]


def _begun(number: int) -> Running:
    task = Task("bench", "shop", f"find item {number} and {_words(number, 0, 30)}", "", "train", {"number": number})
    attempt = Attempt(task, 0, (), "rollout-0", 1, key("bench", number))
    return Running.begun(attempt, (None, _words(number, 1, 120)), Guide("go PLACE, take THING, look", ("go", "take")))


def _advance(live: Running, prompt: tuple[int, ...], tokenizer: PreTrainedTokenizerFast) -> None:
    number, turn = live.attempt.task.data["number"], len(live.turns)
    said = _words("said", number, turn, 15)
    text = f"Thought: {said}\nAction: go to place {turn}"
    ids = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    seen = _words("seen", number, turn, 50)
    step: Step[object] = Step(None, seen, f"you go to place {turn}", 0.0, done=False, success=False)
    live.advance(prompt, Completion(ids, (0.0,) * len(ids), text, finished=True), Answer(said, f"go to {turn}"), step)


def _words(*parts: object) -> str:
    """So many words of the documentation, in lines, as the last of ``parts`` says."""
    draw, count = random.Random(repr(parts)), int(str(parts[-1]))
    return "\n".join(" ".join(draw.choices(_vocabulary(), k=min(15, count - at))) for at in range(0, count, 15))


@cache
def _vocabulary() -> list[str]:
    return sorted({word for text in _texts() for word in text.split()})

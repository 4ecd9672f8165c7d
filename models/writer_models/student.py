"""A small writer model trained from scratch, for environments that know what their episodes reveal.

Its tokenizer is a byte-level BPE of the questions and answers; its model has the architecture of Qwen3. A server that
speaks OpenAI's protocol can serve the directory in which it is saved.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import PreTrainedTokenizerFast

from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.models.policy.cloning import optimizers, parts, step_on
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import scratch
from coevo.models.writer_models.prompt import Prompts
from coevo.records.draws import Key
from coevo.records.writing import Question

SHAPE = ScratchPolicyConfig(
    hidden_size=128,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=32,
    intermediate_size=256,
    rope_theta=10_000.0,
    max_positions=4096,
)
"""Sizes of the model: about a million weights."""
WORDS = 2048
"""Maximum size of the vocabulary."""
PAD, END, ROLES = "<|pad|>", "<|end|>", ("system", "user", "assistant")
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
EMA, WARMUP, CLIP, RATE = 0.98, 20, 1.0, 5e-3

StudentAnswer = tuple[Question, str]


def student(examples: Iterable[StudentAnswer], key: Key, shape: ScratchPolicyConfig = SHAPE) -> Policy:
    """Build an untrained writer model whose tokenizer has the words of the examples; ``key`` decides its weights."""
    texts = chain.from_iterable((question.system, question.user, answer) for question, answer in examples)
    return scratch(shape, _tokenizer(texts), key)


def train(
    writer_model: Policy,
    material: Callable[[int], Sequence[StudentAnswer]],
    steps: int,
    progress: Callable[[int, float], None],
) -> Policy:
    """Train a writer model and return the average of its weights.

    Args:
        writer_model: trained in place.
        material: answered questions of a step.
        steps: number of optimizer steps.
        progress: receives the number of steps so far, and the mean loss per answer token in nats.
    """
    model, prompts = writer_model.model, Prompts(writer_model.tokenizer, {})
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(EMA))  # type: ignore[no-untyped-call]
    made = optimizers(model, RATE)
    for step in range(steps):
        model.train()
        examples = [(prompts.ids(question), prompts.target(answer)) for question, answer in material(step)]
        rate = RATE * min(1.0, (step + 1) / WARMUP, 2 * (1 - step / steps))
        loss = step_on(model, made, parts(examples), rate, CLIP)
        average.update_parameters(model)
        progress(step + 1, loss)
    model.load_state_dict(average.module.state_dict())
    return Policy(model.eval(), writer_model.tokenizer)


def _tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    special = [PAD, END, *(f"<|{role}|>" for role in ROLES)]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=special[2:],
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )

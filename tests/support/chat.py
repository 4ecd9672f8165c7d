"""Tokenizers with ChatML control tokens, as pretrained policies have them."""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def chat(normalizer=None):
    """A tokenizer of bytes; one of its control tokens is only registered as an added token.

    With a normalizer, control tokens are looked for in what that makes of the text.
    """
    vocabulary = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = Tokenizer(models.BPE(vocabulary, []))
    if normalizer is not None:
        backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokens = ["<|im_start|>", "<|im_end|>", "<|tool|>", "[BOUND]"]
    backend.add_special_tokens([AddedToken(token, normalized=normalizer is not None) for token in tokens])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=AddedToken("<|im_end|>", normalized=normalizer is not None, special=True),
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )

"""The policy: weights, tokenizer, prompt.

Read ``language_model`` and ``policy`` first, then ``context`` (a moment as a prompt) with ``chat_prompt`` for its
styles in prose, and ``ends`` (where an answer ends). ``stored`` and ``sound`` check weights before they are used.
``encoding`` turns text into tokens, control tokens apart from data; ``layout`` finds out what a chat template writes
around messages, and ``template`` tries one and renders it within limits. ``cloning`` is for small policies;
``foreign`` checks models from elsewhere; ``tokenizers`` provides one before the policy exists; ``decoder`` shows
prompts without the model; ``apart`` works in a process of its own.
"""

import os

# Before anything imports Transformers.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

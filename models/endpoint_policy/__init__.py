"""A policy behind an endpoint: it plays and writes without weights here.

Read ``endpoint_engine`` first, then ``call_ledger``, which keeps what was answered and paid. Requests are sent by
``coevo.models.writer_models.chat_endpoint``; ``MessageTokens`` of ``coevo.models.policy.tokenizers`` are the tokens of
its prompts.
"""

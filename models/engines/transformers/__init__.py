"""The embedded engine: transformers in this process, with shared prompts computed once.

Read ``embedded_engine`` first, then ``prefill_rows`` (prompts with equal beginnings) and ``decoding``
(keys and values, the forward, and the draw of a token).
"""

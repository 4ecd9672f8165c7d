"""The embedded engine: transformers in this process, with shared prompts computed once.

Read ``embedded_engine`` first, then ``prefill_rows`` (prompts with equal beginnings), ``key_values`` and
``lean_forward``.
"""

"""Who writes candidates: one module a kind, named after the ``type`` of its configuration.

Each has a function ``writer(config, key) -> Writer``; ``memory.writers.base`` says what a writer is.
"""

"""The generating engines: transformers in this process, vLLM in servers beside it."""

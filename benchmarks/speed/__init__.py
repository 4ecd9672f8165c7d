"""Speed of the parts: engines, prompts, retrieval, orchestration, beside the packages that do the same."""

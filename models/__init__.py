"""The policy, its prompt, its engine and its updates."""

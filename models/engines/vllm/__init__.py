"""vLLM: always servers in an environment of their own, never imported here."""

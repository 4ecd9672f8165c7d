"""``coevo ablate``."""

"""Losses on completion tokens, and what they are made of."""

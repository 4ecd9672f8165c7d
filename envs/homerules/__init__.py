"""The embedded household."""

from envs.homerules.environment import HomeRules

__all__ = ["HomeRules"]

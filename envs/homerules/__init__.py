"""The embedded household."""

from coevo.envs.homerules.homerules import HomeRules

__all__ = ["HomeRules"]

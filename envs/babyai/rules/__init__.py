"""BabyAI with customs: towers whose doors open for one of two named things, by a custom that only outcomes reveal.

Read ``world`` (customs and notes), ``tasks`` (rooms, training, panels), ``room`` (the room in minigrid), ``episode``
(its rules), ``expert``, ``demonstrations`` (cloning and probe), then ``environment``.
"""

from coevo.envs.babyai.rules.babyai_rules import BabyAIRules

__all__ = ["BabyAIRules"]

"""BabyAI with customs: towers whose doors open for one of two named things, by a custom that only outcomes reveal.

Read ``tower_world`` (customs and notes), ``rules_tasks`` (rooms, training, panels), ``room`` (the room in minigrid),
``room_episode`` (its rules), ``rules_expert``, ``rules_demonstrations`` (cloning and probe), then ``babyai_rules``.
"""

from coevo.envs.babyai.rules.babyai_rules import BabyAIRules

__all__ = ["BabyAIRules"]

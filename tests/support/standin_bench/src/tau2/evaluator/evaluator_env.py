from types import SimpleNamespace

from tau2.data_model.message import ToolCall
from tau2.data_model.tasks import RewardType


def _replayed(made, task, messages):
    made.set_state(None, task.initial_state and task.initial_state.initialization_actions, messages)
    return made


class EnvironmentEvaluator:
    @classmethod
    def calculate_reward(cls, environment_constructor, task, full_trajectory, solo_mode):
        criteria = task.evaluation_criteria
        world = _replayed(environment_constructor(solo_mode=solo_mode), task, full_trajectory)
        wanted = _replayed(environment_constructor(), task, [])
        for index, action in enumerate(criteria.actions or ()):
            wanted.get_response(ToolCall(id=str(index), **action))
        checks = [
            SimpleNamespace(
                env_assertion=each, met=getattr(world, each.func_name.removeprefix("assert_"))(**each.arguments)
            )
            for each in criteria.env_assertions or ()
        ]
        parts = {
            RewardType.DB: float((world.db, world.device) == (wanted.db, wanted.device)),
            RewardType.ENV_ASSERTION: float(all(each.met for each in checks)),
        }
        breakdown = {part: value for part, value in parts.items() if part in criteria.reward_basis}
        return SimpleNamespace(reward_breakdown=breakdown, env_assertions=checks)

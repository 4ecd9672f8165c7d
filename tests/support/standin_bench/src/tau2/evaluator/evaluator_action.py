from types import SimpleNamespace


class ActionEvaluator:
    @classmethod
    def calculate_reward(cls, task, full_trajectory):
        calls = [call for message in full_trajectory for call in getattr(message, "tool_calls", None) or ()]
        made = {(call.name, str(call.arguments)) for call in calls}
        wanted = task.evaluation_criteria.actions or ()
        return SimpleNamespace(reward=float(all((each["name"], str(each["arguments"])) in made for each in wanted)))

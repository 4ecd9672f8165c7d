from types import SimpleNamespace


class CommunicateEvaluator:
    @classmethod
    def calculate_reward(cls, task, full_trajectory):
        said = "\n".join(each.content or "" for each in full_trajectory if each.role == "assistant").lower()
        wanted = task.evaluation_criteria.communicate_info or ()
        return SimpleNamespace(reward=float(all(each.lower() in said for each in wanted)))

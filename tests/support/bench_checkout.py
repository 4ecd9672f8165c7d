"""A small checkout for tests, with code that answers the calls which the adapter of tau2-bench makes."""

import json
from pathlib import Path

from support.adapted import call, one
from support.completions import said

from coevo.records.demonstration import Moment
from coevo.records.draws import key

STANDIN = Path(__file__).with_name("standin_bench")
POLICIES = (
    "main_policy.md", "main_policy_solo.md", "tech_support_manual.md", "tech_support_workflow.md",
    "tech_support_workflow_solo.md",
)  # fmt: skip
TRAIN, TEST, SMALL = 12, 6, 8
DONE = call("done")


def checkout(folder, **changed):
    """A checkout in a folder; ``changed`` replaces the content of files of telecom."""
    (folder / "src").symlink_to(STANDIN / "src")
    telecom, retail = (_domain(folder, name) for name in ("telecom", "retail"))
    lines = "".join(f'[lines.n{index}]\nopen = false\nowner = "Zoë {index}"\n' for index in range(4))
    texts = {name: f"# {name}\nBe kind.\n" for name in POLICIES} | {"db.toml": lines, "user_db.toml": "restarts = 0\n"}
    tasks = [telecom_task(index) for index in range(TRAIN + TEST)]
    names = [task["id"] for task in tasks]
    splits = {"train": names[:TRAIN], "test": names[TRAIN:], "base": names}
    small = [telecom_task(index, "[mms_issue]small_") for index in range(SMALL)]
    texts |= {name: json.dumps(value) for name, value in
              (("tasks.json", tasks), ("tasks_small.json", small), ("split_tasks.json", splits))}  # fmt: skip
    _written(telecom, texts | changed)
    lines = {"lines": {"a": {"open": False}}}
    tasks = [retail_task(index) for index in range(4)]
    splits = {"train": ["0", "1"], "test": ["2", "3"]}
    contents = {"db.json": lines, "tasks.json": tasks, "split_tasks.json": splits}
    _written(retail, {"policy.md": "Be brief.\n"} | {name: json.dumps(each) for name, each in contents.items()})
    guidelines = folder / "data" / "tau2" / "user_simulator"
    guidelines.mkdir()
    (guidelines / "simulation_guidelines.md").write_text("You play a customer.<PERSONA_GUIDELINES>")
    (guidelines / "simulation_guidelines_tools.md").write_text("You play a customer with a device.")
    return folder


def telecom_task(index, prefix="[service_issue]fault_"):
    """A task that opens a line and, each second one, restarts the device."""
    number, restarts = f"n{index % 4}", index % 2 == 1
    actions = [{"requestor": "assistant", "name": "open_line", "arguments": {"number": number}}]
    asserted = [{"func_name": "assert_is_open", "arguments": {"number": number}}]
    if restarts:
        actions.append({"requestor": "user", "name": "restart", "arguments": {}})
        asserted.append({"func_name": "assert_is_restarted", "arguments": {}})
    criteria = {"actions": actions, "env_assertions": asserted, "reward_basis": ["ENV_ASSERTION"]}
    return {
        "id": f"{prefix}{index}" + "|restart" * restarts,
        "ticket": f"Line {number} of customer {index} is closed.",
        "user_scenario": f"You are customer {index}; your line {number} is closed.",
        "initial_state": {"initialization_actions": [{"func_name": "show_device", "arguments": {}}]},
        "evaluation_criteria": criteria,
    }


def retail_task(index):
    """A task that opens the line and says so."""
    actions = [{"requestor": "assistant", "name": "open_line", "arguments": {"number": "a"}}]
    basis = ["DB", "COMMUNICATE", "ACTION"]
    criteria = {"actions": actions, "communicate_info": ["Open"], "reward_basis": basis}
    return {"id": str(index), "user_scenario": f"You are {index}.", "evaluation_criteria": criteria}


def _domain(folder, name):
    path = folder / "data" / "tau2" / "domains" / name
    path.mkdir(parents=True)
    return path


def _written(folder, texts):
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def solved(env, task):
    """Last step of the reference solution of a task."""
    state, observation = env.start(task)
    while True:
        step = one(env, state, env.advise(state, Moment(task.instruction, (), (), observation), key()).action)
        state, observation = step.state, step.observation
        if step.done:
            return step


def every_task(env):
    return [*env.sample(10**6, key(0)), *env.panel("solo", len(env.domain.splits["held-out"])).tasks]


class Customer:
    """Answers of a user's model: each message and call in its turn, then what ends the conversation."""

    def __init__(self, *turns):
        self.turns = turns

    def __call__(self, request):
        said_before = sum(each["role"] == "assistant" for each in request.body["messages"])
        turn = self.turns[min(said_before, len(self.turns) - 1)]
        if not isinstance(turn, tuple):
            return said(turn) if isinstance(turn, str) else turn
        function = {"name": turn[0], "arguments": json.dumps(turn[1])}
        return said(None, tool_calls=[{"id": f"call-{said_before}", "type": "function", "function": function}])

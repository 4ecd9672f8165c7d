"""An agent with a loop of its own, which plays HomeRules through a gateway in a process of its own.

    python -m benchmarks.learning.house_agent train|evaluate URL TOKEN_FILE WORLD TASKS REPLICAS

It writes its own messages, reads the answers itself, and reports outcomes; nothing of coevo's rollout worker is in it.
``train`` plays groups of attempts at drawn tasks until the gateway is over; ``evaluate`` plays a held-out panel once in
sessions of mode ``evaluation``, and prints the share of success.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from json import dumps, loads
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

from coevo.configs.env import HomeRulesConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.records.draws import key
from coevo.records.task import Task

PANEL = "seen-houses"
AT_ONCE = 32
"""Episodes at a time."""
TIMEOUT_S = 1200.0
"""Seconds of a request: it waits while the run learns."""
OVER = 410
"""HTTP status of a request to a session, or a gateway, that is over."""


class GatewayOverError(Exception):
    """The gateway trains no more."""


@dataclass(frozen=True, slots=True)
class HouseAgent:
    """The agent.

    Attributes:
        url: address of the gateway.
        token: its token.
        env: the houses.
    """

    url: str
    token: str
    env: Environment[Any]

    def play(self, task: Task, name: str, **opening: Any) -> bool:
        """Play one episode in a session, and report its outcome; True for success."""
        about = {"kind": task.kind, "instruction": task.instruction, "scope": task.scope, "data": dict(task.data)}
        self._post(f"/s/{name}", {"task": about, **opening})
        (state, observation), past, steps = self.env.start(task), "", list[dict[str, object]]()
        done, reward, success = False, 0.0, False
        while not done:
            text = f"{task.instruction} . {{{{lessons}}}} recent{past} . {observation} ."
            body = {"model": "coevo", "messages": [{"role": "user", "content": text}]}
            answer = self._post(f"/s/{name}/v1/chat/completions", body)["choices"][0]["message"]["content"] or ""
            action = answer.partition("act ")[2].strip()
            (step,) = self.env.step([state], [action])
            told = {"observation": observation, "action": action, "feedback": step.feedback, "reward": step.reward}
            steps.append({"turn": len(steps), "valid": step.valid, **told})
            past = f" > {action} : {step.feedback}"
            state, observation, done, success = step.state, step.observation, step.done, step.success
            reward += step.reward
        self._post(f"/s/{name}/outcome", {"reward": reward, "success": success, "steps": steps})
        return success

    def train(self, seed: int, tasks: int, replicas: int) -> None:
        """Play batches of drawn tasks, in groups, until the gateway is over."""
        prefix = token_hex(4)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for batch in count():
                drawn = self.env.at(batch + 1).sample(tasks, key(seed, batch + 1, batch, "sample"))
                groups = [(f"{prefix}-{batch}-{number}", task) for number, task in enumerate(drawn)]
                attempts = [(*group, each) for group in groups for each in range(replicas)]
                if not all(threads.map(lambda attempt: self._attempt(*attempt), attempts)):
                    return

    def evaluate(self, size: int) -> float:
        """Share of success on the panel."""
        panel, prefix = self.env.panel(PANEL, size), token_hex(4)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            played = threads.map(
                lambda each: self.play(each[1], f"{prefix}-{each[0]}", mode="evaluation"), enumerate(panel.tasks)
            )
            return sum(played) / size

    def _attempt(self, group: str, task: Task, replica: int) -> bool:
        """Play an episode of a group; False once the gateway is over."""
        try:
            self.play(task, f"{group}-{replica}", group=group)
        except (GatewayOverError, OSError) as error:
            sys.stderr.write(f"{group}-{replica}: {error!r}\n")
            return False
        return True

    def _post(self, path: str, body: object) -> Any:
        address = urlsplit(self.url)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, dumps(body).encode(), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status == OVER:
            raise GatewayOverError(text.decode(errors="replace"))
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}: {text[:200]!r}")
        return loads(text)


def main(arguments: Sequence[str]) -> None:
    """Train or evaluate as the command line says."""
    what, url, token_file, world, tasks, replicas = arguments
    env = make(HomeRulesConfig(world=int(world)))
    agent = HouseAgent(url, Path(token_file).read_text(encoding="utf-8"), env)
    if what == "train":
        agent.train(int(world), int(tasks), int(replicas))
    else:
        print(agent.evaluate(int(tasks)))


if __name__ == "__main__":
    main(sys.argv[1:])

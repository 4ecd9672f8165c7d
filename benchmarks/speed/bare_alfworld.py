"""TextWorld's engine for PDDL without coevo, to compare the steps of ``alfworld`` with; its interpreter runs it.

Standard input has the games as JSON: data and words of each task, and its commands. Standard output gets the seconds of
all steps, of each round.
"""

import json
import sys
from time import perf_counter


def seconds(games: list[tuple[dict[str, object], str, list[str]]]) -> float:
    """Seconds of all steps of the games, without their starts."""
    from textworld import EnvInfos
    from textworld.envs import PddlEnv

    from coevo.envs.alfworld.household import problem
    from coevo.envs.alfworld.pddl_engine import game_data, goal_text, names_of

    engine, spent = PddlEnv(EnvInfos(won=True, admissible_commands=True)), 0.0
    for data, words, commands in games:
        engine.load(game_data(problem(data, goal_text(str(data["family"]))), words))
        for identity, name in names_of(engine._entity_infos).items():
            engine._entity_infos[identity].name = name
        engine.reset()
        since = perf_counter()
        for command in commands:
            engine.step(command)
        spent += perf_counter() - since
    return spent


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    played = json.load(sys.stdin)
    print(json.dumps([seconds(played) for _ in range(int(sys.argv[2]))]))

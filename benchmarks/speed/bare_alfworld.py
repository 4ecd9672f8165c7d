"""TextWorld's engine for PDDL beside the game that ``alfworld`` makes of it, step by step, in the engine's interpreter.

Standard input has the games as JSON: data and words of each task, and its commands. Standard output gets CPU-seconds of
all steps, of the engine and of the game. Which of them comes first changes from step to step.
"""

import json
import sys
from time import process_time


def cpu_seconds(games: list[tuple[dict[str, object], str, list[str]]]) -> tuple[float, float]:
    """CPU-seconds of all steps, without starts: of the engine alone, and of the game."""
    from textworld import EnvInfos
    from textworld.envs import PddlEnv

    from coevo.envs.alfworld.household import problem
    from coevo.envs.alfworld.pddl_engine import PddlGame, game_data, goal_text, names_of

    engine, spent = PddlEnv(EnvInfos(won=True, admissible_commands=True)), [0.0, 0.0]
    for data, words, commands in games:
        made = game_data(problem(data, goal_text(str(data["family"]))), words)
        engine.load(made)
        for identity, name in names_of(engine._entity_infos).items():
            engine._entity_infos[identity].name = name
        engine.reset()
        game = PddlGame(made, len(commands) + 1)
        for number, command in enumerate(commands):
            for which in (0, 1) if number % 2 else (1, 0):
                since = process_time()
                (game.act if which else engine.step)(command)
                spent[which] += process_time() - since
        game.close()
    return spent[0], spent[1]


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    print(json.dumps(cpu_seconds(json.load(sys.stdin))))

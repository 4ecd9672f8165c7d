"""ALFWorld: households in text, played by TextWorld's engine for PDDL in worker processes (extra ``alfworld``).

Read ``household`` (rooms, goals, and objects and facts of a made game), ``official_games`` (the files of ALFWorld's
authors), ``pddl_engine`` (the engine, in a worker) and ``alfworld``, the environment. This process imports nothing of
the package, so that it may be in an interpreter of its own (``env.python``).
"""

from coevo.envs.alfworld.alfworld import AlfWorld

__all__ = ["AlfWorld"]

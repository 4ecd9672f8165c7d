"""Code blocks in AppWorld, whose package forces pydantic 1 and therefore has an interpreter of its own.

Read ``appworld`` (what a run sees) first, then ``app_episodes`` (an episode, in a worker process) and ``world_child``
(the program in AppWorld's interpreter, which alone runs an agent's code). Nothing of AppWorld is imported here.
"""

from coevo.envs.appworld.appworld import AppWorld

__all__ = ["AppWorld"]

"""Sokoban: boxes that are pushed onto targets, on boards drawn by this project.

Read ``board`` (the rules), ``solver`` (shortest solutions), ``board_draws`` (boards and splits), then ``sokoban``.
"""

from coevo.envs.sokoban.sokoban import Sokoban

__all__ = ["Sokoban"]

"""MineSweeper: cells that are opened, on fields drawn by this project.

Read ``minefield`` (the rules), ``risks`` (the exact risk of each cell), ``field_draws`` (fields, splits, notes), then
``minesweeper``.
"""

from coevo.envs.minesweeper.minesweeper import MineSweeper

__all__ = ["MineSweeper"]

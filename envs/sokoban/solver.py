"""Shortest solutions: A* over player and boxes, with the pushes of each box to its nearest target as lower bound."""

from functools import lru_cache
from heapq import heappop, heappush

from coevo.envs.sokoban.board import Board, SokobanState

MAX_EXPANDED, MAX_DRAWN = 60_000, 6_000
"""Positions after which a search gives up: from any state, and for a board that is being drawn."""

BoardPosition = tuple[int, frozenset[int]]


def solution(state: SokobanState, positions: int = MAX_EXPANDED) -> tuple[str, ...] | None:
    """Actions of a shortest solution; None if there is none, or if the search gives up after so many positions."""
    return _solution(state.board, state.player, state.boxes, positions)


@lru_cache(maxsize=4096)
def _solution(board: Board, player: int, boxes: frozenset[int], positions: int) -> tuple[str, ...] | None:
    if not boxes <= board.pushes.keys():
        return None
    start = (player, boxes)
    origin: dict[BoardPosition, tuple[BoardPosition, str] | None] = {start: None}
    waiting, cost, count = [(0, 0, start)], {start: 0}, 0
    expanded: set[BoardPosition] = set()
    while waiting and len(expanded) < positions:
        position = heappop(waiting)[2]
        if position in expanded:
            continue
        if position[1] == board.targets:
            return _path(origin, position)
        expanded.add(position)
        for action, after in _after(board, position):
            if cost[position] + 1 < cost.get(after, MAX_EXPANDED):
                cost[after], origin[after] = cost[position] + 1, (position, action)
                bound = cost[after] + sum(board.pushes[box] for box in after[1])
                count += 1
                heappush(waiting, (bound, count, after))
    return None


def _after(board: Board, position: BoardPosition) -> list[tuple[str, BoardPosition]]:
    """Actions that change a position, without pushes to dead cells."""
    player, boxes = position
    found = list[tuple[str, BoardPosition]]()
    for action, move in board.moves.items():
        there, beyond = player + move, player + 2 * move
        if board.is_wall(there):
            continue
        if there not in boxes:
            found.append((action, (there, boxes)))
        elif beyond in board.pushes and beyond not in boxes:
            found.append((action, (there, boxes - {there} | {beyond})))
    return found


def _path(origin: dict[BoardPosition, tuple[BoardPosition, str] | None], position: BoardPosition) -> tuple[str, ...]:
    actions = list[str]()
    while (step := origin[position]) is not None:
        position, action = step
        actions.append(action)
    return tuple(reversed(actions))

"""Phases of a run: where the level of a series changes."""

import numpy as np

#: A single large block is not a phase.
SHORTEST = 4


def phase_ends(values):
    """The places where the mean of values changes, and the end.

    Of all ways to cut the series into constant pieces, the one with the least sum of squares, where each cut costs as
    much as noise alone would gain: as `heapline stats` finds them.
    """
    count = len(values)
    penalty = 4 * _noise(values) * max(np.log(count), 1)
    sums = np.concatenate([[0], np.cumsum(values)])
    squares = np.concatenate([[0], np.cumsum(np.square(values))])
    best = [(0.0, 0)]
    for to in range(1, count + 1):
        starts = [0, *range(SHORTEST, to + 1 - SHORTEST)]
        costs = [
            (best[start][0] + max(squares[to] - squares[start] - (sums[to] - sums[start]) ** 2 / (to - start), 0) + penalty, start)
            for start in starts
        ]
        best.append(min(costs))
    ends = []
    end = count
    while end:
        ends.append(end)
        end = best[end][1]
    return ends[::-1]


def _noise(values):
    """The variance of the noise, from differences of neighbours but the largest, which may be changes of level."""
    squares = np.sort(np.square(np.diff(values)))
    squares = squares[: -(-len(squares) * 9 // 10)]
    return max(squares.mean() / 2 if len(squares) else 0, (np.abs(values).max(initial=0) * 0.01) ** 2)

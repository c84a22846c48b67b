"""Random choices for the demo's generators: fast, and the same everywhere."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws that depend on the seed alone.

    Everything rests on `random.Random.random`, the one method whose sequence for an integer seed
    Python guarantees from version to version.

    Args:
      seed: of this stream.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def skewed(self, options: Sequence[T], power: float = 1.7) -> T:
        """One of the options, the first ones more often: a long tail of rare words."""
        return options[int(self._random() ** power * len(options))]

    def synonym(self, options: Sequence[T]) -> T:
        """The first option in three of four cases, else one of the others."""
        if len(options) == 1 or self._random() < 0.75:
            return options[0]
        return options[1 + int(self._random() * (len(options) - 1))]

    def weighted(self, options: Sequence[T], cumulative: Sequence[float]) -> T:
        """An option by cumulative weights, the last of which is 1."""
        x = self._random()
        for option, limit in zip(options, cumulative, strict=True):
            if x < limit:
                return option
        return options[-1]

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

"""Disjoint splits of an endless stream of generated examples."""

import dataclasses
import functools
import zlib
from collections.abc import Callable, Mapping

Pair = tuple[str, str]

# Share of texts: 1/16 each may occur in the test and in the validation split.
_BUCKETS = {"test": (0,), "validation": (1,), "train": tuple(range(2, 16))}
_CANDIDATES = 1 << 12  # seeds set aside for one training example


def split_of(text: str) -> str:
    """The one split in which an input text may occur, by its checksum."""
    bucket = zlib.crc32(text.encode("utf-8")) % 16
    return next(split for split, buckets in _BUCKETS.items() if bucket in buckets)


@dataclasses.dataclass(frozen=True)
class Stream:
    """Splits of a generator.

    Attributes:
      generate: seed -> (input, target); pure.
      seed: of the whole stream.
      sizes: number of examples of each split.
    """

    generate: Callable[[int], Pair]
    seed: int
    sizes: Mapping[str, int]

    def example(self, split: str, index: int) -> Pair:
        """One example, a function of split and index.

        The training split may repeat a short text, as natural data do; the others hold each text
        once.
        """
        if not 0 <= index < self.sizes[split]:
            raise IndexError(f"split '{split}' has examples 0 to {self.sizes[split] - 1}: {index}")
        if split != "train":
            return _held_out(self.generate, self.seed, split, self.sizes[split])[index]
        first = (self.seed << 40) + index * _CANDIDATES
        candidates = map(self.generate, range(first, first + _CANDIDATES))
        return next(pair for pair in candidates if split_of(pair[0]) == split)


@functools.lru_cache(maxsize=16)
def _held_out(
    generate: Callable[[int], Pair], seed: int, split: str, size: int
) -> tuple[Pair, ...]:
    """The first `size` different texts of a split."""
    found: dict[str, str] = {}
    candidate = (seed << 40) - 1
    while len(found) < size:
        text, target = generate(candidate)
        if split_of(text) == split:
            found.setdefault(text, target)
        candidate -= 1
    return tuple(found.items())

"""Disjoint splits of an endless stream of generated examples."""

import dataclasses
import functools
import logging
import zlib
from collections.abc import Callable, Mapping

Pair = tuple[str, str]

# Share of texts: 1/16 each may occur in the test and in the validation split.
_BUCKETS = {"test": (0,), "validation": (1,), "train": tuple(range(2, 16))}
_CANDIDATES = 1 << 12  # seeds set aside for one training example
_MANY = 20_000  # examples from which on generating them takes seconds

_LOG = logging.getLogger(__name__)


def split_of(text: str) -> str:
    """The one split in which an input text may occur, by its checksum."""
    bucket = zlib.crc32(text.encode("utf-8")) % 16
    return next(split for split, buckets in _BUCKETS.items() if bucket in buckets)


@dataclasses.dataclass(frozen=True)
class Stream:
    """Splits of a generator.

    Attributes:
      name: for messages.
      generate: seed -> (input, target); pure.
      seed: of the whole stream.
      sizes: number of examples of each split.
    """

    name: str
    generate: Callable[[int], Pair]
    seed: int
    sizes: Mapping[str, int]

    def examples(self, split: str, first: int = 0, last: int | None = None) -> list[Pair]:
        """The examples `first` to `last` (excluded) of a split; each is a function of its index.

        The training split may repeat a short text, as natural data do; the others hold each once.
        """
        last = self.sizes[split] if last is None else last
        if not 0 <= first <= last <= self.sizes[split]:
            raise IndexError(
                f"split '{split}' of {self.name} has {self.sizes[split]} examples: "
                f"there is no range {first} to {last}"
            )
        if split != "train":
            held_out = _held_out(self.generate, self.seed, split, self.sizes[split])
            return list(held_out[first:last])
        if last - first > _MANY:
            _LOG.info("generating %d training examples of %s", last - first, self.name)
        return [self._training_example(index) for index in range(first, last)]

    def _training_example(self, index: int) -> Pair:
        start = (self.seed << 40) + index * _CANDIDATES
        candidates = map(self.generate, range(start, start + _CANDIDATES))
        return next(pair for pair in candidates if split_of(pair[0]) == "train")


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

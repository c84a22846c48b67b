"""Examples of many lengths to batches of few shapes, and back to input order."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from spec_cascades.models.interface import Prompt


@dataclasses.dataclass(frozen=True)
class Batch:
    """A batch of one of the few shapes.

    Attributes:
        prompt: of B rows, L wide, as NumPy arrays.
        indices: int32 [B], each row's place in the list of examples; 0 for padding rows.
        row_mask: bool [B], False for padding rows.
    """

    prompt: Prompt
    indices: np.ndarray
    row_mask: np.ndarray


def default_buckets(longest: int, smallest: int = 16) -> tuple[int, ...]:
    """Powers of two from `smallest` up to the first that holds `longest`."""
    buckets = [smallest]
    while buckets[-1] < longest:
        buckets.append(2 * buckets[-1])
    return tuple(buckets)


def make_batches(
    inputs: Sequence[np.ndarray], *, batch_size: int, buckets: Sequence[int] | None = None
) -> list[Batch]:
    """Groups inputs of similar length, and pads each group to its bucket.

    A bucket that does not fill its last batch passes the rest on to the next larger bucket, so
    that only one batch of all has padding rows.

    Args:
        inputs: token ids, int32 [length] each.
        batch_size: rows of every batch.
        buckets: input lengths to pad to; powers of two if None.

    Returns:
        batches, shortest inputs first; every index is in exactly one of them.

    Raises:
        ValueError: an input is longer than the largest bucket.
    """
    lengths = [len(row) for row in inputs]
    longest = max(lengths, default=0)
    buckets = sorted(buckets or default_buckets(longest))
    if longest > buckets[-1]:
        raise ValueError(
            f"an input of {longest} tokens is longer than the largest bucket, {buckets[-1]}: "
            "add a larger one, or set input_length to cut inputs"
        )
    batches, waiting = [], []
    for low, high in zip([-1, *buckets], buckets, strict=False):
        waiting += [i for i, length in enumerate(lengths) if low < length <= high]
        while len(waiting) >= batch_size:
            batches.append(_pad(inputs, waiting[:batch_size], batch_size, high))
            waiting = waiting[batch_size:]
        if waiting and high >= longest:
            batches.append(_pad(inputs, waiting, batch_size, high))
            break
    return batches


def _pad(inputs: Sequence[np.ndarray], chosen: list[int], batch_size: int, length: int) -> Batch:
    real = np.arange(batch_size) < len(chosen)
    indices = np.zeros(batch_size, np.int32)
    indices[real] = chosen
    rows = [inputs[index] for index in chosen] + [()] * (batch_size - len(chosen))
    return Batch(Prompt.of(rows, length), indices, real)


def in_input_order(batches: Sequence[Batch], rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Undoes `make_batches`.

    Args:
        batches: as made.
        rows: for each batch, something for each of its rows.

    Returns:
        what belongs to each input, in the order of the inputs; padding rows are dropped.
    """
    found = {
        int(index): item
        for batch, items in zip(batches, rows, strict=True)
        for index, real, item in zip(batch.indices, batch.row_mask, items, strict=True)
        if real
    }
    return [found[index] for index in range(len(found))]

"""Batches of a SeqIO task, grouped by length, and what tells its data from other data."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

Batch = Mapping[str, np.ndarray]
POOL = 16  # Batches among which `group_by_length` sorts.


def group_by_length(
    batches: Iterable[Batch], *, multiple: int = 8, seed: int = 0, first_pool: int = 0
) -> Iterator[Batch]:
    """Regroups batches so that rows of similar length share one, and trims the padding.

    `POOL` batches at a time are sorted by length, cut again and shuffled; each is trimmed to
    its longest row rounded up to `multiple`, so that few shapes are compiled. Every row comes
    out once, and the order depends on the input and `seed` alone. An incomplete last pool (of
    a finite input) is grouped too. `first_pool` numbers the first pool read, so that a stream
    taken up in the middle is shuffled as the whole one is.
    """
    iterator = iter(batches)
    for index in itertools.count(first_pool):
        group = list(itertools.islice(iterator, POOL))
        if not group:
            return
        rows = {name: np.concatenate([batch[name] for batch in group]) for name in group[0]}
        inputs = _row_lengths(rows["encoder_input_tokens"])
        targets = _row_lengths(rows["decoder_target_tokens"])
        chunks = np.array_split(np.lexsort((targets, inputs + targets)), len(group))
        for k in np.random.default_rng((seed, index)).permutation(len(chunks)):
            chunk = chunks[k]
            width = {
                "encoder": -(-inputs[chunk].max() // multiple) * multiple,
                "decoder": -(-targets[chunk].max() // multiple) * multiple,
            }
            yield {name: x[chunk, : width[name.split("_")[0]]] for name, x in rows.items()}


def _row_lengths(tokens: np.ndarray) -> np.ndarray:
    """`[B, L]` right-padded with 0 -> `[B]`, at least 1."""
    return np.maximum((tokens != 0).sum(-1), 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskData:
    """Batches of a SeqIO task or mixture, grouped by length.

    Attributes:
        task: name of a registered task or mixture.
        lengths: `{"inputs": n, "targets": m}`, tokens with EOS.
        batch_size: rows of a batch.
        seed: of the order.
    """

    task: str
    lengths: Mapping[str, int]
    batch_size: int
    seed: int = 0

    @property
    def vocabulary(self):
        """The vocabulary of the targets."""
        from spec_cascades import tasks

        return tasks.vocabulary(self.task)

    def training(self, start_step: int = 0) -> Iterator[Batch]:
        """Infinite shuffled batches from `start_step` on, the same ones on every call."""
        from spec_cascades import tasks

        pool, into_pool = divmod(start_step, POOL)
        batches = tasks.training_dataset(
            self.task,
            batch_size=self.batch_size,
            lengths=self.lengths,
            seed=self.seed,
            start_step=pool * POOL,
        )
        grouped = group_by_length(batches, seed=self.seed, first_pool=pool)
        return itertools.islice(grouped, into_pool, None)

    def validation(self, split: str | None, num_batches: int) -> Callable[[], list[Batch]] | None:
        """A function giving the first batches of `split`, or None where there is no split."""
        if split is None:
            return None
        from spec_cascades import tasks

        batches = tasks.validation_dataset(
            self.task,
            batch_size=self.batch_size,
            lengths=self.lengths,
            split=split,
            num_examples=num_batches * self.batch_size,
        )
        grouped = list(group_by_length(batches))
        return lambda: grouped


# Of a longer split the digest reads so many examples.
_DIGESTED = 100_000


def digest(task: str, split: str) -> dict[str, Any]:
    """What tells a split's data from other data: number of examples, and a digest of their fields.

    Args:
        task: name of a registered task or mixture; of a mixture all its tasks count.
        split: name of the split.

    Returns:
        `{"examples": int or None, "digest": str}`; None where a source
            is long and cannot tell.
    """
    from spec_cascades import tasks

    found = tasks.get_task(task)
    total, content = 0, hashlib.sha256()
    for part in getattr(found, "tasks", [found]):
        content.update(part.name.encode())
        read = 0
        rows = part.source.get_dataset(split=split, shuffle=False).take(_DIGESTED)
        for read, row in enumerate(rows.as_numpy_iterator(), start=1):  # noqa: B007 (used below)
            content.update(repr(sorted(row.items())).encode())
        number = part.source.num_input_examples(split)
        if number is None and read < _DIGESTED:
            number = read
        total = None if None in (total, number) else total + number
    return {"examples": total, "digest": content.hexdigest()[:16]}

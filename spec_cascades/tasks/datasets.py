"""Examples for evaluation and batches for training, both through SeqIO."""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import seqio

from spec_cascades.tasks import registry

Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Example:
    """One evaluation example.

    Attributes:
      index: position in the split, from 0.
      inputs: int32 [length], ends in EOS.
      inputs_text: input before tokenisation, prefix included.
      targets_text: reference.
      targets: int32 [length], ends in EOS.
    """

    index: int
    inputs: np.ndarray
    inputs_text: str
    targets_text: str
    targets: np.ndarray


def examples(
    task: str,
    split: str = "test",
    *,
    num_examples: int | None = None,
    lengths: Mapping[str, int] | None = None,
) -> list[Example]:
    """Reads the examples of a split, in order.

    Args:
      task: registered SeqIO task (or mixture, which is mixed in a fixed order).
      split: name of the split.
      num_examples: how many, from the first; None for all.
      lengths: most tokens, EOS included, of 'inputs' and 'targets'; longer ones are cut, and end in
        EOS all the same.

    Raises:
      ValueError: unknown task or split, or `num_examples` below 1.
    """
    registry.check_split(task, split)
    if num_examples is not None and num_examples < 1:
        raise ValueError(f"num_examples is {num_examples}: at least 1 is expected")
    # SeqIO wants every feature in the mapping, or no mapping.
    sequence_length = None if not lengths else {"inputs": None, "targets": None, **lengths}
    dataset = registry.get_task(task).get_dataset(
        sequence_length=sequence_length, split=split, shuffle=False, seed=0, num_epochs=1
    )
    if num_examples is not None:
        dataset = dataset.take(num_examples)
    return [
        Example(
            index=index,
            inputs=np.asarray(example["inputs"], np.int32),
            inputs_text=_text(example, "inputs"),
            targets_text=_text(example, "targets"),
            targets=np.asarray(example["targets"], np.int32),
        )
        for index, example in enumerate(dataset.as_numpy_iterator())
    ]


def _text(example: Mapping[str, np.ndarray], feature: str) -> str:
    key = f"{feature}_pretokenized"
    if key not in example:
        raise ValueError(
            f"the task's examples have no '{key}': tokenise with seqio.preprocessors.tokenize"
        )
    return example[key].decode("utf-8")


def training_dataset(
    task: str,
    *,
    batch_size: int,
    lengths: Mapping[str, int],
    split: str = "train",
    seed: int = 0,
    start_step: int = 0,
    shard: tuple[int, int] = (0, 1),
) -> Iterator[Batch]:
    """Shuffled batches without end, a function of the arguments alone.

    Resuming with `start_step = n` gives batch n, n + 1, … of the run that began at 0. The examples
    before it are read and passed over.

    Args:
      task: registered SeqIO task or mixture.
      batch_size: examples in a batch, of this shard.
      lengths: tokens of 'inputs' and 'targets': longer ones are cut (keeping EOS), shorter ones
        padded.
      split: name of the split.
      seed: of the order.
      start_step: number of batches to pass over.
      shard: (index, count): this host reads every count-th example from `index` on.

    Yields:
      int32 `encoder_input_tokens` [batch_size, lengths['inputs']], `decoder_input_tokens`,
      `decoder_target_tokens` and `decoder_loss_weights` [batch_size, lengths['targets']].

    Raises:
      ValueError: unknown task or split, or a length below 1.
    """
    dataset = _converted(task, split, lengths, shuffle=True, seed=seed, repeat=True, shard=shard)
    dataset = dataset.skip(start_step * batch_size).batch(batch_size, drop_remainder=True)
    return dataset.as_numpy_iterator()


def validation_dataset(
    task: str,
    *,
    batch_size: int,
    lengths: Mapping[str, int],
    split: str = "validation",
    num_examples: int | None = None,
) -> Iterator[Batch]:
    """Each example of a split once, in order.

    The last batch is filled with rows of zeros, whose loss weights are zero too, so that every
    batch has one shape.

    Args, yields and errors are those of `training_dataset`; `num_examples` limits the split to its
    first ones.
    """
    dataset = _converted(task, split, lengths, shuffle=False, seed=0, repeat=False, shard=(0, 1))
    if num_examples is not None:
        dataset = dataset.take(num_examples)

    def padded() -> Iterator[Batch]:
        for batch in dataset.batch(batch_size).as_numpy_iterator():
            missing = batch_size - len(batch["encoder_input_tokens"])
            yield {key: np.pad(value, ((0, missing), (0, 0))) for key, value in batch.items()}

    return padded()


def _converted(task, split, lengths, *, shuffle, seed, repeat, shard):
    registry.check_split(task, split)
    for feature in ("inputs", "targets"):
        if lengths.get(feature, 0) < 1:
            raise ValueError(
                f"length of '{feature}' is {lengths.get(feature)}: at least 1 is expected"
            )
    index, count = shard
    return seqio.get_dataset(
        registry.get_task(task),
        task_feature_lengths={key: lengths[key] for key in ("inputs", "targets")},
        feature_converter=seqio.EncDecFeatureConverter(pack=False),
        dataset_split=split,
        shuffle=shuffle,
        num_epochs=None if repeat else 1,
        shard_info=seqio.ShardInfo(index=index, num_shards=count) if count > 1 else None,
        verbose=False,
        seed=seed,
    )

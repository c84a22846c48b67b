"""Registers SeqIO tasks over pairs of texts, and knows each task's metrics."""

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence

import seqio
import tensorflow as tf

from spec_cascades.tasks import quality

_METRICS: dict[str, tuple[quality.Metric, ...]] = {}


def text_source(
    load: Callable[[str], Sequence[tuple[str, str]]], sizes: Mapping[str, int]
) -> seqio.FunctionDataSource:
    """Makes a SeqIO source of `{'inputs', 'targets'}` texts that are held in memory.

    Shuffling permutes all examples, anew in every epoch, as a function of the seed. The pipeline
    calls no Python: where TensorFlow's threads call into Python, an iterator that is dropped too
    early can wait for them for ever.

    Args:
      load: returns the (input, target) pairs of a split; called when the split is first read.
      sizes: number of examples of each split.
    """

    @functools.cache
    def tensors(split: str) -> tuple[tf.Tensor, tf.Tensor]:
        inputs, targets = zip(*load(split), strict=True)
        return tf.constant(inputs), tf.constant(targets)

    def dataset(split: str, shuffle_files: bool = False, seed: int | None = None):
        inputs, targets = tensors(split)
        indices = tf.data.Dataset.range(sizes[split])
        if shuffle_files:
            indices = indices.shuffle(sizes[split], seed=seed)
        return indices.map(lambda i: {"inputs": inputs[i], "targets": targets[i]})

    # SeqIO would keep a set of known, small size in memory, in the order of its first epoch.
    return seqio.FunctionDataSource(dataset, splits=tuple(sizes), caching_permitted=False)


def add_task(
    name: str,
    load: Callable[[str], Sequence[tuple[str, str]]],
    sizes: Mapping[str, int],
    vocabulary: seqio.Vocabulary,
    metrics: Sequence[str],
    *,
    replace: bool = False,
) -> seqio.Task:
    """Registers a text-to-text task with SeqIO.

    Both features are tokenised with `vocabulary` and end in EOS, also where they are cut to a
    length. The texts before tokenisation stay available as `inputs_pretokenized` and
    `targets_pretokenized`.

    Args:
      name: task name.
      load: see `text_source`.
      sizes: number of examples of each split.
      vocabulary: of inputs and targets.
      metrics: names of `quality.METRICS`; the first one's primary figure is the task's.
      replace: whether a task of this name is replaced rather than an error.

    Raises:
      ValueError: a name that is taken, or an unknown metric.
    """
    chosen = tuple(quality.get(metric) for metric in metrics)
    if not chosen:
        raise ValueError(f"task '{name}' needs at least one metric of {', '.join(quality.METRICS)}")
    if replace:
        seqio.TaskRegistry.remove(name)
    elif name in seqio.TaskRegistry.names() or name in seqio.MixtureRegistry.names():
        raise ValueError(f"there is already a task or mixture '{name}': choose another name")
    task = seqio.TaskRegistry.add(
        name,
        source=text_source(load, sizes),
        preprocessors=[seqio.preprocessors.tokenize, seqio.preprocessors.append_eos_after_trim],
        output_features={
            "inputs": seqio.Feature(vocabulary, add_eos=True),
            "targets": seqio.Feature(vocabulary, add_eos=True),
        },
        metric_fns=[getattr(quality, metric.name) for metric in chosen],
        shuffle_buffer_size=1,  # the source has shuffled
    )
    _METRICS[name] = chosen
    return task


def get_task(name: str) -> seqio.Task | seqio.Mixture:
    """Returns a registered task or mixture.

    Raises:
      ValueError: unknown name; the nearest one is offered.
    """
    known = sorted({*seqio.TaskRegistry.names(), *seqio.MixtureRegistry.names()})
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
        raise ValueError(f"unknown task '{name}': {hint}")
    return seqio.get_mixture_or_task(name)


def check_split(name: str, split: str) -> None:
    """Raises ValueError unless the task (or every task of the mixture) has the split."""
    provider = get_task(name)
    tasks = provider.tasks if isinstance(provider, seqio.Mixture) else [provider]
    for task in tasks:
        if split not in task.splits:
            raise ValueError(
                f"task '{task.name}' has no split '{split}': it has {', '.join(task.splits)}"
            )


def vocabulary(name: str) -> seqio.Vocabulary:
    """The vocabulary of a task's or mixture's targets."""
    return get_task(name).output_features["targets"].vocabulary


def metrics(name: str) -> tuple[quality.Metric, ...]:
    """The metrics of a task, the one of its primary figure first.

    A task that was registered elsewhere brings SeqIO metric functions of (targets, predictions);
    where one of them has the name of a metric of ours, ours is used.

    Raises:
      ValueError: unknown task, a mixture, or no metric of a known name.
    """
    provider = get_task(name)
    if isinstance(provider, seqio.Mixture):
        parts = ", ".join(task.name for task in provider.tasks)
        raise ValueError(
            f"'{name}' is a mixture and has no metric of its own: choose among {parts}"
        )
    if name in _METRICS:
        return _METRICS[name]
    names = [function.__name__ for function in provider.predict_metric_fns]
    chosen = tuple(quality.METRICS[n] for n in names if n in quality.METRICS)
    if not chosen:
        raise ValueError(
            f"task '{name}' has the metrics {names}, none of {', '.join(quality.METRICS)}"
        )
    return chosen


def primary_metric(name: str) -> str:
    """Key of the figure that a task is judged by: 'bleu', 'accuracy', 'rougeL' or 'exact_match'."""
    return metrics(name)[0].primary

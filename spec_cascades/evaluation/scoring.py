"""Quality of a task's predictions, with its spread over the examples."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

# Resamples for a metric that is a sum over examples, and for any other, which is computed anew.
_CHEAP_RESAMPLES, _RESAMPLES = 1000, 50


@dataclasses.dataclass(frozen=True)
class Quality:
    """Scores of one list of predictions.

    Attributes:
        metric: name of the figure the task is judged by.
        value: that figure.
        standard_error: its bootstrap standard error: its standard deviation over resamples of
            the examples with replacement.
        all: every figure of the task's metrics.
    """

    metric: str
    value: float
    standard_error: float
    all: dict[str, float]


def score(task: str, targets: Sequence[str], predictions: Sequence[str]) -> Quality:
    """Scores predictions by the metrics of a SeqIO task.

    Args:
        task: name of a registered SeqIO task.
        targets: references, before the task's postprocessing.
        predictions: outputs, likewise.

    Returns:
        the scores; the first figure of the first metric is the one the task is judged by.

    Raises:
        ValueError: the task has no metric.
    """
    from spec_cascades import tasks

    provider = tasks.get_task(task)
    functions = provider.predict_metric_fns
    if not functions:
        raise ValueError(f"task {task!r} has no metric to judge predictions by")
    if not any(function.__name__ in tasks.quality.METRICS for function in functions):
        targets = _postprocess(provider, targets, is_target=True)
        predictions = _postprocess(provider, predictions, is_target=False)
        return _any_metric(functions, targets, predictions)
    metrics = tasks.metrics(task)
    values = {k: v for metric in metrics for k, v in metric(targets, predictions).items()}
    first = metrics[0]
    resampled = first.bootstrap(targets, predictions, samples=_CHEAP_RESAMPLES)
    return Quality(first.primary, values[first.primary], float(np.std(resampled)), values)


def _postprocess(provider, texts: Sequence[str], *, is_target: bool) -> list:
    return [provider.postprocess_fn(text, example={}, is_target=is_target) for text in texts]


def _any_metric(functions: Sequence[Callable], targets: list, predictions: list) -> Quality:
    values = {k: float(v) for f in functions for k, v in f(targets, predictions).items()}
    name = next(iter(functions[0](targets, predictions)))
    rng = np.random.default_rng(0)
    resampled = []
    for _ in range(_RESAMPLES):
        chosen = rng.integers(len(targets), size=len(targets))
        sample = [targets[i] for i in chosen], [predictions[i] for i in chosen]
        resampled.append(float(functions[0](*sample)[name]))
    return Quality(name, values[name], float(np.std(resampled)), values)

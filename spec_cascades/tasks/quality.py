"""Quality of generated text: BLEU, ROUGE, accuracy of a marked result, exact match.

A metric is a sum of per-example statistics and a function of that sum. Corpus values, per-example
values and bootstrap resamples all come from the same table: sum the rows that belong to the sample,
aggregate once. BLEU is sacrebleu's and ROUGE is rouge-score's, number for number. All values are
percentages, 0 to 100.
"""

import dataclasses
import difflib
import functools
import re
from collections.abc import Callable, Sequence

import numpy as np

MARK = "####"
_MARKED = re.compile(re.escape(MARK) + r"\s*(\S+)")
_ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")


@dataclasses.dataclass(frozen=True)
class Metric:
    """A corpus metric as a function of summed per-example statistics.

    Attributes:
      name: registered name.
      primary: key, among those of `aggregate`, of the figure to plot.
      statistics: (targets, predictions), N texts each -> float64 [N, S].
      aggregate: sum of the statistics of some examples, float64 [S] -> {key: percentage}.
      summary: one line for help texts.
    """

    name: str
    primary: str
    statistics: Callable[[Sequence[str], Sequence[str]], np.ndarray]
    aggregate: Callable[[np.ndarray], dict[str, float]]
    summary: str

    def __call__(self, targets: Sequence[str], predictions: Sequence[str]) -> dict[str, float]:
        """Corpus values."""
        return self.aggregate(self.statistics(targets, predictions).sum(axis=0))

    def per_example(self, targets: Sequence[str], predictions: Sequence[str]) -> np.ndarray:
        """Values of the primary figure for each example alone, float64 [N]."""
        rows = self.statistics(targets, predictions)
        return np.array([self.aggregate(row)[self.primary] for row in rows])

    def bootstrap(
        self,
        targets: Sequence[str],
        predictions: Sequence[str],
        *,
        samples: int = 1000,
        seed: int = 0,
    ) -> np.ndarray:
        """Values of the primary figure over resamples of the examples with replacement.

        Returns:
          float64 [samples]; its standard deviation is the standard error of the corpus value.
        """
        rows = self.statistics(targets, predictions)
        rng = np.random.default_rng(seed)
        # How often each example was drawn, rather than the drawn rows: [samples, N] x [N, S].
        counts = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=samples)
        return np.array([self.aggregate(total)[self.primary] for total in counts @ rows])


def _check(targets: Sequence[str], predictions: Sequence[str]) -> None:
    if len(targets) != len(predictions):
        raise ValueError(f"{len(targets)} targets but {len(predictions)} predictions")
    if not targets:
        raise ValueError("a metric needs at least one example")


def _mean_metric(keys: Sequence[str]) -> Callable[[np.ndarray], dict[str, float]]:
    """Aggregates statistics [count, value of keys[0], ...] to percentages."""

    def aggregate(total: np.ndarray) -> dict[str, float]:
        return {key: float(100 * total[1 + i] / total[0]) for i, key in enumerate(keys)}

    return aggregate


def marked_result(text: str) -> str | None:
    """The text after the last `####`, or None.

    Thousands separators, a currency sign, a final stop and zero decimals are dropped.
    """
    found = _MARKED.findall(text)
    if not found:
        return None
    result = found[-1].replace(",", "").strip("$€£").rstrip(".")
    return re.sub(r"\.0+$", "", result)


def _accuracy_statistics(targets: Sequence[str], predictions: Sequence[str]) -> np.ndarray:
    _check(targets, predictions)
    wanted = [marked_result(text) for text in targets]
    if None in wanted:
        i = wanted.index(None)
        raise ValueError(
            f"accuracy needs targets that end in '{MARK} RESULT'; target {i} is {targets[i]!r}"
        )
    right = [marked_result(p) == w for p, w in zip(predictions, wanted, strict=True)]
    return np.stack([np.ones(len(right)), np.array(right, np.float64)], axis=1)


def _exact_match_statistics(targets: Sequence[str], predictions: Sequence[str]) -> np.ndarray:
    _check(targets, predictions)
    right = [p.split() == t.split() for t, p in zip(targets, predictions, strict=True)]
    return np.stack([np.ones(len(right)), np.array(right, np.float64)], axis=1)


@functools.cache
def _sacrebleu():
    from sacrebleu.metrics import BLEU

    # effective_order only concerns the sentence score, which is not used; it silences a warning.
    return BLEU(effective_order=True)


def _bleu_statistics(targets: Sequence[str], predictions: Sequence[str]) -> np.ndarray:
    """Rows of [system length, reference length, 4 matches, 4 n-gram counts]."""
    _check(targets, predictions)
    scorer = _sacrebleu()
    scores = [scorer.sentence_score(p, [t]) for t, p in zip(targets, predictions, strict=True)]
    return np.array([[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in scores], np.float64)


def _bleu_aggregate(total: np.ndarray) -> dict[str, float]:
    counts = [int(x) for x in np.rint(total)]
    score = _sacrebleu().compute_bleu(
        correct=counts[2:6],
        total=counts[6:10],
        sys_len=counts[0],
        ref_len=counts[1],
        smooth_method="exp",
    )
    return {"bleu": float(score.score)}


@functools.cache
def _rouge_scorer():
    from rouge_score import rouge_scorer

    return rouge_scorer.RougeScorer(_ROUGE_TYPES, use_stemmer=True)


def _rouge_statistics(targets: Sequence[str], predictions: Sequence[str]) -> np.ndarray:
    _check(targets, predictions)
    scorer = _rouge_scorer()
    scores = [scorer.score(t, p) for t, p in zip(targets, predictions, strict=True)]
    return np.array([[1.0, *(s[key].fmeasure for key in _ROUGE_TYPES)] for s in scores])


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "bleu", "bleu", _bleu_statistics, _bleu_aggregate, "sacrebleu corpus BLEU (13a, exp)"
        ),
        Metric(
            "rouge",
            "rougeL",
            _rouge_statistics,
            _mean_metric(_ROUGE_TYPES),
            "mean F of ROUGE-1, -2, -L, -Lsum (rouge-score, stemmed)",
        ),
        Metric(
            "accuracy",
            "accuracy",
            _accuracy_statistics,
            _mean_metric(["accuracy"]),
            f"share of outputs whose result after '{MARK}' is the target's",
        ),
        Metric(
            "exact_match",
            "exact_match",
            _exact_match_statistics,
            _mean_metric(["exact_match"]),
            "share of outputs equal to the target, up to white space",
        ),
    )
}


def get(name: str) -> Metric:
    """Returns a metric by name.

    Raises:
      ValueError: unknown name; the nearest one is offered.
    """
    if name not in METRICS:
        near = difflib.get_close_matches(name, METRICS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(METRICS)}"
        raise ValueError(f"unknown metric '{name}': {hint}")
    return METRICS[name]


def bleu(targets: list[str], predictions: list[str]) -> dict[str, float]:
    """Corpus BLEU, as `sacrebleu` computes it."""
    return METRICS["bleu"](targets, predictions)


def rouge(targets: list[str], predictions: list[str]) -> dict[str, float]:
    """Mean ROUGE F-measures, as `rouge-score` computes them."""
    return METRICS["rouge"](targets, predictions)


def accuracy(targets: list[str], predictions: list[str]) -> dict[str, float]:
    """Share of predictions whose marked result (`#### N`) is the target's."""
    return METRICS["accuracy"](targets, predictions)


def exact_match(targets: list[str], predictions: list[str]) -> dict[str, float]:
    """Share of predictions equal to the target."""
    return METRICS["exact_match"](targets, predictions)

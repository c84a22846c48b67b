import numpy as np
import pytest
import sacrebleu
from rouge_score import rouge_scorer

from spec_cascades.tasks import quality

TARGETS = [
    "Der Mann kauft heute einen Apfel.",
    "Die Frau liest das Buch, weil sie es liebt.",
    "Das Haus ist sehr groß.",
    "Ein Hund.",
    "Die Kinder spielen im Garten, obwohl es regnet.",
]
PREDICTIONS = [
    "Der Mann kauft heute einen Apfel.",
    "Die Frau liest ein Buch, weil sie es mag.",
    "Das Haus war groß.",
    "",
    "Im Garten spielen die Kinder, obwohl es regnet und schneit.",
]


def test_bleu_is_sacrebleus():
    expected = sacrebleu.corpus_bleu(PREDICTIONS, [TARGETS]).score
    assert 20 < expected < 80
    assert quality.bleu(TARGETS, PREDICTIONS)["bleu"] == pytest.approx(expected, abs=1e-9)


def test_bleu_of_any_resample_is_sacrebleus():
    rng = np.random.default_rng(0)
    metric = quality.get("bleu")
    rows = metric.statistics(TARGETS, PREDICTIONS)
    for _ in range(5):
        chosen = rng.integers(len(TARGETS), size=4)
        expected = sacrebleu.corpus_bleu(
            [PREDICTIONS[i] for i in chosen], [[TARGETS[i] for i in chosen]]
        ).score
        assert metric.aggregate(rows[chosen].sum(axis=0))["bleu"] == pytest.approx(expected)


def test_rouge_is_rouge_scores():
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=True)
    scores = [scorer.score(t, p) for t, p in zip(TARGETS, PREDICTIONS, strict=True)]
    found = quality.rouge(TARGETS, PREDICTIONS)
    for key in ("rouge1", "rouge2", "rougeL", "rougeLsum"):
        assert found[key] == pytest.approx(100 * np.mean([s[key].fmeasure for s in scores]))


@pytest.mark.parametrize(
    "text, result",
    [
        ("3+4=7 #### 7", "7"),
        ("so he has 1,200 dollars.\n#### 1,200", "1200"),
        ("#### $18.00", "18"),
        ("#### 18.", "18"),
        ("#### 1.50", "1.50"),
        ("#### -3", "-3"),
        ("#### 5 #### 6", "6"),
        ("the answer is 7", None),
        ("####", None),
    ],
)
def test_marked_result(text, result):
    assert quality.marked_result(text) == result


def test_accuracy_ignores_the_way_there():
    targets = ["2+2=4 #### 4", "#### 1,000", "#### 7"]
    predictions = ["1+3=4 #### 4", "#### 1000", "7"]
    assert quality.accuracy(targets, predictions)["accuracy"] == pytest.approx(200 / 3)
    assert quality.get("accuracy").per_example(targets, predictions).tolist() == [100, 100, 0]


def test_accuracy_needs_marked_targets():
    with pytest.raises(ValueError, match="target 1 is 'seven'"):
        quality.accuracy(["#### 7", "seven"], ["#### 7", "seven"])


def test_exact_match_ignores_white_space():
    assert quality.exact_match(["a b", "c"], [" a  b ", "d"]) == {"exact_match": 50.0}


def test_bootstrap_spreads_around_the_corpus_value():
    rng = np.random.default_rng(1)
    targets = [f"#### {i}" for i in range(400)]
    predictions = [t if rng.random() < 0.3 else "#### no" for t in targets]
    value = quality.accuracy(targets, predictions)["accuracy"]
    samples = quality.get("accuracy").bootstrap(targets, predictions, samples=400, seed=3)
    assert samples.shape == (400,)
    assert samples.mean() == pytest.approx(value, abs=0.5)
    # The standard error of a share p of n.
    assert samples.std() == pytest.approx(np.sqrt(value * (100 - value) / 400), rel=0.15)
    again = quality.get("accuracy").bootstrap(targets, predictions, samples=400, seed=3)
    assert (samples == again).all()


def test_mismatched_lengths_and_unknown_names_are_refused():
    with pytest.raises(ValueError, match="2 targets but 1 predictions"):
        quality.bleu(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="at least one example"):
        quality.exact_match([], [])
    with pytest.raises(ValueError, match="unknown metric 'blue': did you mean 'bleu'"):
        quality.get("blue")

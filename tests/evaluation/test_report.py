"""Table, picture and page, from made-up points."""

import csv
import io

import pytest

from spec_cascades.decoding import methods
from spec_cascades.evaluation import plots, report, store, summary

ABOUT = {
    "target": "big",
    "drafter": "small",
    "split": "test",
    "num_examples": None,
    "batch_size": 8,
    "max_decode_length": 32,
}


def make_point(name, value=None, *, quality, calls, seed=0, temperature=1.0, gamma=5, **extra):
    """A point with the fields that reports read."""
    method = methods.parse(name)
    point = {
        "id": f"{method.label}-{value}-{seed}-{temperature}-{gamma}",
        "task": "made_up",
        **method.settings(),
        "gamma": gamma if method.uses_gamma else None,
        "temperature": temperature,
        "seed": seed,
        "quality_metric": "bleu",
        "quality": quality,
        "quality_se": 0.5,
        "tokens_per_target_call": calls,
        "batch_tokens_per_target_call": calls and 0.7 * calls,
        "relative_latency": 1.3 / calls if calls else 0.4,
        "measured_speedup": calls / 1.3 if calls else 2.5,
        "token_acceptance": 0.6,
        "acceptance_rate": 0.5,
    }
    if method.uses_gamma:
        point |= {"drafter_step_s": 0.001, "target_step_s": 0.004, "verification_s": 0.008}
        point |= {"drafter_cost": 0.25, "verification_cost": 2.0, "predicted_speedup": 1.2}
        point |= {"predicted_speedup_measured_verification": 0.9}
    if method.parameter:
        point[method.parameter.name] = value
    return point | extra


def make_sweep():
    points = [
        make_point("target", quality=30.0, calls=1.0),
        make_point("drafter", quality=20.0, calls=None),
        make_point("speculative", quality=30.2, calls=2.0),
    ]
    for seed in (0, 1):
        for alpha, quality, calls in [(0.1, 30.0, 2.2), (0.5, 29.8, 2.8), (0.9, 25.0, 4.0)]:
            points.append(
                make_point("token_v3", alpha, quality=quality + seed, calls=calls, seed=seed)
            )
    return points


def make_wide_sweep():
    """Every method of the registry."""
    points = []
    for name in methods.names():
        method = methods.parse(name)
        for place, value in enumerate(method.values):
            calls = None if name == "drafter" else 1 + 0.3 * place * (name != "target")
            quality = 30 - 0.8 * place - 0.1 * len(name)
            points.append(make_point(name, value, quality=quality, calls=calls))
    return points


def test_seeds_become_one_row_with_its_spread():
    rows = summary.rows(make_sweep())
    assert len(rows) == 6
    row = next(row for row in rows if row["alpha"] == 0.5)
    assert row.seeds == 2 and row["quality"] == pytest.approx(30.3)
    assert row.spread == pytest.approx(0.5**0.5)
    assert row.error == pytest.approx(0.5)
    assert row.parameter == "alpha 0.5"


def test_the_best_at_the_targets_quality():
    best = summary.at_target_quality(summary.rows(make_sweep()))
    assert [(row["label"], row["alpha"]) for row in best] == [
        ("token_v3", 0.5),  # 0.9 yields more tokens a call, and falls short
        ("speculative", None),
    ]


def test_csv_has_a_line_for_each_row_and_every_figure():
    lines = list(csv.DictReader(io.StringIO(summary.to_csv(summary.rows(make_sweep())))))
    assert len(lines) == 6
    assert lines[0]["label"] == "target" and float(lines[0]["quality"]) == 30
    assert lines[1]["tokens_per_target_call"] == ""


def test_the_terminal_table_is_aligned():
    block = report.table(make_sweep()).split("\n\n")[0].splitlines()
    assert block[0] == "made_up, T = 1, quality: BLEU"
    assert len({len(line) for line in block[1:]}) == 1
    assert "30.3 ± 0.5" in block[-2]


def test_every_column_is_explained():
    assert list(summary.MEANINGS) == [name for name, _ in summary.COLUMNS]
    page = report._columns()
    assert all(f"<dt>{name}</dt>" in page for name in summary.MEANINGS)


def test_why_it_does_not_pay_is_said_in_words():
    (sentence,) = summary.explain(summary.rows([make_point("speculative", quality=1, calls=1.1)]))
    assert "ratio 0.25" in sentence and "2.00 target steps" in sentence
    assert "5 × 0.25 + 2.00 = 3.25 target steps" in sentence
    assert "verifying a block costs this machine clearly more" in sentence
    assert "slowest row" in sentence
    (sentence,) = summary.explain(summary.rows([make_point("speculative", quality=1, calls=2.6)]))
    assert sentence.endswith("Speculation pays.")


@pytest.mark.parametrize("points", [make_sweep(), make_wide_sweep()], ids=["few", "all methods"])
def test_each_panel_carries_what_can_be_read(points):
    rows = summary.rows(points)
    groups = [
        group
        for key, panel in summary.panels(rows).items()
        for group in plots._families(summary.title(key, panel), panel)
    ]
    shown = {row["label"] for _, group in groups for row in group}
    assert shown == {row["label"] for row in rows} - {"target", "drafter"}
    places = plots._places([group for _, group in groups])
    for _, group in groups:
        labels = {row["label"] for row in group}
        assert len({places[label] for label in labels}) == len(labels)
    pictures = plots.draw(rows)
    assert pictures["png"].startswith(b"\x89PNG") and b"<svg" in pictures["svg"]


def test_one_point_alone_can_be_reported(tmp_path):
    with store.open_folder(tmp_path, {}) as folder:
        point = make_point("token_v3", 0.3, quality=12.0, calls=2.0)
        folder.add(point["id"], point, [])
        report.write(folder, [point], about=ABOUT)
    assert "token_v3" in (tmp_path / "report.html").read_text()


def test_texts_are_escaped_and_examples_coloured(tmp_path):
    prediction = {
        "inputs": "<script>alert(1)</script>",
        "target": "a & b",
        "spans": [["x<y", "draft"], [" z", "target"]],
    }
    provenance = report.Provenance("spec-cascades evaluate", lambda: "evaluate.gammas = 5")
    with store.open_folder(tmp_path, {}) as folder:
        point = make_point("token_v3", 0.3, quality=12.0, calls=2.0)
        folder.add(point["id"], point, [prediction])
        report.write(folder, [point], about=ABOUT, provenance=provenance)
    page = (tmp_path / "report.html").read_text()
    assert "<script>" not in page and "&lt;script&gt;" in page and "a &amp; b" in page
    assert '<span class="draft"' in page and "x&lt;y" in page
    assert "spec-cascades evaluate" in page and "evaluate.gammas = 5" in page

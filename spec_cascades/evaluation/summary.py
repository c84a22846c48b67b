"""What a sweep found: points averaged over seeds, as rows of a table, and what they amount to."""

import csv
import dataclasses
import io
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from spec_cascades.evaluation import costs

# Settings whose values tell the points of one method apart, by kind of parameter.
PARAMETERS = ("alpha", "threshold", "fallback")
_NOT_SETTINGS = ("id", "seed")
# What is averaged over seeds.
_AVERAGED = (
    "quality",
    "quality_se",
    "tokens_per_target_call",
    "batch_tokens_per_target_call",
    "mean_acceptance_length",
    "block_efficiency",
    "acceptance_rate",
    "token_acceptance",
    "rejection_rate",
    "deferral_rate",
    "drafter_calls_per_token",
    "relative_latency",
    "relative_latency_se",
    "measured_speedup",
    "predicted_speedup",
    "predicted_speedup_measured_verification",
    "drafter_cost",
    "verification_cost",
    "drafter_step_s",
    "target_step_s",
    "verification_s",
    "tokens_per_s",
    "wall_clock_s",
    "output_length",
    "cap_hit_rate",
)
_SETTINGS = (
    "task",
    "label",
    "method",
    "kind",
    *PARAMETERS,
    "gamma",
    "temperature",
    "verification",
    "bonus",
    "drafter",
)


@dataclasses.dataclass(frozen=True)
class Row:
    """Points that differ in their seed alone.

    Attributes:
        settings: what they share.
        values: their means; None where a figure does not apply.
        seeds: how many there are.
        spread: standard deviation of quality over seeds, None for one.
    """

    settings: Mapping[str, Any]
    values: Mapping[str, float | None]
    seeds: int
    spread: float | None

    def __getitem__(self, name: str) -> Any:
        return self.settings[name] if name in self.settings else self.values[name]

    @property
    def parameter(self) -> str:
        """The swept value as people write it, such as `alpha 0.3`."""
        for name in PARAMETERS:
            if self.settings.get(name) is not None:
                return f"{name} {number(self.settings[name])}"
        return ""

    @property
    def error(self) -> float:
        """Standard error of quality: over examples, and over seeds where there are several."""
        examples = self.values["quality_se"] or 0.0
        seeds = (self.spread or 0.0) / self.seeds**0.5
        return max(examples / self.seeds**0.5, seeds)


def number(value: Any, digits: int = 3) -> str:
    """A number as short as it can be; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


def rows(points: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Groups points by everything but the seed, in the order they come."""
    groups: dict[tuple, list[Mapping[str, Any]]] = {}
    for point in points:
        key = tuple(point.get(name) for name in _SETTINGS)
        groups.setdefault(key, []).append(point)
    return [
        Row(
            settings=dict(zip(_SETTINGS, key, strict=True))
            | {"quality_metric": group[0]["quality_metric"]},
            values={name: _mean([point.get(name) for point in group]) for name in _AVERAGED},
            seeds=len(group),
            spread=(
                statistics.stdev(point["quality"] for point in group) if len(group) > 1 else None
            ),
        )
        for key, group in groups.items()
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def panels(found: Sequence[Row]) -> dict[tuple[str, float], list[Row]]:
    """Rows by (task, temperature): what can be compared with each other."""
    grouped: dict[tuple[str, float], list[Row]] = {}
    for row in found:
        grouped.setdefault((row["task"], row["temperature"]), []).append(row)
    return grouped


def reference(found: Sequence[Row], kind: str) -> Row | None:
    """The row of the target or of the drafter among comparable rows."""
    return next((row for row in found if row["kind"] == kind), None)


def to_csv(found: Sequence[Row]) -> str:
    """All rows as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_SETTINGS, "seeds", "quality_metric", "quality_sd_over_seeds", *_AVERAGED])
    for row in found:
        settings = [row.settings[name] for name in _SETTINGS]
        own = [row.seeds, row["quality_metric"], row.spread]
        writer.writerow([*settings, *own, *(row.values[name] for name in _AVERAGED)])
    return text.getvalue()


# Columns of the table people see: heading, what it shows.
COLUMNS = (
    ("method", lambda row: row["label"]),
    ("value", lambda row: row.parameter),
    ("gamma", lambda row: number(row["gamma"])),
    ("quality", lambda row: f"{row['quality']:.1f} ± {row.error:.1f}"),
    ("tokens/target call", lambda row: _fixed(row["tokens_per_target_call"], 2)),
    ("acceptance", lambda row: _percent(row["acceptance_rate"])),
    ("deferral", lambda row: _percent(row["deferral_rate"])),
    ("relative latency", lambda row: _fixed(row["relative_latency"], 2)),
    ("tokens/s", lambda row: _fixed(row["tokens_per_s"], 0)),
    ("length", lambda row: _fixed(row["output_length"], 1)),
    ("cut", lambda row: _percent(row["cap_hit_rate"])),
)


# What they mean, for those who see the table for the first time.
MEANINGS = {
    "method": "which method decoded; in brackets, options that differ from the defaults",
    "value": "the method's swept parameter: alpha of a rule, threshold or fallback of a cascade",
    "gamma": "tokens that the drafter proposes at a time",
    "quality": "of all outputs against the references, ± one standard error",
    "tokens/target call": costs.FIGURES["tokens_per_target_call"].meaning,
    "acceptance": costs.FIGURES["acceptance_rate"].meaning,
    "deferral": costs.FIGURES["deferral_rate"].meaning,
    "relative latency": "seconds of the method by seconds of the target alone, measured in turn",
    "tokens/s": "tokens written a second, all rows of a batch together",
    "length": costs.FIGURES["output_length"].meaning,
    "cut": costs.FIGURES["cap_hit_rate"].meaning,
}
_METRIC_NAMES = {
    "bleu": "BLEU",
    "accuracy": "accuracy (%)",
    "exact_match": "exact match (%)",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
}


def _fixed(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def table(found: Sequence[Row]) -> str:
    """All rows for a terminal, one block for each task and temperature."""
    return "\n\n".join(
        f"{title(key, panel)}\n{_table(panel)}" for key, panel in panels(found).items()
    )


def title(key: tuple[str, float], panel: Sequence[Row]) -> str:
    """Task, temperature and what quality is, in a few words."""
    task, temperature = key
    return f"{task}, {temperature_name(temperature)}, quality: {metric_name(panel)}"


def temperature_name(temperature: float) -> str:
    """`greedy (T = 0)`, or the temperature that was sampled at."""
    return f"T = {temperature:g}" if temperature > 0 else "greedy (T = 0)"


def metric_name(panel: Sequence[Row]) -> str:
    """The measure of quality as people write it."""
    name = panel[0]["quality_metric"]
    return _METRIC_NAMES.get(name, name)


def _table(panel: Sequence[Row]) -> str:
    cells = [[name for name, _ in COLUMNS]]
    cells += [[show(row) for _, show in COLUMNS] for row in panel]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def at_target_quality(panel: Sequence[Row]) -> list[Row]:
    """For each method, its row of most tokens per target call at the target's quality.

    A row has the target's quality if it falls short of it by no more than one standard error of
    its own. Methods that never do are left out.
    """
    target = reference(panel, "target")
    if target is None:
        return []
    best: dict[str, Row] = {}
    for row in panel:
        if row["tokens_per_target_call"] is None or row["kind"] in ("target", "drafter"):
            continue
        if row["quality"] + row.error < target["quality"]:
            continue
        known = best.get(row["label"])
        if known is None or row["tokens_per_target_call"] > known["tokens_per_target_call"]:
            best[row["label"]] = row
    return sorted(best.values(), key=lambda row: -row["tokens_per_target_call"])


def explain(panel: Sequence[Row]) -> list[str]:
    """Plain sentences on why speculation pays here, or does not; one for each block size."""
    sentences = []
    for gamma in sorted({row["gamma"] for row in panel if row["gamma"] is not None}):
        blocks = [row for row in panel if row["gamma"] == gamma and row["drafter"] == "model"]
        blocks = [row for row in blocks if row["predicted_speedup"] is not None]
        plain = [row for row in blocks if row["label"] == "speculative"]
        for row in plain or blocks[:1]:
            sentences.append(_explain(row))
    return sentences


def _explain(row: Row) -> str:
    gamma, ratio, check = row["gamma"], row["drafter_cost"], row["verification_cost"]
    predicted = row["predicted_speedup_measured_verification"]
    tokens = predicted * (gamma * ratio + check)
    measured = row["measured_speedup"]
    text = (
        f"{row['label']}{', ' + row.parameter if row.parameter else ''}, gamma {gamma}: a drafter "
        f"step takes {1e3 * row['drafter_step_s']:.2f} ms, a target step "
        f"{1e3 * row['target_step_s']:.2f} ms (ratio {ratio:.2f}), and verifying {gamma + 1} "
        f"tokens at once {1e3 * row['verification_s']:.2f} ms ({check:.2f} target steps). A block "
        f"so costs {gamma} × {ratio:.2f} + {check:.2f} = {gamma * ratio + check:.2f} target steps, "
        f"and at an acceptance of {row['token_acceptance']:.2f} it yields {tokens:.2f} tokens: "
        f"predicted speed-up {predicted:.2f}, measured {measured:.2f} (were a verification as "
        f"cheap as a step: {row['predicted_speedup']:.2f})."
    )
    if measured >= 1:
        return f"{text} Speculation pays."
    reasons = []
    if gamma * ratio > 0.5 * (gamma * ratio + check):
        reasons.append("the drafter's steps are most of a block's time")
    if check > 1.5:
        reasons.append("verifying a block costs this machine clearly more than a single step")
    if row["token_acceptance"] < 0.5:
        reasons.append("most drafts are rejected")
    straggling = row["batch_tokens_per_target_call"], row["tokens_per_target_call"]
    if straggling[0] < 0.9 * straggling[1]:
        reasons.append(
            f"a batch waits for its slowest row ({straggling[0]:.2f} tokens a call for the batch, "
            f"{straggling[1]:.2f} for a row)"
        )
    because = f": {'; '.join(reasons)}" if reasons else ""
    return f"{text} Speculation does not pay here{because}."

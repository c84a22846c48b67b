"""The trade-off picture: quality against tokens per target call, and against relative latency."""

import io
import itertools
from collections.abc import Mapping, Sequence

from spec_cascades.evaluation import summary
from spec_cascades.evaluation.summary import Row

# Okabe and Ito's palette without yellow, which is too pale on white.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
_STYLES = ("-", "--", ":", "-.")
# As many lines as one panel can carry and still be read.
_MOST_LINES = 7
_AXES = (
    ("tokens_per_target_call", "tokens per target call  (more is better)"),
    ("relative_latency", "latency relative to the target  (less is better)"),
)
_FAMILIES = (
    ("token-specific and mixing rules", lambda row: row["kind"] == "rule" and _kind(row) == 0),
    ("rules that choose a model", lambda row: row["kind"] == "rule" and _kind(row) == 1),
    ("rules that judge the drafted token", lambda row: row["kind"] == "rule" and _kind(row) == 2),
    ("cascades without speculation, BiLD", lambda row: row["kind"] != "rule"),
)


def _kind(row: Row) -> int:
    from spec_cascades import rules

    rule = rules.REGISTRY.get(row["method"])
    return 0 if rule is None else ("distribution", "choice", "verdict").index(rule.kind)


def draw(found: Sequence[Row]) -> dict[str, bytes]:
    """Draws the picture.

    A row of the picture is a task and temperature. Where there are more methods than one panel
    can carry, each family of methods has its own row; lossless speculation is in all of them.

    Args:
        found: all rows of a sweep.

    Returns:
        {'png': ..., 'svg': ...}.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = [
        (title, rows, panel)
        for key, panel in summary.panels(found).items()
        for title, rows in _families(summary.title(key, panel), panel)
    ]
    places = _places([rows for _, rows, _ in groups])
    style = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.hashsalt": "spec_cascades",
    }
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            len(groups), 2, figsize=(12, 4.2 * len(groups)), squeeze=False, layout="constrained"
        )
        for pair, (title, rows, panel) in zip(axes, groups, strict=True):
            for axis, (name, label) in zip(pair, _AXES, strict=True):
                _draw_panel(axis, rows, panel, name, places)
                axis.set_xlabel(label)
            pair[0].set_ylabel(summary.metric_name(panel))
            pair[0].set_title(title, loc="left", fontweight="bold", fontsize=11)
            pair[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
        figure.get_layout_engine().set(h_pad=0.15)
        pictures = {}
        for kind in ("png", "svg"):
            content = io.BytesIO()
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(content, format=kind, dpi=150, metadata=metadata)
            pictures[kind] = content.getvalue()
        plt.close(figure)
    return pictures


def _families(title: str, panel: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    methods = [row for row in panel if row["kind"] not in ("target", "drafter")]
    if len(_lines(methods)) <= _MOST_LINES:
        return [(title, methods)]
    lossless = [row for row in methods if row["label"] == "speculative"]
    groups = []
    for name, belongs in _FAMILIES:
        own = [row for row in methods if belongs(row) and row not in lossless]
        if own:
            groups.append((f"{title}\n{name}", lossless + own))
    return groups


def _places(groups: Sequence[Sequence[Row]]) -> dict[str, int]:
    """A number for each label, hence a colour: the same in all panels, distinct within each."""
    places: dict[str, int] = {}
    for rows in groups:
        labels = list(dict.fromkeys(row["label"] for row in rows))
        taken = {places[label] for label in labels if label in places}
        for label in labels:
            if label not in places:
                places[label] = next(i for i in itertools.count() if i not in taken)
                taken.add(places[label])
    return places


def _lines(rows: Sequence[Row]) -> dict[tuple[str, int | None], list[Row]]:
    """Rows that a line connects: one method at one gamma, in the order of the swept value."""
    lines: dict[tuple[str, int | None], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["label"], row["gamma"]), []).append(row)
    return lines


def _draw_panel(
    axis, rows: Sequence[Row], panel: Sequence[Row], name: str, places: Mapping[str, int]
) -> None:
    for kind, style in (("target", "--"), ("drafter", ":")):
        row = summary.reference(panel, kind)
        if row is None:
            continue
        axis.axhline(row["quality"], color="0.35", linestyle=style, linewidth=1.2, label=kind)
        band = row["quality"] - row.error, row["quality"] + row.error
        axis.axhspan(*band, color="0.5", alpha=0.12, linewidth=0)
        if row[name] is not None:
            axis.plot(row[name], row["quality"], "*", color="0.35", markersize=11, zorder=4)
    lines = _lines(rows)
    gammas = sorted({gamma for _, gamma in lines if gamma is not None})
    for (label, gamma), line in lines.items():
        shown = sorted((row for row in line if row[name] is not None), key=_value)
        if not shown:
            continue
        place = places[label]
        several = gamma is not None and len(gammas) > 1
        axis.errorbar(
            [row[name] for row in shown],
            [row["quality"] for row in shown],
            yerr=[row.error for row in shown],
            color=_COLORS[place % len(_COLORS)],
            marker=_MARKERS[place % len(_MARKERS)],
            linestyle=_STYLES[gammas.index(gamma) % len(_STYLES)] if several else "-",
            markersize=5.5,
            linewidth=1.6,
            elinewidth=0.7,
            label=f"{label}, gamma {gamma}" if several else label,
        )
    if name == "tokens_per_target_call" and axis.get_xlim()[1] > 20:
        axis.set_xscale("log")
    axis.grid(color="0.9", linewidth=0.8)
    axis.set_axisbelow(True)


def _value(row: Row) -> float:
    for name in summary.PARAMETERS:
        if row[name] is not None:
            return float(row[name])
    return 0.0

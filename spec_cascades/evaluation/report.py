"""Writes what a sweep found: summary.csv, tradeoff.png and .svg, report.html."""

import dataclasses
import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spec_cascades import records
from spec_cascades.evaluation import costs, plots, store, summary
from spec_cascades.text import coloring


@dataclasses.dataclass(frozen=True)
class Provenance:
    """How a sweep was started.

    Attributes:
        command: the command line.
        config: returns the operative gin configuration.
    """

    command: str
    config: Callable[[], str]


def write(
    folder: store.Folder,
    points: Sequence[Mapping[str, Any]],
    *,
    about: Mapping[str, Any],
    provenance: Provenance | None = None,
) -> None:
    """Writes table, picture and report of the points into the folder."""
    found = summary.rows(points)
    records.write_atomically(folder.path / "summary.csv", summary.to_csv(found))
    pictures = plots.draw(found)
    for kind, content in pictures.items():
        records.write_atomically(folder.path / f"tradeoff.{kind}", content)
    page = _page(
        found,
        picture=pictures["svg"].decode(),
        examples=_examples(folder, points),
        about=about,
        provenance=provenance,
    )
    records.write_atomically(folder.path / "report.html", page)


def table(points: Sequence[Mapping[str, Any]]) -> str:
    """The table for a terminal, and under it what reaches the target's quality."""
    found = summary.rows(points)
    return "\n\n".join([summary.table(found), *_findings(found)])


def _findings(found: Sequence[summary.Row]) -> list[str]:
    texts = []
    for key, panel in summary.panels(found).items():
        best = summary.at_target_quality(panel)
        if not best:
            continue
        listed = "\n".join(
            f"  {row['tokens_per_target_call']:.2f}  {row['label']}"
            f"{' ' + row.parameter if row.parameter else ''}"
            f"{' gamma ' + str(row['gamma']) if row['gamma'] else ''}"
            for row in best[:5]
        )
        place = f"{key[0]}, {summary.temperature_name(key[1])}"
        texts.append(f"{place}: most tokens per target call at the target's quality\n{listed}")
    return texts


# ---------------------------------------------------------------------------------------------
# The page
# ---------------------------------------------------------------------------------------------

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 76rem; margin: 2rem auto;
       padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem }
.scroll { overflow-x: auto } .scroll > svg { width: 100%; min-width: 46rem; height: auto }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #e4e4e4; text-align: right;
         white-space: nowrap }
th { border-bottom: 2px solid #888; font-weight: 600 }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
tr.reference { background: #f3f3f3; font-weight: 600 }
td.text { white-space: normal; min-width: 16rem; text-align: left; vertical-align: top;
          line-height: 1.7 }
pre { background: #f6f6f6; padding: .8rem 1rem; overflow-x: auto; font-size: .82rem }
.draft { background: #d3e9f7; border-radius: 2px }
.target { background: #ffd9bd; font-weight: 700; border-radius: 2px }
.bonus { background: #cdeee2; text-decoration: underline; border-radius: 2px }
.muted { color: #666 } dt { font-weight: 600 } dd { margin: 0 0 .4rem 1.2rem }
summary { cursor: pointer; font-weight: 600; margin: .6rem 0 }
@media (max-width: 40rem) { body { margin: 1rem auto; padding: 0 .8rem } }
"""


_INTRODUCTION = (
    "A large model, the <em>target</em>, and a small one, the <em>drafter</em>, answer the same "
    "inputs by several methods. In speculative methods the drafter proposes a block of gamma "
    "tokens, the target scores them all in one call, and a rule decides which of them stand. "
    "Higher is better in both pictures; right is cheaper in the left one, left is cheaper in the "
    "right one."
)


def _page(found, *, picture, examples, about, provenance) -> str:
    tasks = ", ".join(dict.fromkeys(row["task"] for row in found))
    sections = [
        f"<h1>Quality against cost: {html.escape(tasks)}</h1>",
        f'<p class="muted">target {html.escape(str(about["target"]))}, '
        f"drafter {html.escape(str(about['drafter']))}, split {html.escape(about['split'])}"
        f"{', first ' + str(about['num_examples']) + ' examples' if about['num_examples'] else ''}"
        f", batch {about['batch_size']}, at most {about['max_decode_length']} tokens</p>",
        f"<p>{_INTRODUCTION}</p>",
        f'<div class="scroll">{picture[picture.index("<svg") :]}</div>',
        '<p class="muted">A star marks the target decoding alone, grey bands one standard error. '
        "Bars are standard errors, over examples (bootstrap) or over seeds, whichever is larger. "
        "The drafter alone makes no target call.</p>",
        *_at_target_quality(found),
        "<h2>Why speculation pays, or does not</h2>",
        *_explanations(found),
        "<h2>All points</h2>",
        _columns(),
        *_tables(found),
        *examples,
        "<h2>What the figures are</h2>",
        _glossary(),
        *_how_to_reproduce(provenance),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(tasks)}: quality against cost</title>"
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(sections) + "\n</body></html>\n"
    )


def _html_table(headings: Sequence[str], lines: Sequence[tuple[str, Sequence[str]]]) -> str:
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(
        f'<tr class="{css}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        for css, cells in lines
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _tables(found) -> list[str]:
    parts = []
    for key, panel in summary.panels(found).items():
        lines = [
            (
                "reference" if row["kind"] in ("target", "drafter") else "",
                [show(row) for _, show in summary.COLUMNS],
            )
            for row in panel
        ]
        parts.append(
            f"<details open><summary>{html.escape(summary.title(key, panel))}</summary>"
            + _html_table([name for name, _ in summary.COLUMNS], lines)
            + "</details>"
        )
    return parts


def _columns() -> str:
    items = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(meaning)}</dd>"
        for name, meaning in summary.MEANINGS.items()
    )
    return f"<details><summary>What the columns are</summary><dl>{items}</dl></details>"


def _at_target_quality(found) -> list[str]:
    parts = []
    names = ("method", "value", "gamma", "quality", "tokens/target call", "relative latency")
    columns = [column for column in summary.COLUMNS if column[0] in names]
    for key, panel in summary.panels(found).items():
        best = summary.at_target_quality(panel)
        if best:
            lines = [("", [show(row) for _, show in columns]) for row in best]
            parts.append(f"<h3>{html.escape(summary.title(key, panel))}</h3>")
            parts.append(_html_table([name for name, _ in columns], lines))
    if not parts:
        return []
    intro = (
        "<p>For each method the point of most tokens per target call among those that fall short "
        "of the target's quality by no more than their own standard error.</p>"
    )
    return ["<h2>At the target's quality</h2>", intro, *parts]


def _explanations(found) -> list[str]:
    parts = [
        "<p>A block of gamma drafts costs gamma drafter steps and one verification by the target; "
        "at acceptance a it yields (1 − a<sup>gamma+1</sup>) / (1 − a) tokens. Each step was "
        "timed by itself, at the batch size of the sweep. Measured speed-up also holds what the "
        "model leaves out: encoding the input, and waiting for the slowest row of a batch.</p>"
    ]
    for key, panel in summary.panels(found).items():
        sentences = summary.explain(panel)
        if sentences:
            items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
            parts.append(f"<h3>{html.escape(summary.title(key, panel))}</h3><ul>{items}</ul>")
    return parts if len(parts) > 1 else ["<p>No method of this sweep speculates.</p>"]


def _examples(folder: store.Folder, points: Sequence[Mapping[str, Any]]) -> list[str]:
    """A few outputs of a few points, with each token coloured by who wrote it."""
    parts = []
    panels: dict[tuple[str, float], list[Mapping[str, Any]]] = {}
    for point in points:
        panels.setdefault((point["task"], point["temperature"]), []).append(point)
    for (task, temperature), panel in panels.items():
        chosen = _telling_points(panel)
        predictions = [folder.predictions(point["id"]) for point in chosen]
        blocks = []
        for shown in zip(*predictions, strict=False):
            if not all("spans" in prediction for prediction in shown):
                break
            blocks.append(_example(chosen, shown))
        if blocks:
            heading = f"{task}, {summary.temperature_name(temperature)}"
            parts.append(f"<h3>{html.escape(heading)}</h3>" + "".join(blocks))
    if not parts:
        return []
    return ["<h2>Examples</h2>", f"<p>{coloring.legend('html')}.</p>", *parts]


def _telling_points(panel: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The target, lossless speculation, and of up to three other methods the middle value."""
    by_label: dict[str, list[Mapping[str, Any]]] = {}
    for point in panel:
        by_label.setdefault(point["label"], []).append(point)
    first = [label for label in ("target", "drafter", "speculative") if label in by_label]
    others = [label for label in by_label if label not in first]
    others.sort(key=lambda label: not label.startswith("token_v3"))
    return [by_label[label][len(by_label[label]) // 2] for label in first + others[:3]]


def _example(points, predictions) -> str:
    lines = [("input", html.escape(predictions[0]["inputs"]))]
    lines.append(("reference", html.escape(predictions[0]["target"])))
    for point, prediction in zip(points, predictions, strict=True):
        value = next((f" {n} {point[n]}" for n in summary.PARAMETERS if point.get(n)), "")
        lines.append((f"{point['label']}{value}", coloring.to_html(prediction["spans"])))
    body = "".join(
        f'<tr><td>{html.escape(name)}</td><td class="text">{text}</td></tr>' for name, text in lines
    )
    return f'<div class="scroll"><table style="margin-bottom:1rem">{body}</table></div>'


def _glossary() -> str:
    items = "".join(
        f"<dt>{html.escape(name)} = <code>{html.escape(figure.formula)}</code></dt>"
        f"<dd>{html.escape(figure.meaning)}</dd>"
        for name, figure in costs.FIGURES.items()
    )
    return (
        f"<details><summary>Formulas</summary><dl>{items}"
        "<dt>relative latency = <code>seconds of the method / seconds of the target</code></dt>"
        "<dd>on the same batches, in turn, in one process, after compilation</dd></dl></details>"
    )


def _how_to_reproduce(provenance: Provenance | None) -> list[str]:
    if provenance is None:
        return []
    return [
        "<h2>How to reproduce</h2>",
        f"<pre>{html.escape(provenance.command)}</pre>",
        "<details><summary>Operative gin configuration (config.gin)</summary>"
        f"<pre>{html.escape(provenance.config())}</pre></details>",
    ]

"""`spec-cascades rules`: what the registry knows."""

import argparse
import math
import textwrap

from spec_cascades.cli import arguments


def add(commands) -> None:
    """Adds the command."""
    parser = arguments.add_command(
        commands,
        "rules",
        run,
        summary="list the deferral rules, with the range and meaning of alpha",
        description="Lists the deferral rules: what they do, the range of alpha, where they are "
        "lossless,\nand where they come from. Those of your own come with --import=MODULE.",
        gin=False,
    )
    parser.add_argument("names", nargs="*", metavar="RULE", help="these rules alone")
    parser.add_argument("--markdown", action="store_true", help="print a table for documents")


def run(options: argparse.Namespace) -> int:
    """Prints the list."""
    from spec_cascades import rules

    chosen = [rules.get(name) for name in options.names or rules.names()]
    print(markdown(chosen) if options.markdown else "\n\n".join(map(describe, chosen)))
    return 0


def describe(rule) -> str:
    """A rule in a few lines."""
    lines = [f"{rule.name}: {rule.summary}"]
    if rule.alpha is None:
        lines.append("no alpha")
    for parameter in ([rule.alpha] if rule.alpha else []) + list(rule.parameters):
        lines += _describe_parameter(parameter)
    notes = []
    if not rule.has_target_distribution:
        notes.append("token verification only")
    if rule.kind == "choice":
        notes.append(f"also token_cascade:{rule.name}")
    lines.append("; ".join([f"source: {rule.source}", *notes]))
    return textwrap.indent("\n".join(lines), "  ")[2:]


def markdown(chosen) -> str:
    """A table of rules."""
    lines = [
        "| rule | what it does | alpha | lossless at | source |",
        "|---|---|---|---|---|",
    ]
    for rule in chosen:
        alpha = rule.alpha
        spans = f"{_number(alpha.low)} .. {_number(alpha.high)}: {alpha.meaning}" if alpha else "–"
        if not alpha or alpha.lossless is None:
            lossless = "–"
        else:
            lossless = _number(alpha.lossless)
        others = "".join(f"; `{p.name}`: {p.meaning}" for p in rule.parameters)
        cells = [f"`{rule.name}`", rule.summary, spans + others, lossless, rule.source]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _describe_parameter(parameter) -> list[str]:
    words = "".join(f" or {word!r}" for word in parameter.choices)
    spans = f"{_number(parameter.low)} .. {_number(parameter.high)}{words}"
    text = f"{parameter.name}: {spans}, default {_number(parameter.default)}"
    if parameter.lossless is not None:
        text += f", lossless at {_number(parameter.lossless)}"
    grid = ", ".join(_number(value) for value in parameter.grid)
    return [text, f"  {parameter.meaning}"] + ([f"  sweeps: {grid}"] if grid else [])


def _number(value: float | str) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "-inf" if value < 0 else "inf"
    return value if isinstance(value, str) else f"{value:g}"

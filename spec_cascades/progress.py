"""One progress bar for terminals, and plain lines, now and then, for log files."""

import sys
from typing import Any, TextIO

import tqdm

_SECONDS_BETWEEN_LINES = 30


class _Lines:
    """Turns what tqdm draws over and over in one place into lines."""

    def __init__(self, file: TextIO):
        self._file = file
        self._last = ""

    def write(self, text: str) -> None:
        line = text.strip()
        if line and line != self._last:
            self._file.write(line + "\n")
            self._last = line

    def flush(self) -> None:
        self._file.flush()


def bar(total: int, *, unit: str, description: str, initial: int = 0, disable: bool = False) -> Any:
    """A tqdm bar on stderr: redrawn in a terminal, a line every half minute elsewhere.

    Args:
        total: units in all.
        unit: what is counted, as `step`.
        description: stands in front, until the bar's `set_description_str`.
        initial: units done before.
        disable: show nothing.
    """
    terminal = sys.stderr.isatty()
    drawing = "|{bar:30}| " if terminal else ""
    return tqdm.tqdm(
        total=total,
        initial=initial,
        unit=unit,
        desc=description,
        disable=disable,
        file=sys.stderr if terminal else _Lines(sys.stderr),
        bar_format="{desc} "
        + drawing
        + "{percentage:3.0f} %, {elapsed} spent, {remaining} left{postfix}",
        mininterval=0.2 if terminal else _SECONDS_BETWEEN_LINES,
        maxinterval=10 if terminal else _SECONDS_BETWEEN_LINES,
        dynamic_ncols=terminal,
    )

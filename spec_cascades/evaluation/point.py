"""Points of a sweep: one method at one value, gamma, temperature and seed, on one task."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from spec_cascades import records
from spec_cascades.decoding import methods


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a sweep.

    Attributes:
        task: SeqIO task.
        method: what decodes.
        value: of the method's swept parameter, None if it has none.
        gamma: block size, None for methods without blocks.
        temperature: of sampling; 0 is greedy.
        seed: of sampling.
    """

    task: str
    method: methods.Method
    value: float | None
    gamma: int | None
    temperature: float
    seed: int

    def settings(self) -> dict[str, Any]:
        """The settings as they operate, JSON-ready."""
        settings = {"task": self.task, **self.method.settings()}
        if self.method.parameter is not None:
            settings[self.method.parameter.name] = self.value
        return settings | {
            "gamma": self.gamma,
            "temperature": self.temperature,
            "seed": self.seed,
        }

    @property
    def id(self) -> str:
        """Short name, from the settings that make a difference (a label makes none)."""
        return records.point_id({k: v for k, v in self.settings().items() if k != "label"})


def plan(
    tasks: Sequence[str],
    chosen: Sequence[methods.Method],
    *,
    gammas: Sequence[int],
    temperatures: Sequence[float],
    seeds: Sequence[int],
) -> list[Point]:
    """All points of a sweep, each once, in the order in which they run.

    At T = 0 nothing is random, so the first seed stands for all. Methods without blocks ignore
    gamma. BiLD, which is greedy, runs at T = 0 alone.
    """
    points = {}
    for task, temperature, method in itertools.product(tasks, temperatures, chosen):
        if method.greedy_only and temperature > 0:
            continue
        sizes = (method.gammas or gammas) if method.uses_gamma else (None,)
        for gamma, value, seed in itertools.product(
            sizes, method.values, seeds if temperature > 0 else seeds[:1]
        ):
            point = Point(
                task=task,
                method=method,
                value=value,
                gamma=gamma,
                temperature=float(temperature),
                seed=seed,
            )
            points.setdefault(point.id, point)
    return list(points.values())

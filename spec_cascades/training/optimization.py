"""How long and how fast to learn: settings of a fit, its schedule and its optimizer."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import optax

from spec_cascades import checks, rules

SCHEDULES = ("constant", "linear", "cosine", "rsqrt")
OPTIMIZERS = ("adamw", "adafactor")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how fast to learn.

    Attributes:
        steps: optimizer steps in all.
        learning_rate: the peak, reached after `warmup_steps`.
        warmup_steps: steps of linear warm-up; the first of them has a rate above 0 already.
            None: a tenth of `steps`, at most 500.
        schedule: what follows the warm-up: "linear" or "cosine" to 0 at `steps`, "rsqrt"
            (inverse square root of the step, T5's own), or "constant".
        optimizer: "adafactor", T5's own: its steps are relative to each parameter's size, which
            T5's embeddings of unit variance need (from scratch, on Multi30k and on the demo, it
            learned in a third to half of AdamW's steps); or "adamw", whose steps are absolute.
        weight_decay: decoupled decay of the matrices (never of norm scales), AdamW's alone.
        clip_norm: the gradient's global norm is clipped to this.
        seed: of the initial parameters, the dropout and the order of the data.
        checkpoint_every: steps between checkpoints.
        report_every: steps between lines of metrics.jsonl.
        validate_every: steps between passes over the validation batches.
    """

    steps: int
    learning_rate: float = 1e-2
    warmup_steps: int | None = None
    schedule: str = "linear"
    optimizer: str = "adafactor"
    weight_decay: float = 0.0
    clip_norm: float = 1.0
    seed: int = 0
    checkpoint_every: int = 500
    report_every: int = 50
    validate_every: int = 500

    def __post_init__(self):
        for name, known in [("schedule", SCHEDULES), ("optimizer", OPTIMIZERS)]:
            if getattr(self, name) not in known:
                raise ValueError(rules.unknown(name, getattr(self, name), known))
        checks.counts(
            checkpoint_every=self.checkpoint_every,
            report_every=self.report_every,
            validate_every=self.validate_every,
        )
        if self.steps is not None:  # None stands for "not given yet", see `Run.check`
            checks.counts(steps=self.steps)
        checks.positive(learning_rate=self.learning_rate, clip_norm=self.clip_norm)
        checks.not_negative(weight_decay=self.weight_decay)
        checks.sampling(seed=self.seed)
        if self.weight_decay and self.optimizer != "adamw":
            raise ValueError(f"weight_decay={self.weight_decay} needs optimizer='adamw'")
        most = math.inf if self.steps is None else self.steps
        if self.warmup_steps is not None and not (
            checks.is_whole(self.warmup_steps, 0) and self.warmup_steps <= most
        ):
            raise ValueError(
                f"warmup_steps must be a whole number from 0 to steps = {self.steps}, "
                f"got {self.warmup_steps!r}"
            )


def warmup(settings: Settings) -> int:
    """Steps of warm-up: those that were set, or what suits the number of steps."""
    if settings.warmup_steps is None:
        return min(500, settings.steps // 10)
    return settings.warmup_steps


def learning_rate_schedule(settings: Settings) -> optax.Schedule:
    """Step, from 0 -> learning rate: linear warm-up, whose last step has the peak, then decay."""
    peak, rising = settings.learning_rate, warmup(settings)
    remaining = max(1, settings.steps - rising)
    after = {
        "constant": optax.constant_schedule(peak),
        "linear": optax.linear_schedule(peak, 0.0, remaining),
        "cosine": optax.cosine_decay_schedule(peak, remaining),
        # `join_schedules` counts from the end of the warm-up.
        "rsqrt": lambda step: peak * jnp.sqrt(max(1, rising) / jnp.maximum(step + rising, 1)),
    }[settings.schedule]
    if rising == 0:
        return after
    return optax.join_schedules(
        [optax.linear_schedule(peak / rising, peak, rising - 1), after], [rising]
    )


def make_optimizer(settings: Settings) -> optax.GradientTransformation:
    """Gradient clipping followed by AdamW or Adafactor under the settings' schedule."""
    rate = learning_rate_schedule(settings)
    if settings.optimizer == "adafactor":
        inner = optax.adafactor(rate, multiply_by_parameter_scale=True, clipping_threshold=1.0)
    else:
        is_matrix = functools.partial(jax.tree.map, lambda x: x.ndim >= 2)
        inner = optax.adamw(
            rate, b1=0.9, b2=0.98, eps=1e-9, weight_decay=settings.weight_decay, mask=is_matrix
        )
    return optax.chain(optax.clip_by_global_norm(settings.clip_norm), inner)

"""What a rule is: its inputs, its parameters, and its application to a block."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from spec_cascades import distributions as dist
from spec_cascades.rules import arithmetic

INFINITY = math.inf


class Distributions(NamedTuple):
    """The four distributions of each position, float32 [..., V]."""

    q: jax.Array  # drafter, working: what drafts are sampled from
    p: jax.Array  # target, working
    q_hat: jax.Array  # drafter, raw
    p_hat: jax.Array  # target, raw


class Verdict(NamedTuple):
    """What a rule says of a drafted token."""

    accept: jax.Array  # [...]: probability that the token stands
    replacement: jax.Array  # [..., V]: weights (not normalised) of the token that replaces it


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a rule, as checks, help and sweeps see it.

    Attributes:
        name: as gin and the command line spell it.
        low: smallest value allowed.
        high: largest value allowed.
        default: value where none is given.
        meaning: one line for the help text.
        lossless: value at which the output follows the target exactly, None if there is none.
        grid: values that a sweep tries where the user names none.
        choices: words accepted beside numbers.
    """

    name: str
    low: float
    high: float
    default: float
    meaning: str
    lossless: float | None = None
    grid: tuple[float, ...] = ()
    choices: tuple[str, ...] = ()

    def check(self, value: float | str, owner: str) -> float | str:
        """Returns the value as a float or a known word; a ValueError says what is allowed."""
        if isinstance(value, str) and value in self.choices:
            return value
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not self.low <= number <= self.high:
            words = "".join(f", or {word!r}" for word in self.choices)
            raise ValueError(
                f"{self.name} = {value!r} is out of range for {owner}: "
                f"it takes {self.low:g} to {self.high:g}{words}"
            )
        return number


@dataclasses.dataclass(frozen=True)
class Rule:
    """A deferral rule with its settings; hashable, so that it can be static under `jax.jit`.

    Attributes:
        name: its name in the registry.
        kind: "choice", "distribution" or "verdict", by the decorator that registered it.
        function: the decorated function.
        summary: one line saying what it does.
        source: paper and equation.
        alpha: the traced trade-off parameter, None if the rule has none.
        parameters: the other parameters, fixed when the rule is made.
        needs_target: False if a choice can be made before the target has run.
        settings: operative values of `parameters`, as (name, value) pairs.
        strict_prefix: this many first output tokens are verified losslessly.
    """

    name: str
    kind: str
    function: Callable[..., Any]
    summary: str
    source: str
    alpha: Parameter | None = None
    parameters: tuple[Parameter, ...] = ()
    needs_target: bool = True
    settings: tuple[tuple[str, float | str], ...] = ()
    strict_prefix: int = 0

    @property
    def has_target_distribution(self) -> bool:
        """Whether the output follows a `pi`; else neither block verification nor bonus="rule"."""
        return self.kind != "verdict"

    def keep(self, d: Distributions, alpha: jax.Array, positions: jax.Array) -> jax.Array:
        """Choice rules only: where the drafter's distribution stands, bool [...].

        Args:
            d: distributions, [..., V]. Where `needs_target` is false, `p` and `p_hat` are unused.
            alpha: scalar or [...].
            positions: int32 [...], index of the token in the output.
        """
        kept = self.function(d, _per_position(alpha, positions), **dict(self.settings))
        self._check("keep", kept, positions.shape, "bool")
        return kept & (positions >= self.strict_prefix)

    def target_distribution(
        self, d: Distributions, alpha: jax.Array, positions: jax.Array
    ) -> jax.Array:
        """The distribution `pi` that the output follows, [..., V]; arguments as for `keep`."""
        if self.kind == "choice":
            return jnp.where(self.keep(d, alpha, positions)[..., None], d.q, d.p)
        pi = self.function(d, _per_position(alpha, positions), **dict(self.settings))
        self._check("pi", pi, d.q.shape, "float32")
        if not self.strict_prefix:
            return pi
        return jnp.where((positions < self.strict_prefix)[..., None], d.p, pi)

    def verdict(
        self, d: Distributions, tokens: jax.Array, alpha: jax.Array, positions: jax.Array
    ) -> Verdict:
        """Judges drafted tokens, int32 [...]; other arguments as for `keep`."""
        if self.has_target_distribution:
            return from_target_distribution(
                self.target_distribution(d, alpha, positions), d, tokens
            )
        judged = self.function(d, tokens, _per_position(alpha, positions), **dict(self.settings))
        if not isinstance(judged, Verdict):
            raise ValueError(
                f"rule {self.name!r} returned {type(judged).__name__}: it must be Verdict"
            )
        self._check("accept", judged.accept, tokens.shape, "float32")
        self._check("replacement", judged.replacement, d.q.shape, "float32")
        judged = Verdict(judged.accept, arithmetic.or_else(judged.replacement, d.p))
        if not self.strict_prefix:
            return judged
        strict = from_target_distribution(d.p, d, tokens)
        first = positions < self.strict_prefix
        return Verdict(
            jnp.where(first, strict.accept, judged.accept),
            jnp.where(first[..., None], strict.replacement, judged.replacement),
        )

    def _check(self, what: str, value: Any, shape: tuple[int, ...], dtype: str) -> None:
        """Raises a ValueError, while tracing, if the rule's function returned anything else."""
        found = f"{getattr(value, 'dtype', type(value).__name__)} {list(jnp.shape(value))}"
        wanted = f"{dtype} {list(shape)}"
        if found != wanted:
            raise ValueError(f"rule {self.name!r} returned {what} as {found}: it must be {wanted}")


def from_target_distribution(pi: jax.Array, d: Distributions, tokens: jax.Array) -> Verdict:
    """Rejection sampling of `pi` from drafts of `q` (Leviathan et al., ICML 2023, with pi for p).

    Args:
        pi: [..., V], the distribution to emit.
        d: the distributions; `d.q` is what the tokens were sampled from.
        tokens: int32 [...].
    """
    accept = arithmetic.ratio(dist.pick(pi, tokens), dist.pick(d.q, tokens))
    # Without residual mass nothing can be rejected but by rounding: then draw from pi.
    return Verdict(accept, arithmetic.or_else(jnp.maximum(pi - d.q, 0.0), pi))


def _per_position(alpha: jax.Array, positions: jax.Array) -> jax.Array:
    """Alpha as float32 of the positions' shape; a per-row alpha has the leading dimension."""
    alpha = jnp.asarray(alpha, jnp.float32)
    alpha = alpha.reshape(alpha.shape + (1,) * (positions.ndim - alpha.ndim))
    return jnp.broadcast_to(alpha, positions.shape)

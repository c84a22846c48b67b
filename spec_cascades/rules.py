"""Deferral rules: who writes the next token, the drafter or the target?

A rule is a pure function of the block's distributions and of a trade-off parameter `alpha`, which
is traced: sweeping it never recompiles. Three decorators register one, from the simplest form to
the most general, and everything else (range checks, help, sweep grids, documentation) comes from
what they are told:

* `register_choice`: the function returns `keep`, bool [...]: the drafter's distribution stands
  where it is true, the target's elsewhere (Narasimhan et al., ICLR 2025, section 4).
* `register_rule`: the function returns `pi`, float32 [..., V], the distribution that the output is
  to follow at each position.
* `register_verdict`: the function also sees the drafted token and returns the probability that it
  stands and the weights its replacement is drawn from. Such a rule has no single `pi`, hence no
  block verification.

A rule of your own:

    from spec_cascades import rules

    @rules.register_rule(
        alpha=rules.Parameter("alpha", low=0, high=1, default=0.5, lossless=0, meaning="..."),
        summary="half way between the two", source="this file",
    )
    def my_rule(d, alpha):
        return (1 - alpha)[..., None] * d.p + alpha[..., None] * d.q

Shapes: `d.q`, `d.p`, `d.q_hat`, `d.p_hat` are float32 [..., V] (see `distributions`), `alpha` is
float32 [...], one value for each position.
"""

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from spec_cascades import distributions as dist

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
        return kept & (positions >= self.strict_prefix)

    def target_distribution(
        self, d: Distributions, alpha: jax.Array, positions: jax.Array
    ) -> jax.Array:
        """The distribution `pi` that the output follows, [..., V]; arguments as for `keep`."""
        if self.kind == "choice":
            return jnp.where(self.keep(d, alpha, positions)[..., None], d.q, d.p)
        pi = self.function(d, _per_position(alpha, positions), **dict(self.settings))
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
        judged = Verdict(judged.accept, _or_else(judged.replacement, d.p))
        if not self.strict_prefix:
            return judged
        strict = from_target_distribution(d.p, d, tokens)
        first = positions < self.strict_prefix
        return Verdict(
            jnp.where(first, strict.accept, judged.accept),
            jnp.where(first[..., None], strict.replacement, judged.replacement),
        )


def from_target_distribution(pi: jax.Array, d: Distributions, tokens: jax.Array) -> Verdict:
    """Rejection sampling of `pi` from drafts of `q` (Leviathan et al., ICML 2023, with pi for p).

    Args:
        pi: [..., V], the distribution to emit.
        d: the distributions; `d.q` is what the tokens were sampled from.
        tokens: int32 [...].
    """
    accept = _ratio(dist.pick(pi, tokens), dist.pick(d.q, tokens))
    # Without residual mass nothing can be rejected but by rounding: then draw from pi.
    return Verdict(accept, _or_else(jnp.maximum(pi - d.q, 0.0), pi))


def _ratio(numerator: jax.Array, denominator: jax.Array) -> jax.Array:
    """min(1, a / b), 1 where both are 0. A NaN stays one, to be reported."""
    whole = numerator >= denominator
    return jnp.where(whole, 1.0, numerator / jnp.where(whole, 1.0, denominator))


def _or_else(weights: jax.Array, fallback: jax.Array) -> jax.Array:
    """Weights, or the fallback's at positions where all weights are 0."""
    return jnp.where((weights > 0).any(axis=-1, keepdims=True), weights, fallback)


def _per_position(alpha: jax.Array, positions: jax.Array) -> jax.Array:
    """Alpha as float32 of the positions' shape; a per-row alpha has the leading dimension."""
    alpha = jnp.asarray(alpha, jnp.float32)
    alpha = alpha.reshape(alpha.shape + (1,) * (positions.ndim - alpha.ndim))
    return jnp.broadcast_to(alpha, positions.shape)


# --------------------------------------------------------------------------------------------
# The registry
# --------------------------------------------------------------------------------------------

_RULES: dict[str, Rule] = {}
REGISTRY: Mapping[str, Rule] = MappingProxyType(_RULES)


def _register(kind: str, **declared) -> Callable[[Callable], Callable]:
    def decorate(function: Callable) -> Callable:
        name = declared.pop("name", None) or function.__name__
        known = _RULES.get(name)
        if known is not None and known.function.__module__ != function.__module__:
            raise ValueError(
                f"rule {name!r} is already registered by {known.function.__module__}; "
                "choose another name"
            )
        settings = tuple((p.name, p.default) for p in declared.get("parameters", ()))
        _RULES[name] = Rule(name=name, kind=kind, function=function, settings=settings, **declared)
        return function

    return decorate


def register_rule(
    *,
    summary: str,
    source: str,
    alpha: Parameter | None = None,
    parameters: Sequence[Parameter] = (),
    name: str | None = None,
):
    """Registers `f(d, alpha, **parameters) -> pi`, float32 [..., V] summing to 1."""
    return _register(
        "distribution",
        summary=summary,
        source=source,
        alpha=alpha,
        parameters=tuple(parameters),
        name=name,
    )


def register_choice(
    *,
    summary: str,
    source: str,
    alpha: Parameter | None = None,
    parameters: Sequence[Parameter] = (),
    needs_target: bool = True,
    name: str | None = None,
):
    """Registers `f(d, alpha, **parameters) -> keep`, bool [...]."""
    return _register(
        "choice",
        summary=summary,
        source=source,
        alpha=alpha,
        parameters=tuple(parameters),
        needs_target=needs_target,
        name=name,
    )


def register_verdict(
    *,
    summary: str,
    source: str,
    alpha: Parameter | None = None,
    parameters: Sequence[Parameter] = (),
    name: str | None = None,
):
    """Registers `f(d, tokens, alpha, **parameters) -> Verdict`."""
    return _register(
        "verdict",
        summary=summary,
        source=source,
        alpha=alpha,
        parameters=tuple(parameters),
        name=name,
    )


def names() -> tuple[str, ...]:
    """Names of all registered rules, in the order of registration."""
    return tuple(_RULES)


def get(name: str, *, strict_prefix: int = 0, **parameters: float | str) -> Rule:
    """A registered rule with its parameters set.

    Args:
        name: as registered.
        strict_prefix: verify this many first output tokens losslessly.
        **parameters: the rule's own (`beta`, `eps`, ...); `alpha` is given when decoding.

    Raises:
        ValueError: unknown name or parameter (the nearest known one is offered), or a value out
            of range.
    """
    if name not in _RULES:
        raise ValueError(unknown("rule", name, names()))
    rule = _RULES[name]
    declared = {p.name: p for p in rule.parameters}
    values = dict(rule.settings)
    for key, value in parameters.items():
        if key not in declared:
            raise ValueError(unknown(f"parameter of rule {name!r}", key, tuple(declared)))
        values[key] = declared[key].check(value, f"rule {name!r}")
    if strict_prefix < 0 or strict_prefix != int(strict_prefix):
        raise ValueError(f"strict_prefix = {strict_prefix!r} must be a whole number, 0 or more")
    return dataclasses.replace(
        rule, settings=tuple(values.items()), strict_prefix=int(strict_prefix)
    )


def check_alpha(rule: Rule, alpha: float | None) -> float:
    """The alpha to decode with: checked, or the rule's default where None is given.

    Raises:
        ValueError: out of range, or given to a rule that takes none.
    """
    if rule.alpha is None:
        if alpha is not None:
            raise ValueError(f"rule {rule.name!r} takes no alpha, but alpha = {alpha!r} was given")
        return 0.0
    return rule.alpha.check(rule.alpha.default if alpha is None else alpha, f"rule {rule.name!r}")


def unknown(what: str, name: str, known: Sequence[str]) -> str:
    """Error text for an unknown name, with the nearest known one."""
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {what} {name!r}: {hint}known: {', '.join(known) or 'none'}"


# --------------------------------------------------------------------------------------------
# Degenerate members
# --------------------------------------------------------------------------------------------


@register_rule(
    summary="lossless speculative decoding: the output follows the target",
    source="Leviathan et al., ICML 2023; Chen et al., 2023",
)
def speculative(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Pi = p."""
    del alpha
    return d.p


@register_rule(summary="every draft stands", source="degenerate case")
def draft_only(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Pi = q."""
    del alpha
    return d.q


@register_rule(
    alpha=Parameter(
        "alpha", 0.0, 1.0, 0.5, "share of the drafter", 0.0, (0.1, 0.25, 0.5, 0.75, 0.9)
    ),
    summary="a fixed mixture of both models",
    source="degenerate case",
)
def mixture(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Pi = (1 - alpha) p + alpha q."""
    return (1 - alpha)[..., None] * d.p + alpha[..., None] * d.q


# --------------------------------------------------------------------------------------------
# Choices: one model a position (Narasimhan et al., ICLR 2025, sections 3 and 4)
# --------------------------------------------------------------------------------------------


def _top(probabilities: jax.Array) -> jax.Array:
    """Largest probability; a softmax can pass 1 by rounding, which no threshold foresees."""
    return jnp.minimum(probabilities.max(axis=-1), 1.0)


def _scaled_disagreement(alpha: jax.Array, d: Distributions) -> jax.Array:
    """The product alpha D_TV(p, q), which is 0 where the models agree even if alpha is infinite."""
    distance = dist.total_variation(d.p, d.q)
    return jnp.where(distance > 0, alpha * distance, 0.0)


@register_choice(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.3,
        "the drafter must be surer than 1 - alpha (any alpha < 0: lossless)",
        -1.0,
        (0.05, 0.1, 0.2, 0.3, 0.5, 0.7),
    ),
    needs_target=False,
    summary="confidence: keep where the drafter is sure",
    source="Chow, 1970; Narasimhan et al., ICLR 2025, eq. 2",
)
def chow(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff max q_hat >= 1 - alpha."""
    return (_top(d.q_hat) >= 1 - alpha) & (alpha >= 0)


@register_choice(
    alpha=Parameter(
        "alpha",
        -INFINITY,
        INFINITY,
        0.5,
        "largest entropy of the drafter, in nats (any alpha < 0: lossless)",
        -1.0,
        (0.1, 0.3, 0.6, 1.0, 1.5, 2.5),
    ),
    needs_target=False,
    summary="confidence: keep where the drafter's entropy is low",
    source="log-loss form of chow; Narasimhan et al., ICLR 2025, appendix",
)
def chow_log(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff entropy(q_hat) <= alpha."""
    return (dist.entropy(d.q_hat) <= alpha) & (alpha >= 0)


@register_choice(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.1,
        "how much less sure than the target the drafter may be",
        -1.0,
        (-0.2, -0.05, 0.0, 0.05, 0.1, 0.2, 0.4),
    ),
    summary="comparison: keep where the drafter is about as sure as the target",
    source="Narasimhan et al., ICLR 2025, eq. 5",
)
def diff(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff max q_hat >= max p_hat - alpha."""
    return _top(d.q_hat) >= _top(d.p_hat) - alpha


@register_choice(
    alpha=Parameter(
        "alpha",
        -INFINITY,
        INFINITY,
        0.2,
        "nats of entropy the drafter may have above the target (within -log V .. log V)",
        -INFINITY,
        (-0.3, 0.0, 0.1, 0.3, 0.6, 1.0),
    ),
    summary="comparison of entropies",
    source="log-loss form of diff",
)
def diff_log(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff entropy(q_hat) <= entropy(p_hat) + alpha."""
    return dist.entropy(d.q_hat) <= dist.entropy(d.p_hat) + alpha


@register_choice(
    alpha=Parameter(
        "alpha",
        -INFINITY,
        INFINITY,
        0.2,
        "worth of an accepted draft against the drafter's loss of confidence",
        -INFINITY,
        (-0.5, -0.1, 0.0, 0.1, 0.2, 0.5, 1.0),
    ),
    summary="cost-benefit: comparison, lenient where a rejection is likely",
    source="Narasimhan et al., ICLR 2025, eq. 10",
)
def opt(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff max q_hat >= max p_hat - alpha D_TV(p, q)."""
    return _top(d.q_hat) >= _top(d.p_hat) - _scaled_disagreement(alpha, d)


@register_choice(
    alpha=Parameter(
        "alpha",
        -INFINITY,
        INFINITY,
        0.5,
        "worth of an accepted draft, in nats of entropy",
        -INFINITY,
        (-1.0, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0),
    ),
    summary="cost-benefit on entropies",
    source="Narasimhan et al., ICLR 2025, appendix C.2",
)
def opt_log(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff entropy(q_hat) <= entropy(p_hat) + alpha D_TV(p, q)."""
    return dist.entropy(d.q_hat) <= dist.entropy(d.p_hat) + _scaled_disagreement(alpha, d)


# --------------------------------------------------------------------------------------------
# Token-specific rules (Narasimhan et al., ICLR 2025, section 4.4)
# --------------------------------------------------------------------------------------------

_TOKEN_GRID = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def _accept_set(accepted: jax.Array, d: Distributions) -> jax.Array:
    """pi(v) = q(v) 1[v in A] + (1 - sum_A q) p(v), for A given as bool [..., V]."""
    kept = jnp.where(accepted, d.q, 0.0)
    # A sum over V can pass 1 by rounding.
    rest = jnp.maximum(1 - kept.sum(axis=-1, keepdims=True), 0.0)
    return kept + rest * d.p


def _near_top_relative(d: Distributions, alpha: jax.Array) -> jax.Array:
    """The set of `token_v3`: p_hat(v) >= (1 - alpha) max p_hat."""
    near = d.p_hat >= ((1 - alpha) * d.p_hat.max(axis=-1))[..., None]
    return near & (alpha >= 0)[..., None]


@register_rule(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.3,
        "how far under the target's best a draft may stand in the drafter's eyes",
        -1.0,
        (-0.3, -0.1, 0.0, 0.1, 0.3, 0.5, 0.7),
    ),
    summary="token-specific: drafts the drafter finds likely enough",
    source="Narasimhan et al., ICLR 2025, eq. 13",
)
def token_v1(d: Distributions, alpha: jax.Array) -> jax.Array:
    """A = {v: q_hat(v) >= max p_hat - alpha}."""
    return _accept_set(d.q_hat >= (_top(d.p_hat) - alpha)[..., None], d)


@register_rule(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.2,
        "how far under the target's best a draft may stand (any alpha < 0: lossless)",
        -1.0,
        _TOKEN_GRID,
    ),
    summary="token-specific: drafts near the target's best, by difference",
    source="Narasimhan et al., ICLR 2025, eq. 14",
)
def token_v2(d: Distributions, alpha: jax.Array) -> jax.Array:
    """A = {v: p_hat(v) >= max p_hat - alpha}; empty for alpha < 0."""
    near = d.p_hat >= (_top(d.p_hat) - alpha)[..., None]
    return _accept_set(near & (alpha >= 0)[..., None], d)


@register_rule(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.3,
        "a draft may have 1 - alpha of the best probability (any alpha < 0: lossless; "
        "0 still lets the target's best pass)",
        -1.0,
        _TOKEN_GRID,
    ),
    summary="token-specific: drafts near the target's best, by ratio",
    source="Narasimhan et al., ICLR 2025, eq. 15",
)
def token_v3(d: Distributions, alpha: jax.Array) -> jax.Array:
    """A = {v: p_hat(v) >= (1 - alpha) max p_hat}; empty for alpha < 0."""
    return _accept_set(_near_top_relative(d, alpha), d)


@register_rule(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.3,
        "as token_v3 (any alpha < 0: lossless)",
        -1.0,
        _TOKEN_GRID,
    ),
    summary="token_v3 on the target's best, the lossless test on the tail",
    source="measured in independent vLLM studies",
)
def token_v3_lossless_tail(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Pi = q on A, min(q, p) off it, the mass left over spread as norm(max(0, p - q))."""
    kept = jnp.where(_near_top_relative(d, alpha), d.q, jnp.minimum(d.q, d.p))
    rest = jnp.maximum(1 - kept.sum(axis=-1, keepdims=True), 0.0)
    residual = _or_else(jnp.maximum(d.p - d.q, 0.0), d.p)
    return kept + rest * residual / residual.sum(axis=-1, keepdims=True)


# --------------------------------------------------------------------------------------------
# Rules that look at the drafted token
# --------------------------------------------------------------------------------------------

_BISECTIONS = 30


def _bisect(too_low: Callable[[jax.Array], jax.Array], low: jax.Array, high: jax.Array):
    """The point in [low, high] where `too_low` turns false; arrays of any one shape."""

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        below = too_low(middle)
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    return jax.lax.fori_loop(0, _BISECTIONS, halve, (low, high))[1]


def _normalising_inverse_beta(q: jax.Array, p: jax.Array, alpha: jax.Array) -> jax.Array:
    """1 / beta in [0, 1] at which max(min(q, p / (1 - alpha)), p / beta) sums to 1: [..., V]."""
    strictness = (1 - alpha)[..., None]
    kept = jnp.where(p >= strictness * q, q, p / jnp.where(strictness > 0, strictness, 1.0))

    def too_low(inverse):
        return jnp.maximum(kept, inverse[..., None] * p).sum(axis=-1) < 1

    zeros = jnp.zeros(q.shape[:-1])
    return _bisect(too_low, zeros, zeros + 1)


@register_verdict(
    alpha=Parameter(
        "alpha",
        0.0,
        1.0,
        0.3,
        "lenience: a draft may be 1 / (1 - alpha) times as likely for the drafter",
        0.0,
        (0.1, 0.2, 0.3, 0.5, 0.7, 0.9),
    ),
    parameters=(
        Parameter(
            "beta",
            1.0,
            INFINITY,
            1.0,
            "divides p in the replacement's distribution; 'normalised' solves for it",
            choices=("normalised",),
        ),
    ),
    summary="lossy speculative decoding: lenient rejection",
    source="Leviathan et al., ICML 2023, A.5; Tran-Thien, 2023; Zhou et al., ICLR 2024",
)
def lossy(
    d: Distributions, tokens: jax.Array, alpha: jax.Array, beta: float | str = 1.0
) -> Verdict:
    """Accept with min(1, p(x) / ((1 - alpha) q(x))), else draw from norm(max(0, p / beta - q))."""
    if beta == "normalised":
        inverse_beta = _normalising_inverse_beta(d.q, d.p, alpha)[..., None]
    else:
        inverse_beta = 1.0 / beta
    accept = _ratio(dist.pick(d.p, tokens), (1 - alpha) * dist.pick(d.q, tokens))
    return Verdict(accept, jnp.maximum(inverse_beta * d.p - d.q, 0.0))


@register_verdict(
    alpha=Parameter(
        "alpha",
        0.0,
        INFINITY,
        0.1,
        "budget for KL(p || pi), in nats",
        0.0,
        (0.01, 0.03, 0.1, 0.3, 1.0),
    ),
    summary="lossy speculation that accepts most within a divergence budget",
    source="Tran-Thien, 2023 (mentored decoding)",
)
def mentored(d: Distributions, tokens: jax.Array, alpha: jax.Array) -> Verdict:
    """The optimal pi = max(min(q, c p), b p), with c >= 1 >= b such that KL(p || pi) = alpha.

    `c` is `1 / (1 - alpha)` and `b` is `1 / beta` of `lossy`, chosen here per position.
    """
    ceiling, floor = _mentored_bounds(d.q, d.p, alpha)
    p_x, q_x = dist.pick(d.p, tokens), dist.pick(d.q, tokens)
    return Verdict(_ratio(ceiling * p_x, q_x), jnp.maximum(floor[..., None] * d.p - d.q, 0.0))


def _rank(ascending: jax.Array, value: jax.Array, side: str) -> jax.Array:
    """Place of each value among sorted numbers, by binary search: [..., V], [...] -> [...]."""
    search = jax.vmap(lambda row, x: jnp.searchsorted(row, x, side=side))
    flat = search(ascending.reshape(-1, ascending.shape[-1]), value.reshape(-1))
    return flat.reshape(value.shape)


def _mentored_bounds(q: jax.Array, p: jax.Array, budget: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(c, b) of `mentored`, [...] each; c is infinite where KL(p || q) is within the budget.

    Sorted by p / q, the three pieces of pi (c p, q, b p) are runs of ids: prefix sums give mass
    and divergence for any (c, b) without another pass over the vocabulary.
    """
    likelihood = jnp.where(q > 0, p / jnp.where(q > 0, q, 1.0), jnp.where(p > 0, jnp.inf, 0.0))
    order = jnp.argsort(likelihood, axis=-1)
    p, q, likelihood = (jnp.take_along_axis(x, order, axis=-1) for x in (p, q, likelihood))
    finite_log = jnp.log(jnp.clip(likelihood, 1e-30, 1e30))
    prefix = lambda x: jnp.pad(jnp.cumsum(x, axis=-1), [(0, 0)] * (x.ndim - 1) + [(1, 0)])
    p_sum, q_sum, kl_sum = prefix(p), prefix(q), prefix(jnp.where(p > 0, p * finite_log, 0.0))

    def pieces(c, b):
        """Prefix sums at the two borders: p < q / c, and p <= q / b."""
        low, high = _rank(likelihood, 1 / c, "left"), _rank(likelihood, 1 / b, "right")
        at = lambda sums, index: dist.pick(sums, index)
        return low, jnp.maximum(low, high), at

    def mass(c, b):
        low, high, at = pieces(c, b)
        middle = at(q_sum, high) - at(q_sum, low)
        return c * at(p_sum, low) + middle + b * (p_sum[..., -1] - at(p_sum, high))

    def divergence(c, b):
        low, high, at = pieces(c, b)
        middle = at(kl_sum, high) - at(kl_sum, low)
        tail = (p_sum[..., -1] - at(p_sum, high)) * -jnp.log(jnp.maximum(b, 1e-30))
        return middle + tail - at(p_sum, low) * jnp.log(c)

    zeros = jnp.zeros(q.shape[:-1])

    def normaliser(c):
        return _bisect(lambda b: mass(c, b) < 1, zeros, zeros + 1)

    def within_budget(strictness):
        c = 1 / jnp.maximum(strictness, 1e-6)
        return divergence(c, normaliser(c)) <= budget

    # In terms of 1 / c: 1 is lossless, 0 accepts everything.
    strictness = _bisect(lambda s: ~within_budget(s), zeros, zeros + 1)
    ceiling = 1 / jnp.maximum(strictness, 1e-6)
    free = kl_sum[..., -1] <= budget
    lossless = budget <= 0
    ceiling = jnp.where(free, jnp.inf, jnp.where(lossless, 1.0, ceiling))
    return ceiling, jnp.where(lossless, 1.0, normaliser(jnp.where(free, 1.0, ceiling)))


@register_verdict(
    parameters=(
        Parameter("eps", 0.0, 1.0, 0.09, "a draft the target finds likelier than this stands"),
        Parameter("delta", 0.0, INFINITY, 0.3, "scales the threshold exp(-entropy(p))"),
    ),
    summary="typical acceptance: a threshold that falls with the target's entropy",
    source="Cai et al., ICML 2024 (Medusa)",
)
def typical(
    d: Distributions, tokens: jax.Array, alpha: jax.Array, eps: float, delta: float
) -> Verdict:
    """Accept iff p(x) > min(eps, delta exp(-entropy(p))), else draw from p."""
    del alpha
    threshold = jnp.minimum(eps, delta * jnp.exp(-dist.entropy(d.p)))
    return Verdict((dist.pick(d.p, tokens) > threshold).astype(jnp.float32), d.p)


@register_verdict(
    alpha=Parameter(
        "alpha",
        0.0,
        INFINITY,
        1.0,
        "divergence budget of the drafted token; its paper uses 1",
        0.0,
        (0.01, 0.05, 0.2, 1.0),
    ),
    summary="raises the drafted token's probability within a divergence budget",
    source="Cactus, ICLR 2026",
)
def cactus(d: Distributions, tokens: jax.Array, alpha: jax.Array) -> Verdict:
    """Accept with min(1, h(x) / q(x)); h(x) = min(1, p(x) + sqrt(2 alpha p(x) (1 - p(x))))."""
    p_x = jnp.minimum(dist.pick(d.p, tokens), 1.0)
    variance = p_x * (1 - p_x)
    # Where it is 0 no budget changes p(x), not even an infinite one.
    raised = jnp.sqrt(2 * jnp.where(variance > 0, alpha * variance, 0.0))
    h_x = jnp.minimum(1.0, p_x + raised)
    rest = jnp.where(p_x < 1, (1 - h_x) / jnp.where(p_x < 1, 1 - p_x, 1.0), 0.0)
    is_x = jnp.arange(d.p.shape[-1]) == tokens[..., None]
    h = jnp.where(is_x, h_x[..., None], rest[..., None] * d.p)
    return Verdict(_ratio(h_x, dist.pick(d.q, tokens)), jnp.maximum(h - d.q, 0.0))

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

The library's own rules stand in `choices`, `targets` (rules that give a `pi`) and `verdicts`.
"""

from spec_cascades.rules import choices, targets, verdicts  # registers the library's own rules
from spec_cascades.rules.registry import (
    REGISTRY,
    check_alpha,
    get,
    names,
    register_choice,
    register_rule,
    register_verdict,
    unknown,
)
from spec_cascades.rules.rule import (
    INFINITY,
    Distributions,
    Parameter,
    Rule,
    Verdict,
    from_target_distribution,
)

__all__ = [
    "INFINITY",
    "REGISTRY",
    "Distributions",
    "Parameter",
    "Rule",
    "Verdict",
    "check_alpha",
    "choices",
    "from_target_distribution",
    "get",
    "names",
    "register_choice",
    "register_rule",
    "register_verdict",
    "targets",
    "unknown",
    "verdicts",
]

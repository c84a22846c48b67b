"""The registry of rules: three decorators that fill it, and lookup by name."""

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Required, TypedDict, Unpack

from spec_cascades.rules.rule import Parameter, Rule

Decorator = Callable[[Callable], Callable]

RESERVED = ("target", "drafter", "sequence_cascade", "bild")
"""Names that mean methods other than rules wherever methods are named."""

_RULES: dict[str, Rule] = {}
REGISTRY: Mapping[str, Rule] = MappingProxyType(_RULES)


class Declaration(TypedDict, total=False):
    """What each registering decorator is told of a rule.

    Attributes:
        summary: one line saying what it does.
        source: paper and equation.
        alpha: the traced trade-off parameter; without it the rule has none.
        parameters: other parameters, fixed when the rule is made; the function takes them by name.
        name: its name in the registry, if not the function's own.
    """

    summary: Required[str]
    source: Required[str]
    alpha: Parameter
    parameters: Sequence[Parameter]
    name: str


def register_choice(*, needs_target: bool = True, **declared: Unpack[Declaration]) -> Decorator:
    """Registers `f(d, alpha, **parameters) -> keep`, bool [...].

    Args:
        needs_target: False if `f` reads `q` and `q_hat` alone, so that it can decide before the
            target has run.
        **declared: see `Declaration`.
    """
    return _register("choice", needs_target, **declared)


def register_rule(**declared: Unpack[Declaration]) -> Decorator:
    """Registers `f(d, alpha, **parameters) -> pi`, float32 [..., V] summing to 1.

    Args:
        **declared: see `Declaration`.
    """
    return _register("distribution", True, **declared)


def register_verdict(**declared: Unpack[Declaration]) -> Decorator:
    """Registers `f(d, tokens, alpha, **parameters) -> Verdict`, float32 [...] and [..., V].

    Args:
        **declared: see `Declaration`.
    """
    return _register("verdict", True, **declared)


def _register(
    kind: str,
    needs_target: bool,
    *,
    summary: str,
    source: str,
    alpha: Parameter | None = None,
    parameters: Sequence[Parameter] = (),
    name: str | None = None,
) -> Decorator:
    def decorate(function: Callable) -> Callable:
        rule = Rule(
            name=name or function.__name__,
            kind=kind,
            function=function,
            summary=summary,
            source=source,
            alpha=alpha,
            parameters=tuple(parameters),
            needs_target=needs_target,
            settings=tuple((p.name, p.default) for p in parameters),
        )
        _check_name(rule)
        _RULES[rule.name] = rule
        return function

    return decorate


def _check_name(rule: Rule) -> None:
    """A name belongs to the module that took it first; that one may register it again."""
    if rule.name in RESERVED:
        raise ValueError(
            f"rule {rule.name!r} bears the name of a method that is no rule; rename it"
        )
    known = _RULES.get(rule.name)
    if known is not None and known.function.__module__ != rule.function.__module__:
        raise ValueError(
            f"rule {rule.name!r} is already registered by {known.function.__module__}; "
            "choose another name"
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
    if not isinstance(strict_prefix, int) or strict_prefix < 0:
        raise ValueError(f"strict_prefix = {strict_prefix!r} must be a whole number, 0 or more")
    return dataclasses.replace(rule, settings=tuple(values.items()), strict_prefix=strict_prefix)


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

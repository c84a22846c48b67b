"""Every decoding method of a sweep under one signature.

A method is named as users write it: a rule of the registry (`token_v3`), `target`, `drafter`,
`sequence_cascade`, `token_cascade:<rule>` or `bild`. `parse` checks a description completely,
before anything is compiled; `decoder` makes the method's `protocol.Decoder`.

What a kind of method takes and how its decoder is made is a `Kind`; `register` adds one.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spec_cascades import checks, decoding, rules, verification
from spec_cascades.decoding import drafters
from spec_cascades.decoding.bild import FALLBACK, MAX_DRAFT, ROLLBACK
from spec_cascades.decoding.cascades import SCORES
from spec_cascades.models.interface import Model

# What the sequence cascade sweeps, declared like the parameters of rules.
_THRESHOLD = rules.Parameter(
    name="threshold",
    low=-math.inf,
    high=math.inf,
    default=-0.2,
    lossless=math.inf,
    meaning="the target answers where the score of the drafter's answer is lower",
    grid=(-1.0, -0.5, -0.3, -0.2, -0.1, -0.05, -0.02),
)
_TOKEN_CASCADE = "token_cascade:"
_DRAFTERS = ("model", *drafters.WITHOUT_MODEL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of methods.

    Attributes:
        make: the decoder of one: `(method, target, drafter, config, gamma) -> Decoder`; what the
            method does without may be None.
        options: names of the fields of `Method` that a description may set, besides name, label,
            values and gammas.
        parameter: what a sweep varies, where it is not the rule's alpha.
        needs_drafter: whether there must be a drafter model.
        uses_gamma: whether the block size means anything.
        drafts_blocks: whether the target judges blocks of drafts.
        greedy_only: whether it is defined at T = 0 only.
    """

    make: Callable[..., decoding.Decoder]
    options: tuple[str, ...] = ()
    parameter: rules.Parameter | None = None
    needs_drafter: bool = True
    uses_gamma: bool = False
    drafts_blocks: bool = False
    greedy_only: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
    """A decoding method with everything fixed but its swept value, gamma, T and the seed.

    Attributes:
        name: as users write it; the rule's own name for a speculative cascade.
        label: what tables and pictures call it.
        kind: a name of `KINDS`.
        rule: the deferral rule of kinds `rule` and `token_cascade`.
        parameter: what a sweep varies (alpha, threshold, fallback); None if there is nothing.
        values: the values to sweep; (None,) where there is no parameter.
        gammas: block sizes of this method alone; None for those of the sweep.
        verification: 'token' or 'block' (kind `rule`).
        bonus: whose token follows a block accepted whole, 'target' or 'rule' (kind `rule`).
        drafter: 'model', or a name of `drafters.WITHOUT_MODEL` (kind `rule`).
        score: how a whole answer is scored (kind `sequence_cascade`).
        quantile: which quantile, for `score = 'quantile'`.
        rollback: largest -log p(x) at which a draft stands (kind `bild`).
        max_draft: longest stretch of drafts (kind `bild`).
    """

    name: str
    label: str
    kind: str
    rule: rules.Rule | None = None
    parameter: rules.Parameter | None = None
    values: tuple[float | None, ...] = (None,)
    gammas: tuple[int, ...] | None = None
    verification: str = "token"
    bonus: str = "target"
    drafter: str = "model"
    score: str = "mean"
    quantile: float = 0.2
    rollback: float = ROLLBACK.default
    max_draft: int = MAX_DRAFT

    @property
    def about(self) -> Kind:
        """What its kind takes."""
        return KINDS[self.kind]

    @property
    def uses_gamma(self) -> bool:
        """Whether the block size means anything to this method."""
        return self.about.uses_gamma

    @property
    def greedy_only(self) -> bool:
        """Whether the method is defined at T = 0 only."""
        return self.about.greedy_only

    def settings(self) -> dict[str, Any]:
        """What fixes this method, as it operates; JSON-ready, without the swept value."""
        settings: dict[str, Any] = {"method": self.name, "label": self.label, "kind": self.kind}
        if self.rule is not None:
            settings["rule"] = self.rule.name
            settings |= dict(self.rule.settings)
            if self.kind == "rule":
                settings["strict_prefix"] = self.rule.strict_prefix
        return settings | {name: getattr(self, name) for name in _operative(self)}


def _operative(method: Method) -> Sequence[str]:
    """The names of the fields that make a difference to this method."""
    if method.kind == "sequence_cascade":
        return ("score", "quantile") if method.score == "quantile" else ("score",)
    return method.about.options


def names() -> tuple[str, ...]:
    """All method names, baselines first."""
    cascades = (_TOKEN_CASCADE + name for name in choice_rules())
    own = (name for name in KINDS if name not in ("rule", "token_cascade", "bild"))
    return (*own, *cascades, "bild", *rules.names())


def choice_rules() -> tuple[str, ...]:
    """The rules that choose one model per position, which a token-level cascade can use."""
    return tuple(name for name in rules.names() if rules.REGISTRY[name].kind == "choice")


def parse(
    description: str | Mapping[str, Any],
    *,
    alphas: Sequence[float] | None = None,
    drafter: str = "model",
) -> Method:
    """Reads a method's description, and checks all of it.

    Args:
        description: a name, or a mapping with `name` and any of `label`, `gammas`, the swept
            values (`alphas`, `thresholds` or `fallbacks`), the rule's own parameters (`beta`),
            and the options of the kind: `verification`, `bonus`, `strict_prefix` and `drafter`
            for rules, `score` and `quantile` for the sequence cascade, `rollback` and
            `max_draft` for BiLD.
        alphas: values for every method that sweeps alpha and states none; the registry's grid
            if None.
        drafter: what drafts for every rule that does not say; where it is a name of
            `drafters.WITHOUT_MODEL`, there is no drafter model for the other methods.

    Returns:
        the method.

    Raises:
        ValueError: an unknown name or option, or a value outside its range.
    """
    if not isinstance(description, str | Mapping):
        raise ValueError(f"a method is a name, or a mapping with a 'name', got {description!r}")
    given = {"name": description} if isinstance(description, str) else dict(description)
    name = given.pop("name", None)
    if name is None:
        raise ValueError(f"a method needs a 'name', got {dict(description)!r}")
    if name not in names():
        raise ValueError(rules.unknown("method", name, names()))
    kind = _kind(name)
    if kind == "rule":
        given.setdefault("drafter", drafter)
    if drafter in drafters.WITHOUT_MODEL and KINDS[kind].needs_drafter:
        raise ValueError(f"method {name!r} needs a drafter model, {drafter} is none")
    label, gammas = given.pop("label", None), given.pop("gammas", None)
    if not isinstance(label, str | None):
        raise ValueError(f"label of method {name!r} must be text, got {label!r}")
    fields: dict[str, Any] = {"name": name, "kind": kind}
    fields["gammas"] = None if gammas is None else check_gammas(gammas)
    rule = _take_rule(name, kind, given)
    if rule is not None:
        fields["rule"] = rule
    parameter = KINDS[kind].parameter if rule is None else rule.alpha
    fields |= _take_values(name, parameter, given, alphas)
    for option in given.keys() & {"alphas", "thresholds", "fallbacks"}:
        raise ValueError(f"method {name!r} takes no {option.removesuffix('s')}")
    allowed = KINDS[kind].options
    for option, value in given.items():
        if option not in allowed:
            own = [p.name for p in rule.parameters] + ["strict_prefix"] if kind == "rule" else []
            known = [*allowed, *own, "label", "gammas"]
            known += [f"{parameter.name}s"] if parameter else []
            raise ValueError(rules.unknown(f"option of method {name!r}", option, known))
        fields[option] = value
    method = Method(label=label or _label(fields), **fields)
    _check_options(method)
    return method


def _kind(name: str) -> str:
    if name.startswith(_TOKEN_CASCADE):
        return "token_cascade"
    return name if name in KINDS else "rule"


def _take_rule(name: str, kind: str, given: dict[str, Any]) -> rules.Rule | None:
    """Takes the rule's own arguments out of `given`, and makes the rule."""
    if kind == "token_cascade":
        return rules.get(name.removeprefix(_TOKEN_CASCADE))
    if kind != "rule":
        return None
    own = [parameter.name for parameter in rules.REGISTRY[name].parameters]
    arguments = {key: given.pop(key) for key in [*own, "strict_prefix"] if key in given}
    return rules.get(name, **arguments)


def _take_values(
    name: str,
    parameter: rules.Parameter | None,
    given: dict[str, Any],
    alphas: Sequence[float] | None,
) -> dict[str, Any]:
    if parameter is None:
        return {}
    values = given.pop(f"{parameter.name}s", None)
    if values is None and parameter.name == "alpha":
        values = alphas
    if values is None:
        values = parameter.grid or (parameter.default,)
    values = checks.several(values)
    if not values:
        raise ValueError(f"method {name!r}: {parameter.name}s is empty, give at least one value")
    checked = tuple(parameter.check(value, f"method {name!r}") for value in values)
    return {"parameter": parameter, "values": checked}


def check_gammas(gammas: int | Sequence[int]) -> tuple[int, ...]:
    """The block sizes as a tuple; ValueError unless all are whole numbers of at least 1."""
    gammas = checks.several(gammas)
    for gamma in gammas:
        if not checks.is_whole(gamma, 1):
            raise ValueError(f"gamma must be a whole number of at least 1, got {gamma!r}")
    return gammas


def _check_options(method: Method) -> None:
    for option, known in [
        ("verification", verification.METHODS),
        ("bonus", verification.BONUSES),
        ("score", SCORES),
        ("drafter", _DRAFTERS),
    ]:
        value = getattr(method, option)
        if value not in known:
            raise ValueError(rules.unknown(f"{option} of method {method.name!r}", value, known))
    checks.between(0, 1, quantile=method.quantile)
    checks.between(0, math.inf, rollback=method.rollback)
    checks.counts(max_draft=method.max_draft)
    if method.kind == "rule" and not method.rule.has_target_distribution:
        for option, value in [("verification", "block"), ("bonus", "rule")]:
            if getattr(method, option) == value:
                raise ValueError(
                    f"{option}={value!r} needs a rule with a target distribution, which "
                    f"{method.name!r} has not; rules that have one: {', '.join(_with_target())}"
                )


def _with_target() -> list[str]:
    return [name for name in rules.names() if rules.REGISTRY[name].has_target_distribution]


def _label(fields: Mapping[str, Any]) -> str:
    """The name, and whatever sets the method apart from its plainest form."""
    notes = []
    if fields.get("verification") == "block":
        notes.append("block")
    if fields.get("bonus") == "rule":
        notes.append("bonus=rule")
    if fields.get("drafter") in drafters.WITHOUT_MODEL:
        notes.append(fields["drafter"].replace("_", " "))
    if "score" in fields and fields["score"] != "mean":
        notes.append(str(fields["score"]))
    plain = {field.name: field.default for field in dataclasses.fields(Method)}
    for name in ("quantile", "rollback", "max_draft"):
        if name in fields and fields[name] != plain[name]:
            notes.append(f"{name}={fields[name]}")
    rule = fields.get("rule")
    if rule is not None:
        plain = dict(rules.REGISTRY[rule.name].settings) | {"strict_prefix": 0}
        own = dict(rule.settings) | {"strict_prefix": rule.strict_prefix}
        notes += [f"{name}={value}" for name, value in own.items() if value != plain[name]]
    return fields["name"] + (f" ({', '.join(notes)})" if notes else "")


def decoder(
    method: Method,
    target: Model,
    drafter: Model | None,
    *,
    config: decoding.DecodeConfig,
    gamma: int,
) -> decoding.Decoder:
    """The decoder of a method; its `alpha` is the swept value.

    Args:
        method: what to run.
        target: the target model.
        drafter: the drafter model; None where the method does without.
        config: static decoding settings.
        gamma: block size; ignored by methods that have none.
    """
    return method.about.make(method, target, drafter, config, gamma)


def _make_speculative(method, target, drafter, config, gamma):
    return decoding.SpeculativeDecoder(
        target,
        drafters.resolve(method.drafter, drafter),
        method.rule,
        config,
        gamma,
        method.verification,
        method.bonus,
    )


def _make_bild(method, target, drafter, config, gamma):
    del gamma
    return decoding.bild(
        target, drafter, config, rollback=method.rollback, max_draft=method.max_draft
    )


KINDS: dict[str, Kind] = {}


def register(name: str, kind: Kind) -> None:
    """Adds a kind of methods; a method of that name is then known wherever methods are named.

    Raises:
        ValueError: the name is taken.
    """
    if name in KINDS or name in rules.REGISTRY:
        raise ValueError(f"there is a method called {name!r} already")
    KINDS[name] = kind


register(
    "target",
    Kind(
        make=lambda method, target, drafter, config, gamma: decoding.AutoregressiveDecoder(
            target, config
        ),
        needs_drafter=False,
    ),
)
register(
    "drafter",
    Kind(
        make=lambda method, target, drafter, config, gamma: decoding.AutoregressiveDecoder(
            drafter, config, "drafter"
        ),
    ),
)
register(
    "sequence_cascade",
    Kind(
        make=lambda method, target, drafter, config, gamma: decoding.SequenceCascade(
            target, drafter, config, method.score, method.quantile
        ),
        options=("score", "quantile"),
        parameter=_THRESHOLD,
    ),
)
register(
    "token_cascade",
    Kind(
        make=lambda method, target, drafter, config, gamma: decoding.TokenCascade(
            target, drafter, method.rule, config
        ),
    ),
)
register(
    "bild",
    Kind(
        make=_make_bild,
        options=("rollback", "max_draft"),
        parameter=FALLBACK,
        drafts_blocks=True,
        greedy_only=True,
    ),
)
register(
    "rule",
    Kind(
        make=_make_speculative,
        options=("verification", "bonus", "drafter"),
        needs_drafter=False,
        uses_gamma=True,
        drafts_blocks=True,
    ),
)

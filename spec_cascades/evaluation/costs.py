"""What decoding cost, as figures whose formulas are stated once, here.

`Counts` adds up the exact integer statistics of the rows that count (padding rows do not);
`FIGURES` defines every cost figure over them. Tables, reports and docs take names, formulas and
meanings from `FIGURES`. A figure whose denominator is zero is None: the drafter alone makes no
target call, so it has no tokens per target call.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spec_cascades.decoding import Finish

_TOTALS = (
    "target_calls",
    "drafter_calls",
    "target_prefills",
    "drafter_prefills",
    "drafted",
    "accepted",
    "corrected",
    "bonus",
    "drafter_faults",
    "deferred",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counts:
    """Sums over rows of the statistics of a decoding run.

    Attributes:
        rows: sequences decoded.
        target_calls: calls of the target after its prefill: blocks verified, or single steps.
        drafter_calls: single-token calls of the drafter.
        target_prefills: inputs encoded by the target.
        drafter_prefills: inputs encoded by the drafter.
        drafted: tokens drafted that verification could have kept.
        accepted: drafted tokens that were kept.
        corrected: tokens that the target put in a rejected draft's place.
        bonus: tokens drawn after a block that was accepted whole, or without any draft.
        drafter_faults: blocks whose draft ended early at a NaN or an infinity of the drafter.
        deferred: positions at which the rule chose the target.
        verified_at: [gamma], how often the draft at each block position was reached.
        accepted_at: [gamma], how often it was then accepted.
        lengths: [rows], tokens emitted by each row, EOS included.
        cap_hits: rows that stopped at the length cap.
        non_finite: rows stopped by numbers of the target or the rule that were not finite.
        sequential_target_calls: target calls that ran one after another, that is the slowest
            row's calls, summed over batches.
        sequential_tokens: the longest row's tokens, summed over batches: the steps that plain
            decoding needs for an output of this length.
    """

    rows: int
    target_calls: int
    drafter_calls: int
    target_prefills: int
    drafter_prefills: int
    drafted: int
    accepted: int
    corrected: int
    bonus: int
    drafter_faults: int
    deferred: int
    verified_at: tuple[int, ...] = ()
    accepted_at: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    cap_hits: int = 0
    non_finite: int = 0
    sequential_target_calls: int = 0
    sequential_tokens: int = 0

    @property
    def emitted(self) -> int:
        """Tokens in the outputs, EOS included."""
        return self.accepted + self.corrected + self.bonus

    @property
    def verified(self) -> int:
        """Drafted tokens that were reached: all tokens before them in the block had stood."""
        return sum(self.verified_at)


def count(results: Iterable[Any]) -> Counts:
    """Adds up the statistics of `DecodeResult`s already copied to the host, one per batch.

    Rows that finished as padding are left out.

    Args:
        results: `DecodeResult`s whose leaves are numpy arrays.

    Returns:
        the sums.
    """
    sums = dict.fromkeys(_TOTALS, 0)
    positions: dict[str, np.ndarray | int] = {"verified_at": 0, "accepted_at": 0}
    lengths: list[int] = []
    cap_hits = non_finite = calls_in_turn = tokens_in_turn = 0
    for result in results:
        real = np.asarray(result.finish) != Finish.PADDING
        if not real.any():
            continue
        statistics = result.statistics
        for name in _TOTALS:
            sums[name] += int(np.asarray(getattr(statistics, name))[real].sum())
        for name in positions:
            positions[name] = positions[name] + np.asarray(getattr(statistics, name))[real].sum(0)
        kept = np.asarray(result.lengths)[real]
        lengths += kept.tolist()
        cap_hits += int((np.asarray(result.finish)[real] == Finish.LENGTH).sum())
        non_finite += int((np.asarray(result.finish)[real] == Finish.NONFINITE).sum())
        calls_in_turn += int(np.asarray(statistics.target_calls)[real].max())
        tokens_in_turn += int(kept.max())
    return Counts(
        rows=len(lengths),
        lengths=tuple(lengths),
        cap_hits=cap_hits,
        non_finite=non_finite,
        sequential_target_calls=calls_in_turn,
        sequential_tokens=tokens_in_turn,
        **sums,
        **{name: tuple(np.atleast_1d(at).astype(int).tolist()) for name, at in positions.items()},
    )


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


def _ratios(numerators: Sequence[int], denominators: Sequence[int]) -> list[float | None]:
    return [_ratio(n, d) for n, d in zip(numerators, denominators, strict=True)]


@dataclasses.dataclass(frozen=True)
class Figure:
    """One cost figure: `compute(counts)` evaluates `formula`, whose names are those of `Counts`."""

    formula: str
    meaning: str
    compute: Callable[[Counts], Any]


FIGURES: Mapping[str, Figure] = {
    "tokens_per_target_call": Figure(
        "emitted / target_calls",
        "tokens that one call of the target yields; 1 for the target alone",
        lambda c: _ratio(c.emitted, c.target_calls),
    ),
    "mean_acceptance_length": Figure(
        "1 + accepted / target_calls",
        "tokens a block would yield if no output ended inside a block",
        lambda c: 1 + c.accepted / c.target_calls if c.target_calls else None,
    ),
    "block_efficiency": Figure(
        "emitted / (target_calls * (gamma + 1))",
        "share of the tokens that blocks could have yielded at best",
        lambda c: _ratio(c.emitted, c.target_calls * (len(c.verified_at) + 1)),
    ),
    "acceptance_rate": Figure(
        "accepted / drafted",
        "share of all drafted tokens that were kept",
        lambda c: _ratio(c.accepted, c.drafted),
    ),
    "token_acceptance": Figure(
        "sum(accepted_at) / sum(verified_at)",
        "share kept of the drafted tokens that were reached: `a` of the cost model",
        lambda c: _ratio(sum(c.accepted_at), c.verified),
    ),
    "rejection_rate": Figure(
        "1 - sum(accepted_at) / sum(verified_at)",
        "share of the drafted tokens that were reached and then replaced",
        lambda c: _ratio(c.verified - sum(c.accepted_at), c.verified),
    ),
    "acceptance_at": Figure(
        "accepted_at[i] / verified_at[0]",
        "share of blocks whose first i tokens all stood, for i = 1..gamma",
        lambda c: _ratios(c.accepted_at, c.verified_at[:1] * len(c.verified_at)),
    ),
    "conditional_acceptance_at": Figure(
        "accepted_at[i] / verified_at[i]",
        "the same among blocks that got that far, for i = 1..gamma",
        lambda c: _ratios(c.accepted_at, c.verified_at),
    ),
    "deferral_rate": Figure(
        "deferred / (sum(verified_at) or drafted)",
        "share of the judged drafts that did not stand outright: the target was preferred, or "
        "had a chance to be",
        lambda c: _ratio(c.deferred, c.verified or c.drafted),
    ),
    "drafter_calls_per_token": Figure(
        "drafter_calls / emitted",
        "drafter steps spent on each token of the outputs",
        lambda c: _ratio(c.drafter_calls, c.emitted),
    ),
    "output_length": Figure(
        "emitted / rows",
        "mean tokens of an output, EOS included",
        lambda c: _ratio(c.emitted, c.rows),
    ),
    "cap_hit_rate": Figure(
        "cap_hits / rows",
        "share of outputs cut at max_decode_length",
        lambda c: _ratio(c.cap_hits, c.rows),
    ),
    "batch_tokens_per_target_call": Figure(
        "sequential_tokens / sequential_target_calls",
        "the same as tokens_per_target_call for whole batches, which last as long as their "
        "slowest row",
        lambda c: _ratio(c.sequential_tokens, c.sequential_target_calls),
    ),
}


# Figures that mean something only where the target verifies blocks of drafts.
BLOCK_FIGURES = (
    "mean_acceptance_length",
    "block_efficiency",
    "token_acceptance",
    "rejection_rate",
    "acceptance_at",
    "conditional_acceptance_at",
)


def cost(counts: Counts, *, blocks: bool = True) -> dict[str, Any]:
    """All figures of `FIGURES`, and the counts they come from, ready for JSON.

    Args:
        counts: of a decoding run.
        blocks: whether it verified blocks; else `BLOCK_FIGURES` are None.

    Returns:
        counts and figures by name.
    """
    plain = dataclasses.asdict(counts)
    del plain["lengths"]
    plain["bonus_tokens"] = plain.pop("bonus")  # `bonus` is also the name of a setting
    plain["emitted"] = counts.emitted
    plain["verified_at"], plain["accepted_at"] = list(counts.verified_at), list(counts.accepted_at)
    figures = {
        name: figure.compute(counts) if blocks or name not in BLOCK_FIGURES else None
        for name, figure in FIGURES.items()
    }
    return plain | figures


def block_yield(acceptance: float, gamma: int) -> float:
    """Expected tokens of a block of `gamma` drafts: `(1 - a^(gamma+1)) / (1 - a)`."""
    if acceptance >= 1:
        return gamma + 1.0
    return (1 - acceptance ** (gamma + 1)) / (1 - acceptance)


def predicted_speedup(
    acceptance: float, gamma: int, drafter_cost: float, verification_cost: float = 1.0
) -> float:
    """Speed-up over the target alone by the cost model of Leviathan et al. (2023).

    A block costs `gamma * drafter_cost + verification_cost` target steps and yields
    `block_yield(acceptance, gamma)` tokens. The model takes a verification for as cheap as a
    single step (`verification_cost = 1`), which holds where reading weights is what takes time.

    Args:
        acceptance: chance that a draft which is reached stands (`token_acceptance`).
        gamma: drafts per block.
        drafter_cost: time of a drafter step / time of a target step, `c`.
        verification_cost: time of a verification of gamma + 1 tokens / time of a target step.

    Returns:
        tokens per second relative to the target decoding by itself.
    """
    return block_yield(acceptance, gamma) / (gamma * drafter_cost + verification_cost)

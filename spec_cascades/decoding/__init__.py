"""Decoders: speculative cascades and what they are compared with.

All are pure functions of (params, inputs, keys), batched, with a different number of tokens a step
in each row, and return a `DecodeResult`. None of them knows a concrete model, a task or a file.
"""

from spec_cascades.decoding.autoregressive import autoregressive
from spec_cascades.decoding.bild import bild
from spec_cascades.decoding.cascades import answer_score, sequence_cascade, token_cascade
from spec_cascades.decoding.drafters import Draft, Drafter, ModelDrafter, PromptLookup
from spec_cascades.decoding.speculative import SpeculativeDecoder, speculative
from spec_cascades.decoding.state import (
    DecodeConfig,
    DecodeResult,
    Finish,
    Origin,
    Statistics,
    row_keys,
)

__all__ = [
    "DecodeConfig",
    "DecodeResult",
    "Draft",
    "Drafter",
    "Finish",
    "ModelDrafter",
    "Origin",
    "PromptLookup",
    "SpeculativeDecoder",
    "Statistics",
    "answer_score",
    "autoregressive",
    "bild",
    "row_keys",
    "sequence_cascade",
    "speculative",
    "token_cascade",
]

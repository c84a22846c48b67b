"""Decoders: speculative cascades and what they are compared with.

All satisfy `protocol.Decoder`: pure functions of (params, prompt, keys), batched, with a different
number of tokens a step in each row. `decode` runs any of them and returns a `DecodeResult`. None
knows a concrete model, a task or a file.
"""

from spec_cascades.decoding.autoregressive import AutoregressiveDecoder
from spec_cascades.decoding.bild import bild
from spec_cascades.decoding.cascades import SequenceCascade, TokenCascade, answer_score
from spec_cascades.decoding.drafters import Draft, Drafter, ModelDrafter, PromptLookup
from spec_cascades.decoding.protocol import Decoder, PairParams, decode
from spec_cascades.decoding.speculative import SpeculativeDecoder
from spec_cascades.decoding.state import (
    DecodeConfig,
    DecodeResult,
    Finish,
    Origin,
    Statistics,
    row_keys,
)
from spec_cascades.models.interface import Prompt

__all__ = [
    "AutoregressiveDecoder",
    "DecodeConfig",
    "DecodeResult",
    "Decoder",
    "Draft",
    "Drafter",
    "Finish",
    "ModelDrafter",
    "Origin",
    "PairParams",
    "Prompt",
    "PromptLookup",
    "SequenceCascade",
    "SpeculativeDecoder",
    "Statistics",
    "TokenCascade",
    "answer_score",
    "bild",
    "decode",
    "row_keys",
]

"""The T5 family: T5 1.0 and 1.1, FLAN-T5, mT5, ByT5, umT5."""

from spec_cascades.models.t5.model import T5, T5Config

__all__ = ["T5", "T5Config"]

"""Models behind one small interface (`interface.Model`)."""

from spec_cascades.models.interface import Model, Prompt
from spec_cascades.models.t5 import T5, T5Config

__all__ = ["T5", "Model", "Prompt", "T5Config"]

"""Model folders (save, load, compare) and the training loop's checkpoints.

A model folder holds

    model.json         format, model family, its config, and which vocabulary it speaks
    params/            the parameters, written by Orbax, in any floating dtype
    vocabulary.model   the SentencePiece model (absent for the byte vocabulary)

Names and shapes are compared with what `model.json` describes before any array is read.
"""

from spec_cascades.checkpoints.folder import Loaded, check_pair, load, resolve, save
from spec_cascades.checkpoints.state import manager, restore_state, save_state

__all__ = [
    "Loaded",
    "check_pair",
    "load",
    "manager",
    "resolve",
    "restore_state",
    "save",
    "save_state",
]

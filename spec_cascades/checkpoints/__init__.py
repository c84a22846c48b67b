"""Checkpoints: read whatever the format, write, convert, look into, compare.

`load` recognises model folders of ours, T5X and Orbax checkpoints and Hugging Face folders. A model
folder holds

    model.json         format, model family, its config, and which vocabulary it speaks
    params/            the parameters, written by Orbax, in any floating dtype
    vocabulary.model   the SentencePiece model (absent for the byte vocabulary)

Names and shapes are checked before any array is read.
"""

from spec_cascades.checkpoints.checks import check_pair
from spec_cascades.checkpoints.conversion import convert
from spec_cascades.checkpoints.folder import save
from spec_cascades.checkpoints.formats import Checkpoint, open_checkpoint, read_vocabulary, resolve
from spec_cascades.checkpoints.inspection import inspect
from spec_cascades.checkpoints.loading import Loaded, load
from spec_cascades.checkpoints.state import manager, restore_state, save_state

__all__ = [
    "Checkpoint",
    "Loaded",
    "check_pair",
    "convert",
    "inspect",
    "load",
    "manager",
    "open_checkpoint",
    "read_vocabulary",
    "resolve",
    "restore_state",
    "save",
    "save_state",
]

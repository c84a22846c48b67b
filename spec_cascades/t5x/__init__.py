"""Speculative cascades inside T5X: `t5x/infer.py`, `t5x/eval.py` and `InteractiveModel`.

    SpeculativeCascadeModel     the model that these take; its parameters are those of two models,
                                {'target': ..., 'draft': ...}
    CompositeCheckpointManager  reads them from two checkpoints

Both are bound in the gin files of `gin/t5x/`; `docs/t5x.md` shows how. This is the only package
that imports t5x.
"""

try:
    import t5x  # noqa: F401
    import t5x.utils  # noqa: F401 (most of what T5X needs is imported here)
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"spec_cascades.t5x needs T5X, which does not import here ({error}): see docs/t5x.md",
        name=error.name,
    ) from error

import gin

from spec_cascades import resources
from spec_cascades.t5x.model import SpeculativeCascadeModel
from spec_cascades.t5x.restore import CompositeCheckpointManager

__all__ = ["CompositeCheckpointManager", "SpeculativeCascadeModel"]

# The shipped gin files include one another by names such as 'gin/t5x/cascade.gin'.
gin.add_config_file_search_path(str(resources.root()))

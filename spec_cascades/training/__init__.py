"""Training of models, and distillation of drafters from their target."""

from spec_cascades.training.distillation import DistillRun, distill
from spec_cascades.training.run import TrainRun, train

__all__ = ["DistillRun", "TrainRun", "distill", "train"]

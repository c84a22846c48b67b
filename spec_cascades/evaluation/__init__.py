"""The main job: sweeps of methods over tasks, quality against cost, and what comes of them."""

from spec_cascades.evaluation.run import check, default_output_dir, evaluate

__all__ = ["check", "default_output_dir", "evaluate"]

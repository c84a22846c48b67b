"""Speculative cascades in JAX/Flax.

A small drafter proposes a block of tokens, a large target scores the block in one call, and a
deferral rule decides token by token whether the draft stands.

The submodules load on first use, so that `import spec_cascades` costs little more than nothing.
"""

import importlib

__version__ = "0.1.0"

_MODULES = (
    "checkpoints",
    "decoding",
    "distributions",
    "evaluation",
    "models",
    "partitioning",
    "rules",
    "serving",
    "tasks",
    "training",
    "verification",
)

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

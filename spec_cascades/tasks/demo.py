"""Registers `demo_translation`, `demo_reasoning`, and `demo`, a mixture of both."""

import seqio

from spec_cascades.tasks import reasoning, registry, translation
from spec_cascades.text import vocabularies


def register() -> None:
    """Registers both tasks and the mixture at equal rates, unless that has been done."""
    if "demo" in seqio.MixtureRegistry.names():
        return
    vocabulary = vocabularies.load("demo")
    registry.add_task(
        "demo_translation", translation.examples, translation.SIZES, vocabulary, ("bleu",)
    )
    registry.add_task(
        "demo_reasoning", reasoning.examples, reasoning.SIZES, vocabulary, ("accuracy",)
    )
    seqio.MixtureRegistry.add("demo", ["demo_translation", "demo_reasoning"], default_rate=1.0)

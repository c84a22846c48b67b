"""Answers to texts, one at a time: what `spec-cascades generate` and programs of one's own use."""

from spec_cascades.serving.generator import Answer, Generator

__all__ = ["Answer", "Generator"]

"""Text: vocabularies, and who wrote which part of an answer."""

"""The documents say what the code does."""

import pathlib

from spec_cascades import rules
from spec_cascades.cli import rules as rules_command

ROOT = pathlib.Path(__file__).parent.parent


def test_the_table_of_rules_is_up_to_date():
    ours = rules.__name__
    shipped = [r for r in rules.REGISTRY.values() if r.function.__module__ == ours]
    assert rules_command.markdown(shipped) in (ROOT / "docs" / "rules.md").read_text()

"""The documents say what the code does."""

import pathlib
import re
import shlex

import pytest

from spec_cascades import rules
from spec_cascades.cli import arguments
from spec_cascades.cli import rules as rules_command

ROOT = pathlib.Path(__file__).parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*/README.md")),
]


def commands(document: pathlib.Path) -> list[list[str]]:
    """Arguments of every `spec-cascades` command in the document's code blocks."""
    blocks = re.findall(r"^```bash\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").split("\n")
    found = [re.split(r"(?:^|/|&& |\s)spec-cascades ", line, maxsplit=1)[1:] for line in lines]
    return [shlex.split(rest[0], comments=True) for rest in found if rest]


def test_the_table_of_rules_is_up_to_date():
    ours = rules.__name__ + "."
    shipped = [r for r in rules.REGISTRY.values() if r.function.__module__.startswith(ours)]
    assert rules_command.markdown(shipped) in (ROOT / "docs" / "rules.md").read_text()


def test_the_readme_shows_commands():
    assert len(commands(ROOT / "README.md")) >= 6


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_parse(document, monkeypatch):
    monkeypatch.setattr(arguments, "_import_modules", lambda modules: None)
    for argv in commands(document):
        options = arguments.parse(argv)
        for name in getattr(options, "gin_file", []):
            assert (ROOT / "gin" / name).exists(), f"{document.name}: no gin/{name}"


def test_the_readmes_rule_registers_and_is_a_distribution():
    import jax
    import jax.numpy as jnp
    import numpy as np

    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    (source,) = [block for block in blocks if "register_rule" in block]
    try:
        exec(compile(source, "my_rules.py", "exec"), {"__name__": "my_rules"})
        rule = rules.get("agree_mix")
        q, p = jax.random.dirichlet(jax.random.key(0), jnp.ones(5), (2, 3, 2))
        d = rules.Distributions(q, p, q, p)
        positions = jnp.zeros((3, 2), jnp.int32)
        pi = rule.target_distribution(d, 0.3, positions)
        np.testing.assert_allclose(pi.sum(-1), 1, atol=1e-6)
        np.testing.assert_array_equal(rule.target_distribution(d, 0.0, positions), p)
    finally:
        rules.registry._RULES.pop("agree_mix", None)

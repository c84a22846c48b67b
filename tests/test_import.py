"""What importing the library brings along."""

import importlib
import subprocess
import sys

import pytest

HEAVY = ("tensorflow", "seqio", "gin", "t5x", "torch", "orbax", "transformers", "matplotlib")


def loaded_after(statement):
    code = (
        f"import sys; {statement}; "
        f"print(sorted({HEAVY!r} & {{name.split('.')[0] for name in sys.modules}}))"
    ).replace(repr(HEAVY), repr(set(HEAVY)))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.strip()


def test_the_package_alone_imports_nothing_heavy():
    assert loaded_after("import spec_cascades") == "[]"


@pytest.mark.parametrize(
    "modules",
    ["decoding, rules, verification, distributions, models, partitioning, testing"],
)
def test_the_core_imports_nothing_heavy(modules):
    assert loaded_after(f"from spec_cascades import {modules}") == "[]"


def test_submodules_are_found_by_attribute():
    import spec_cascades

    assert spec_cascades.rules.get("token_v3").name == "token_v3"
    assert "decoding" in dir(spec_cascades)
    with pytest.raises(AttributeError, match="'spec_cascades' has no attribute 'rulez'"):
        _ = spec_cascades.rulez


def test_t5x_is_asked_for_where_it_is_missing(monkeypatch):
    for name in ("t5x", "t5x.utils"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "spec_cascades.t5x", raising=False)
    with pytest.raises(ModuleNotFoundError, match="needs T5X, which does not .*: see docs/t5x.md"):
        importlib.import_module("spec_cascades.t5x")

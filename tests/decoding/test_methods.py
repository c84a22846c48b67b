import math

import pytest

from spec_cascades import rules
from spec_cascades.decoding import methods


def test_every_name_parses():
    for name in methods.names():
        method = methods.parse(name)
        assert method.name == name
        assert method.values


def test_grid_comes_from_the_registry_unless_given():
    assert methods.parse("token_v3").values == rules.REGISTRY["token_v3"].alpha.grid
    assert methods.parse("token_v3", alphas=[0.25]).values == (0.25,)
    assert methods.parse({"name": "token_v3", "alphas": [0.5]}, alphas=[0.25]).values == (0.5,)
    assert methods.parse({"name": "bild", "fallbacks": 0.5}).values == (0.5,)


def test_options_reach_the_rule_and_the_label():
    method = methods.parse({"name": "lossy", "beta": 2.0, "strict_prefix": 3})
    assert dict(method.rule.settings)["beta"] == 2.0
    assert method.rule.strict_prefix == 3
    assert method.label == "lossy (beta=2.0, strict_prefix=3)"
    assert method.settings()["beta"] == 2.0
    assert method.settings()["strict_prefix"] == 3
    block = methods.parse({"name": "token_v3", "verification": "block", "bonus": "rule"})
    assert block.label == "token_v3 (block, bonus=rule)"
    assert methods.parse({"name": "chow", "label": "Chow"}).label == "Chow"
    bild = methods.parse({"name": "bild", "rollback": 2.0, "max_draft": 4})
    assert bild.label == "bild (rollback=2.0, max_draft=4)"


def test_settings_hold_only_what_operates():
    assert "verification" not in methods.parse("target").settings()
    assert "quantile" not in methods.parse("sequence_cascade").settings()
    settings = methods.parse({"name": "sequence_cascade", "score": "quantile"}).settings()
    assert settings["quantile"] == 0.2
    assert methods.parse("token_cascade:opt").settings()["rule"] == "opt"


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("tokn_v3", "did you mean 'token_v3'"),
        ("token_cascade:token_v3", "token_cascade:"),
        (3, "a method is a name"),
        ({"name": "token_v3", "label": 3}, "label of method 'token_v3' must be text"),
        ({"name": "token_v3", "alphas": "x"}, "alpha = 'x'"),
        ({"name": "token_v3", "gammas": "x"}, "gamma must be a whole number"),
        ({"name": "bild", "rollback": "x"}, "rollback must lie between 0 and inf, got 'x'"),
        ({"alphas": [0.1]}, "needs a 'name'"),
        ({"name": "token_v3", "alpha": [0.1]}, "did you mean 'alphas'"),
        ({"name": "token_v3", "alphas": [1.5]}, "alpha = 1.5 is out of range"),
        ({"name": "token_v3", "alphas": [math.nan]}, "out of range"),
        ({"name": "token_v3", "alphas": []}, "alphas is empty"),
        ({"name": "token_v3", "gammas": [0]}, "gamma must be a whole number of at least 1"),
        ({"name": "token_v3", "gammas": [2.5]}, "gamma must be a whole number"),
        ({"name": "token_v3", "verification": "blok"}, "did you mean 'block'"),
        ({"name": "lossy", "verification": "block"}, "needs a rule with a target distribution"),
        ({"name": "typical", "bonus": "rule"}, "needs a rule with a target distribution"),
        ({"name": "lossy", "betta": 1.0}, "did you mean 'beta'"),
        ({"name": "lossy", "beta": 0.5}, "beta = 0.5 is out of range"),
        ({"name": "speculative", "alphas": [0.1]}, "'speculative' takes no alpha"),
        ({"name": "bild", "max_draft": 0}, "max_draft must be a whole"),
        ({"name": "bild", "rollback": -1.0}, "rollback must lie between"),
        ({"name": "sequence_cascade", "quantile": 2}, "quantile must lie between"),
    ],
)
def test_errors_say_what_would_be_right(description, message):
    with pytest.raises(ValueError, match=message):
        methods.parse(description)

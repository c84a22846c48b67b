# ruff: noqa: E501
import re

import pytest

from spec_cascades.tasks import reasoning

STEP = re.compile(r"(\d+)([-+*/])(\d+)=(\d+)")
WORDS = {
    "twice": 2, "two": 2, "three": 3, "four": 4, "five": 5, "doubles": 2, "triples": 3, "half": 2,
    "third": 3, "quarter": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def problems():
    return reasoning.examples("train", 0, 1500)


def steps_of(answer):
    worked, mark, result = answer.rpartition(" #### ")
    assert mark
    steps = [STEP.fullmatch(step) for step in worked.split(" ")]
    assert all(steps), answer
    return [(int(s[1]), s[2], int(s[3]), int(s[4])) for s in steps], int(result)


def test_every_step_is_right_and_the_last_is_the_result(problems):
    for _, answer in problems:
        steps, result = steps_of(answer)
        assert 2 <= len(steps) <= 4
        for left, sign, right, value in steps:
            exact = {"+": left + right, "-": left - right, "*": left * right, "/": left / right}
            assert exact[sign] == value, answer
            assert value > 0
        assert steps[-1][3] == result


def test_every_number_comes_from_the_text_or_an_earlier_step(problems):
    for text, answer in problems:
        known = {int(n) for n in re.findall(r"\d+", text)}
        known |= {WORDS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in WORDS}
        steps, _ = steps_of(answer)
        for left, _, right, value in steps:
            assert {left, right} <= known, (text, answer)
            known.add(value)


def test_every_result_is_used(problems):
    # No step is idle: each value but the last is an operand of a later step.
    for _, answer in problems:
        steps, _ = steps_of(answer)
        for i, (*_, value) in enumerate(steps[:-1]):
            assert any(value in (left, right) for left, _, right, _ in steps[i + 1 :]), answer


def test_text(problems):
    for text, _ in problems:
        assert text.startswith(reasoning.PREFIX)
        assert text.endswith("?")
        assert "  " not in text
        body = text.removeprefix(reasoning.PREFIX)
        for sentence in re.split(r"(?<=[.?]) ", body):
            assert sentence[0].isupper() or sentence[0].isdigit()


def test_variety(problems):
    shapes = {re.sub(r"\d+", "N", text) for text, _ in problems}
    assert len(shapes) > 0.95 * len(problems)
    signs = [sign for _, answer in problems for _, sign, _, _ in steps_of(answer)[0]]
    assert {s: signs.count(s) / len(signs) > 0.03 for s in "+-*/"} == dict.fromkeys("+-*/", True)
    counts = [len(steps_of(answer)[0]) for _, answer in problems]
    assert all(counts.count(n) > 0.05 * len(counts) for n in (2, 3, 4))


@pytest.mark.parametrize(
    "seed, text, answer",
    [
        (
            0,
            "There are 4 stickers in each of Martin's 8 rows. Martin wants 44. How many more does he need?",
            "8*4=32 44-32=12 #### 12",
        ),
        (
            1,
            "Eva has 7 boxes with 8 cups each. She buys 2 baskets of 5 more. How many does Eva have?",
            "7*8=56 2*5=10 56+10=66 #### 66",
        ),
        (
            2,
            "Oskar buys 8 tickets for 10 dollars each. He also buys a hat for 19 dollars. He pays with 112 dollars. How much does he get back?",
            "8*10=80 80+19=99 112-99=13 #### 13",
        ),
        (
            3,
            "Clara finds 5 cookies. She finds 30 others. A week later the number triples. She wants 133. How many more does she need?",
            "5+30=35 35*3=105 133-105=28 #### 28",
        ),
        (
            4,
            "Maria has 9 drawers with 8 cookies each. Maria buys 5 more. How many cookies are there in the end?",
            "9*8=72 72+5=77 #### 77",
        ),
        (
            5,
            "Martin's neighbor has 3 cups. Martin has three times as many. A week later the number doubles. He wants 29. How many more does he need?",
            "3*3=9 9*2=18 29-18=11 #### 11",
        ),
        (
            6,
            "Every day Karl gets 8 balls, for 5 days. He buys 7 bags of 5 more. How many balls are there in the end?",
            "5*8=40 7*5=35 40+35=75 #### 75",
        ),
        (
            7,
            "Maria buys 6 books for 6 dollars each. She also buys a bag for 14 dollars. The ball costs 5 dollars. How many dollars does she spend?",
            "6*6=36 36+14=50 #### 50",
        ),
        (
            8,
            "Nina has 60 coins. Nina loses 27. She buys 13 more. How many coins are there in the end?",
            "60-27=33 33+13=46 #### 46",
        ),
        (
            9,
            "There are 2 coins in each of Laura's 9 bowls. Her uncle is 16 years old. Laura gives 16 to her father. How many does Laura have?",
            "9*2=18 18-16=2 #### 2",
        ),
        (
            10,
            "Felix's father has 27 shells. Felix has 6 more. A week later the number is four times as large. He sells a third of them. How many shells are there in the end?",
            "27+6=33 33*4=132 132/3=44 132-44=88 #### 88",
        ),
        (
            11,
            "Clara has 10 old and 22 new candles. Her aunt takes 3. How many candles are there in the end?",
            "10+22=32 32-3=29 #### 29",
        ),
    ],
)
def test_pinned(seed, text, answer):
    assert reasoning.problem(seed) == (text, answer)

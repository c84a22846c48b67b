"""`demo_reasoning`: arithmetic word problems of two to four steps, in the manner of GSM8K.

A problem is a story of amounts: someone has things, gains, gives away, buys and shares, and some
sentences say what does not matter. The answer works it out, one equation a step, and ends in a
marked result: `4*6=24 24-5=19 #### 19`.

An example is a function of its split and index; splits are disjoint by construction, as in
`translation`.
"""

import dataclasses
from collections.abc import Callable

from spec_cascades.tasks import splits
from spec_cascades.tasks.dice import Dice

PREFIX = "Solve: "
SIZES = {"train": 200_000, "validation": 512, "test": 512}
_SEED = 20_250_402
_MOST_CHARACTERS = 170
_LARGEST = 199

_GIRLS = ("Anna", "Maria", "Emma", "Laura", "Julia", "Clara", "Sophie", "Lena", "Eva", "Nina")
_BOYS = ("Tom", "Paul", "Max", "Peter", "Felix", "Otto", "Simon", "Martin", "Karl", "Oskar")
_ITEMS = (
    "apples",
    "books",
    "coins",
    "eggs",
    "pencils",
    "cards",
    "flowers",
    "cookies",
    "stickers",
    "balls",
    "oranges",
    "shells",
    "stamps",
    "nuts",
    "toys",
    "cups",
    "plums",
    "stones",
    "candles",
    "buttons",
)
_CONTAINERS = ("boxes", "bags", "baskets", "rows", "bowls", "shelves", "drawers", "piles")
_RELATIVES = ("sister", "brother", "friend", "mother", "father", "uncle", "aunt", "neighbor")
_GOODS = ("book", "ball", "hat", "lamp", "shirt", "bag", "ticket", "toy", "cake", "chair")
_ANIMALS = ("hens", "cows", "goats", "sheep", "ducks", "horses", "pigs", "rabbits")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WORDS = ("two", "three", "four", "five", "six")

_SIGNS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
}


@dataclasses.dataclass
class Story:
    """A problem while it grows.

    Attributes:
      dice: the source of choices.
      name: of the person, who is `he` or `she`.
      he: pronoun.
      item: what is counted.
      sentences: told so far.
      steps: equations so far.
      amount: what the person has by now.
    """

    dice: Dice
    name: str
    he: str
    item: str
    sentences: list[str] = dataclasses.field(default_factory=list)
    steps: list[str] = dataclasses.field(default_factory=list)
    amount: int = 0

    @property
    def his(self) -> str:
        """Possessive pronoun."""
        return "his" if self.he == "he" else "her"

    def tell(self, sentence: str) -> None:
        """Adds a sentence."""
        self.sentences.append(sentence[0].upper() + sentence[1:])

    def compute(self, left: int, sign: str, right: int) -> int:
        """Adds a step and returns its result."""
        result = _SIGNS[sign](left, right)
        self.steps.append(f"{left}{sign}{right}={result}")
        return result

    def who(self) -> str:
        """The name at first, then mostly the pronoun."""
        return self.he if self.sentences and self.dice.chance(0.75) else self.name


# Openings set the amount, with no step or one.


def _has_some(story: Story) -> None:
    story.amount = story.dice.integer(5, 60)
    verb = story.dice.pick(("has", "has", "owns", "starts with", "picks", "finds"))
    story.tell(f"{story.name} {verb} {story.amount} {story.item}.")


def _has_groups(story: Story) -> None:
    groups, each = story.dice.integer(2, 9), story.dice.integer(2, 9)
    container = story.dice.pick(_CONTAINERS)
    story.tell(
        story.dice.pick(
            (
                f"{story.name} has {groups} {container} with {each} {story.item} each.",
                f"there are {each} {story.item} in each of {story.name}'s {groups} {container}.",
                f"{story.name} fills {groups} {container} with {each} {story.item} each.",
            )
        )
    )
    story.amount = story.compute(groups, "*", each)


def _has_two_kinds(story: Story) -> None:
    first, second = story.dice.integer(3, 40), story.dice.integer(3, 40)
    colors = story.dice.pick(
        (("red", "blue"), ("big", "small"), ("old", "new"), ("green", "white"))
    )
    story.tell(f"{story.name} has {first} {colors[0]} and {second} {colors[1]} {story.item}.")
    story.amount = story.compute(first, "+", second)


def _daily(story: Story) -> None:
    days, each = story.dice.integer(2, 9), story.dice.integer(2, 9)
    verb = story.dice.pick(("collects", "gets", "finds", "receives"))
    story.tell(f"every day {story.name} {verb} {each} {story.item}, for {days} days.")
    story.amount = story.compute(days, "*", each)


def _more_than(story: Story) -> None:
    other, more = story.dice.integer(3, 40), story.dice.integer(2, 30)
    relative = story.dice.pick(_RELATIVES)
    story.tell(f"{story.name}'s {relative} has {other} {story.item}.")
    if story.dice.chance(0.6) or more >= other:
        story.tell(f"{story.name} has {more} more.")
        story.amount = story.compute(other, "+", more)
    else:
        story.tell(f"{story.name} has {more} fewer.")
        story.amount = story.compute(other, "-", more)


def _times_as_many(story: Story) -> None:
    other, times = story.dice.integer(3, 20), story.dice.integer(2, 5)
    relative = story.dice.pick(_RELATIVES)
    word = "twice" if times == 2 else f"{_WORDS[times - 2]} times"
    story.tell(f"{story.name}'s {relative} has {other} {story.item}.")
    story.tell(f"{story.name} has {word} as many.")
    story.amount = story.compute(other, "*", times)


# Events change the amount by one step or two.


def _gains(story: Story) -> None:
    more = story.dice.integer(2, 30)
    relative = story.dice.pick(_RELATIVES)
    story.tell(
        story.dice.pick(
            (
                f"{story.who()} buys {more} more.",
                f"{story.his} {relative} gives {_him(story)} {more} more.",
                f"{story.who()} finds {more} others.",
                f"on {story.dice.pick(_DAYS)} {story.who()} gets {more} more.",
            )
        )
    )
    story.amount = story.compute(story.amount, "+", more)


def _loses(story: Story) -> None:
    fewer = story.dice.integer(1, story.amount - 1)
    relative = story.dice.pick(_RELATIVES)
    story.tell(
        story.dice.pick(
            (
                f"{story.who()} gives {fewer} to {story.his} {relative}.",
                f"{story.who()} loses {fewer}.",
                f"{story.who()} sells {fewer} of them.",
                f"then {fewer} get broken.",
                f"{story.his} {relative} takes {fewer}.",
            )
        )
    )
    story.amount = story.compute(story.amount, "-", fewer)


def _gains_groups(story: Story) -> None:
    groups, each = story.dice.integer(2, 9), story.dice.integer(2, 9)
    container = story.dice.pick(_CONTAINERS[:3])
    story.tell(f"{story.who()} buys {groups} {container} of {each} more.")
    story.amount = story.compute(story.amount, "+", story.compute(groups, "*", each))


def _gives_each(story: Story) -> None:
    friends = story.dice.integer(2, 6)
    each = story.dice.integer(1, max(1, (story.amount - 1) // friends))
    story.tell(f"{story.who()} gives {each} to each of {friends} friends.")
    story.amount = story.compute(story.amount, "-", story.compute(friends, "*", each))


def _doubles(story: Story) -> None:
    times = story.dice.integer(2, 4)
    word = {2: "doubles", 3: "triples", 4: "is four times as large"}[times]
    story.tell(f"a week later the number {word}.")
    story.amount = story.compute(story.amount, "*", times)


def _gives_half(story: Story) -> None:
    part, word = story.dice.pick(((2, "half"), (3, "a third"), (4, "a quarter")))
    share = story.compute(story.amount, "/", part)
    verb = story.dice.pick(("gives away", "sells", "eats up" if _eaten(story) else "loses"))
    story.tell(f"{story.who()} {verb} {word} of them.")
    story.amount = story.compute(story.amount, "-", share)


def _eaten(story: Story) -> bool:
    return story.item in ("apples", "cookies", "eggs", "oranges", "nuts", "plums")


def _him(story: Story) -> str:
    return "him" if story.he == "he" else "her"


# Questions end the story, with no step or one.


def _ask_left(story: Story) -> None:
    story.tell(
        story.dice.pick(
            (
                f"how many {story.item} does {story.who()} have now?",
                f"how many {story.item} are there in the end?",
                f"how many does {story.name} have?",
            )
        )
    )


def _ask_shares(story: Story) -> None:
    parts = story.dice.pick([n for n in range(2, 10) if story.amount % n == 0])
    container = story.dice.pick(_CONTAINERS)
    story.tell(
        story.dice.pick(
            (
                f"{story.who()} puts them into {parts} {container}. How many are in each?",
                f"{parts} children share them. How many does each get?",
            )
        )
    )
    story.amount = story.compute(story.amount, "/", parts)


def _ask_price(story: Story) -> None:
    price = story.dice.integer(2, 9)
    story.tell(f"{story.who()} sells them all for {price} dollars each. How many dollars is that?")
    story.amount = story.compute(story.amount, "*", price)


def _ask_missing(story: Story) -> None:
    goal = story.amount + story.dice.integer(2, 40)
    story.tell(f"{story.who()} wants {goal}. How many more does {story.he} need?")
    story.amount = story.compute(goal, "-", story.amount)


def _distract(story: Story) -> None:
    """Says something with a number that does not matter."""
    number = story.dice.integer(2, 40)
    story.tell(
        story.dice.pick(
            (
                f"{story.his} {story.dice.pick(_RELATIVES)} is {number} years old.",
                f"{story.he} also has {number} {story.dice.pick(_ANIMALS)}.",
                f"the {story.dice.pick(_GOODS)} costs {number} dollars.",
                f"it is {story.dice.pick(_DAYS)}.",
            )
        )
    )


_OPENINGS = (_has_some, _has_groups, _has_two_kinds, _daily, _more_than, _times_as_many)
_OPENINGS_CUMULATIVE = (0.34, 0.54, 0.66, 0.76, 0.88, 1.0)


def _possible_events(amount: int) -> list[Callable[[Story], None]]:
    events = [_gains, _gains]
    if amount > 2:
        events += [_loses, _loses]
    if amount > 6:
        events.append(_gives_each)
    if amount < 60:
        events += [_gains_groups, _doubles]
    if amount % 12 == 0:
        events.append(_gives_half)
    return events


def _possible_questions(amount: int) -> list[Callable[[Story], None]]:
    questions = [_ask_left, _ask_left, _ask_missing]
    if any(amount % n == 0 for n in range(2, 10)):
        questions.append(_ask_shares)
    if amount < 25:
        questions.append(_ask_price)
    return questions


def _shopping(story: Story) -> None:
    """Another kind of story: money spent on goods."""
    dice = story.dice
    count, price = dice.integer(2, 9), dice.integer(2, 12)
    first = dice.pick(_GOODS)
    second = dice.pick([good for good in _GOODS if good != first])
    story.tell(f"{story.name} buys {count} {first}s for {price} dollars each.")
    story.amount = story.compute(count, "*", price)
    if dice.chance(0.7):
        other = dice.integer(2, 30)
        story.tell(f"{story.he} also buys a {second} for {other} dollars.")
        story.amount = story.compute(story.amount, "+", other)
    if dice.chance(0.25):
        _distract(story)
    if dice.chance(0.6):
        change = dice.integer(1, 30)
        paid = story.amount + change
        story.tell(f"{story.he} pays with {paid} dollars. How much does {story.he} get back?")
        story.amount = story.compute(paid, "-", story.amount)
    else:
        story.tell(f"how many dollars does {story.he} spend?")


def _amounts(story: Story) -> None:
    dice = story.dice
    wanted = dice.weighted((2, 3, 4), (0.55, 0.88, 1.0))
    dice.weighted(_OPENINGS, _OPENINGS_CUMULATIVE)(story)
    if dice.chance(0.15):
        _distract(story)
    while len(story.steps) < wanted - 1:
        dice.pick(_possible_events(story.amount))(story)
    questions = _possible_questions(story.amount)
    if len(story.steps) >= wanted:
        questions = [_ask_left]
    question = dice.pick(questions)
    if question is _ask_left and len(story.steps) < wanted:
        dice.pick(_possible_events(story.amount))(story)
    question(story)


def problem(seed: int) -> tuple[str, str]:
    """A word problem and its worked answer, as a function of the seed."""
    dice = Dice(seed)
    while True:
        girl = dice.chance(0.5)
        name = dice.pick(_GIRLS if girl else _BOYS)
        story = Story(dice, name, "she" if girl else "he", dice.pick(_ITEMS))
        (_shopping if dice.chance(0.15) else _amounts)(story)
        text = " ".join(story.sentences)
        fits = len(text) <= _MOST_CHARACTERS and story.amount <= _LARGEST
        if fits and 2 <= len(story.steps) <= 4:
            return text, f"{' '.join(story.steps)} #### {story.amount}"


def examples(split: str, first: int = 0, last: int | None = None) -> list[tuple[str, str]]:
    """Input and target texts of the examples `first` to `last` (excluded) of a split."""
    pairs = _STREAM.examples(split, first, last)
    return [(PREFIX + text, answer) for text, answer in pairs]


_STREAM = splits.Stream("demo_reasoning", problem, seed=_SEED, sizes=SIZES)

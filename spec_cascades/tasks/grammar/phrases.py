"""Noun phrases and adverbials, drawn at random, in both languages."""

import dataclasses
import functools
from collections.abc import Sequence

from spec_cascades.tasks.dice import Dice
from spec_cascades.tasks.grammar import lexicon
from spec_cascades.tasks.grammar.morphology import (
    ACCUSATIVE,
    DATIVE,
    FIRST,
    PLURAL,
    SECOND,
    THIRD,
    Determiner,
    GermanNoun,
    contract,
    english_phrase,
    german_phrase,
    relative_pronoun,
)
from spec_cascades.tasks.grammar.words import (
    NOUNS,
    TIMES,
    Noun,
    Words,
    adjectives_of,
    lines,
)

THE = Determiner("the", "d", "der")
_A = Determiner("a", "ein", "ein")
_NO_ARTICLE = Determiner("", "", "none")
_KEIN = Determiner("a", "kein", "ein")
_KEIN_BARE = Determiner("", "kein", "ein")
_THIS = Determiner("this", "dies", "dieser", english_plural="these")
_EVERY = Determiner("every", "jed", "dieser")
_POSSESSIVES = (
    Determiner("my", "mein", "ein"),
    Determiner("his", "sein", "ein"),
    Determiner("her", "ihr", "ein"),
    Determiner("your", "dein", "ein"),
    Determiner("our", "unser", "ein"),
    Determiner("their", "ihr", "ein"),
)
_NUMBERS = tuple(Determiner("", de, "none", english_plural=en) for en, de in lexicon.NUMBERS)
_MANY = Determiner("", "viele", "none", english_plural="many")


# Noun phrases.


class _Forms(Sequence[str]):
    """A German phrase's forms by case, spelled when they are asked for."""

    def __init__(
        self, determiner: Determiner, stems: Sequence[str], noun: GermanNoun, plural: bool
    ):
        self._parts = determiner, stems, noun
        self._plural = plural

    def __getitem__(self, case: int) -> str:
        return german_phrase(*self._parts, case, self._plural)

    def __len__(self) -> int:
        return 4


@dataclasses.dataclass(frozen=True)
class Phrase:
    """A noun phrase in both languages.

    Attributes:
      english: subject form.
      english_object: object form, which differs for pronouns.
      german: forms by case.
      agreement: column of the verb's finite forms.
      definite: whether German may move it before the adverbials.
      pronoun: (English subject, English object, German nominative, German accusative) that resumes
        it, or None.
      is_pronoun: whether it is one itself.
      relative: German relative pronouns (nominative, accusative), or None.
      negated: the phrase with "no" for "a", where it is indefinite.
    """

    english: str
    english_object: str
    german: Sequence[str]
    agreement: int
    definite: bool
    pronoun: tuple[str, str, str, str] | None = None
    is_pronoun: bool = False
    relative: tuple[str, str] | None = None
    negated: "Phrase | None" = None


def _fixed(english: str, obj: str, agreement: int, *german: str) -> Phrase:
    return Phrase(english, obj, (*german, ""), agreement, True, is_pronoun=True)


PRONOUNS = (
    _fixed("he", "him", THIRD, "er", "ihn", "ihm"),
    _fixed("she", "her", THIRD, "sie", "sie", "ihr"),
    _fixed("I", "me", FIRST, "ich", "mich", "mir"),
    _fixed("they", "them", PLURAL, "sie", "sie", "ihnen"),
    _fixed("we", "us", PLURAL, "wir", "uns", "uns"),
    _fixed("you", "you", SECOND, "du", "dich", "dir"),
)
THEM = PRONOUNS[3]
_PRONOUNS_OF_OTHERS = (PRONOUNS[0], PRONOUNS[1], THEM)
_RESUMED = {"m": ("er", "ihn"), "f": ("sie", "sie"), "n": ("es", "es")}
NAMES = tuple(
    Phrase(
        name,
        name,
        (name, name, name, f"{name}s"),
        THIRD,
        True,
        pronoun=(*{"m": ("he", "him"), "f": ("she", "her")}[gender], *_RESUMED[gender]),
        relative=({"m": "der", "f": "die"}[gender], {"m": "den", "f": "die"}[gender]),
    )
    for name, gender in map(str.split, lines(lexicon.NAMES))
)


def object_pronoun(dice: Dice, subject: Phrase) -> Phrase:
    """A pronoun that does not mean the subject, which would take a reflexive."""
    first_or_second = subject.agreement in (FIRST, SECOND) or subject.english == "we"
    return dice.pick(_PRONOUNS_OF_OTHERS if first_or_second else PRONOUNS)


def resume(phrase: Phrase) -> Phrase | None:
    """The pronoun for a subject, or None where there is none without doubt."""
    if phrase.is_pronoun:
        return phrase
    if phrase.pronoun is None:
        return None
    subject, obj, nominative, accusative = phrase.pronoun
    agreement = phrase.agreement
    return _fixed(subject, obj, agreement, nominative, accusative, "")


def _resuming(kind: str, noun: GermanNoun, plural: bool) -> tuple[str, str, str, str] | None:
    if plural:
        return ("they", "them", "sie", "sie")
    if kind in ("PERSONS", "staff"):
        if noun.gender == "n":
            return None  # das Mädchen: es or sie
        return (*{"m": ("he", "him"), "f": ("she", "her")}[noun.gender], *_RESUMED[noun.gender])
    return ("it", "it", *_RESUMED[noun.gender])


def _phrase(
    kind: str,
    noun: Noun,
    german: GermanNoun,
    determiner: Determiner,
    adjectives: Sequence[Words],
    plural: bool,
) -> Phrase:
    english = [a for a, _ in adjectives]
    stems = [s for _, s in adjectives]
    text = english_phrase(determiner, english, noun.plural if plural else noun.singular, plural)
    negated = None
    if determiner in (_A, _NO_ARTICLE):
        negative = _KEIN if determiner is _A else _KEIN_BARE
        negated = _phrase(kind, noun, german, negative, adjectives, plural)
    return Phrase(
        english=text,
        english_object=text,
        german=_Forms(determiner, stems, german, plural),
        agreement=PLURAL if plural else THIRD,
        definite=determiner.kind == "der"
        or determiner.kind == "dieser"
        or determiner in _POSSESSIVES,
        pronoun=_resuming(kind, german, plural),
        relative=tuple(relative_pronoun(german, case, plural) for case in (0, 1)),
        negated=negated,
    )


def draw_adjectives(dice: Dice, kind: str, probability: float) -> list[Words]:
    """None, one or two adjectives, as English words and German stems."""
    if not dice.chance(probability):
        return []
    options = adjectives_of(kind)
    count = 2 if dice.chance(0.12) else 1
    chosen: list[Words] = []
    for _ in range(count):
        adjective = dice.skewed(options)
        if adjective.english not in [english for english, _ in chosen]:
            chosen.append((adjective.english, dice.synonym(adjective.german)[1]))
    return chosen


def noun_phrase(
    dice: Dice,
    kind: str,
    nouns: tuple[Noun, ...],
    *,
    definite: bool = False,
    adjective: float = 0.35,
) -> Phrase:
    """Draws a phrase with a noun of one class."""
    if kind == "CUPS":
        return _cup_of(dice)
    noun = dice.skewed(nouns)
    german = dice.synonym(noun.german)
    adjectives = draw_adjectives(dice, kind, adjective)
    if kind in ("DRINKS", "MASS_FOOD"):
        determiner = THE if definite or dice.chance(0.4) else _NO_ARTICLE
        return _phrase(kind, noun, german, determiner, adjectives, False)
    plural = dice.chance(0.22)
    if definite:
        determiner = dice.pick(_POSSESSIVES) if dice.chance(0.25) else THE
    elif plural:
        determiner = dice.weighted(
            (THE, _NO_ARTICLE, _THIS, _MANY, None), (0.4, 0.65, 0.72, 0.82, 1.0)
        ) or dice.pick(_NUMBERS)
    else:
        determiner = dice.weighted(
            (THE, _A, None, _THIS, _EVERY), (0.45, 0.75, 0.91, 0.97, 1.0)
        ) or dice.pick(_POSSESSIVES)
    return _phrase(kind, noun, german, determiner, adjectives, plural)


def _cup_of(dice: Dice) -> Phrase:
    """A cup of tea, two bottles of water."""
    vessel = dice.skewed(NOUNS["VESSELS"])
    drink = dice.skewed(NOUNS["DRINKS"])
    plural = dice.chance(0.3)
    german = vessel.german[0]
    determiner = dice.pick(_NUMBERS) if plural else _A
    base = _phrase("VESSELS", vessel, german, determiner, [], plural)
    return _with_tail(base, f" of {drink.singular}", f" {drink.german[0].singular}")


def _with_tail(phrase: Phrase, english: str, german: str) -> Phrase:
    return dataclasses.replace(
        phrase,
        english=phrase.english + english,
        english_object=phrase.english_object + english,
        german=tuple(phrase.german[case] + german for case in range(4)),
        negated=phrase.negated and _with_tail(phrase.negated, english, german),
    )


def person(dice: Dice, *, pronoun: float = 0.16, name: float = 0.16) -> Phrase:
    """Draws a person: a pronoun, a name, or a noun phrase."""
    if dice.chance(pronoun):
        return dice.pick(PRONOUNS)
    if dice.chance(name):
        return dice.pick(NAMES)
    if dice.chance(0.08):
        return noun_phrase(dice, "staff", NOUNS["staff"], adjective=0.15)
    return noun_phrase(dice, "PERSONS", NOUNS["PERSONS"], adjective=0.25)


def definite_person(dice: Dice) -> Phrase:
    """Draws a person that is known: for datives, agents and owners."""
    if dice.chance(0.15):
        return dice.pick(NAMES)
    return noun_phrase(dice, "PERSONS", NOUNS["PERSONS"], definite=True, adjective=0.2)


# Adverbials.


def time(dice: Dice, tense: str) -> Words:
    """When: "today", "at six o'clock"; tense is 'present', 'past' or 'future'."""
    if dice.chance(0.08):
        hour = dice.integer(2, 10)
        return f"at {_HOURS[hour - 1]} o'clock", f"um {lexicon.CLOCK[hour - 1]} Uhr"
    english, german = dice.skewed(TIMES[tense])
    return english, dice.synonym(german)


_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@functools.cache
def _places() -> tuple[tuple[str, str, tuple[tuple[str, str, str, str], ...]], ...]:
    """Places as (in the garden, to the garden, ((im Garten, in den Garten, …), …))."""
    places = []
    for line in lines(lexicon.PLACES):
        first, *others = line.split(" = ")
        preposition, english, first = first.split(" ", 2)
        english = english.replace("_", " ")
        german = []
        for text in [first, *others]:
            word, noun, gender = text.split()
            plural = gender == "pl"
            entry = GermanNoun(noun, "m" if plural else gender, noun if plural else "")
            there = german_phrase(THE, [], entry, DATIVE, plural)
            if word == "an":
                to = contract("zu", there)
            else:
                to = contract(word, german_phrase(THE, [], entry, ACCUSATIVE, plural))
            german.append((contract(word, there), to))
        article = "" if english == "school" else "the "
        places.append(
            (f"{preposition} {article}{english}", f"to {article}{english}", tuple(german))
        )
    return tuple(places)


_TOWNS = tuple(line.split() for line in lines(lexicon.TOWNS))


def place(dice: Dice) -> Words:
    """Where: "in the garden"."""
    if dice.chance(0.15):
        english, german = dice.skewed(_TOWNS)
        return f"in {english}", f"in {german}"
    if dice.chance(0.1):
        return _beside(dice)
    there, _, german = dice.skewed(_places())
    return there, dice.synonym(german)[0]


def direction(dice: Dice) -> Words:
    """Where to: "to the garden"."""
    if dice.chance(0.25):
        english, german = dice.skewed(_TOWNS)
        return f"to {english}", f"nach {german}"
    _, to, german = dice.skewed(_places())
    return to, dice.synonym(german)[1]


TWO_WAY = (
    ("on", "auf"),
    ("under", "unter"),
    ("next to", "neben"),
    ("behind", "hinter"),
    ("in front of", "vor"),
)


def _beside(dice: Dice) -> Words:
    """Behind the old house: a two-way preposition with the dative."""
    english, german = dice.pick(TWO_WAY[2:])
    phrase = noun_phrase(dice, "BUILDINGS", NOUNS["BUILDINGS"], definite=True, adjective=0.2)
    return f"{english} {phrase.english}", contract(german, phrase.german[DATIVE])


def company(dice: Dice, *, beneficiary: bool = True) -> Words:
    """With the dog, for the mother, without the key: prepositions that govern one case.

    Args:
      dice: source of choices.
      beneficiary: whether "for" is among them. "Wait for" would not be "warten für".
    """
    english, german, case = dice.weighted(
        (("with", "mit", DATIVE), ("without", "ohne", ACCUSATIVE), ("for", "für", ACCUSATIVE)),
        (0.55, 0.7, 1.0) if beneficiary else (0.75, 1.0, 1.0),
    )
    if dice.chance(0.3):
        phrase = noun_phrase(dice, "ANIMALS", NOUNS["ANIMALS"], definite=True, adjective=0.15)
    else:
        phrase = definite_person(dice)
    return f"{english} {phrase.english}", f"{german} {phrase.german[case]}"

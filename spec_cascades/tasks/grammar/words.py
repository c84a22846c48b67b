"""The lexicon, parsed into words of both languages."""

import dataclasses

from spec_cascades.tasks.grammar import lexicon
from spec_cascades.tasks.grammar.morphology import (
    EnglishVerb,
    GermanNoun,
    GermanVerb,
    english_verb,
    german_verb,
)

Words = tuple[str, str]  # English, German


@dataclasses.dataclass(frozen=True)
class Noun:
    """An English noun with its German renderings, the usual one first."""

    singular: str
    plural: str
    german: tuple[GermanNoun, ...]


@dataclasses.dataclass(frozen=True)
class Adjective:
    """An adjective with its German renderings (predicative, stem, comparative or '')."""

    english: str
    comparative: str
    german: tuple[tuple[str, str, str], ...]


@dataclasses.dataclass(frozen=True)
class Verb:
    """A verb with its German renderings and the nouns it takes as object."""

    english: EnglishVerb
    german: tuple[GermanVerb, ...]
    objects: tuple[tuple[str, tuple[Noun, ...]], ...] = ()
    moves_particle: bool = False


def lines(table: str) -> list[str]:
    """The entries of a table of the lexicon."""
    return table.strip().split("\n")


def _noun(line: str, modifier: Words = ("", "")) -> Noun:
    first, *others = line.split(" = ")
    english, first = first.split(" ", 1)
    singular, _, plural = english.replace("_", " ").partition("/")
    german = []
    for text in [first, *others]:
        word, gender, *rest = text.split()
        many = rest[0] if rest else ""
        if modifier[1]:
            word, many = modifier[1] + word.lower(), modifier[1] + many.lower()
        german.append(GermanNoun(word, gender, many, "weak" in rest))
    before = f"{modifier[0]} " if modifier[0] else ""
    return Noun(before + singular, before + (plural or singular + "s"), tuple(german))


def _adjective(line: str) -> Adjective:
    first, *others = line.split(" = ")
    english, first = first.split(" ", 1)
    word, _, comparative = english.partition("/")
    german = []
    for text in [first, *others]:
        base, *higher = text.split()
        predicative, _, stem = base.partition(":")
        german.append((predicative, stem or predicative, higher[0] if higher else ""))
    return Adjective(word, comparative.replace("_", " "), tuple(german))


def _pairs(table: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    pairs = [line.split(" | ") for line in lines(table)]
    return tuple((english, tuple(german.split(" = "))) for english, german in pairs)


def _nouns() -> dict[str, tuple[Noun, ...]]:
    names = (
        "PERSONS ANIMALS FOOD BAKED READING FLAT STANDING SUPPORTS THINGS MACHINES BREAKABLE "
        "OPENABLE CLOTHES VEHICLES BUILDINGS ROOMS DRINKS MASS_FOOD VESSELS VEGETABLES FRUIT "
        "PACKED HANGING TALES LETTERS"
    )
    nouns = {name: tuple(map(_noun, lines(getattr(lexicon, name)))) for name in names.split()}
    for name, modifiers, heads in lexicon.COMPOUNDS:
        before = [line.rsplit(" ", 1) for line in lines(modifiers)]
        nouns[name] = tuple(
            _noun(head, (english.replace("_", " "), german))
            for head in lines(heads)
            for english, german in before
        )
    return nouns


NOUNS = _nouns()


def _verb(line: str) -> Verb:
    english, german, *objects = line.split(" | ")
    classes = objects[0].split() if objects else []
    return Verb(
        english=english_verb(*english.split()),
        german=tuple(german_verb(*text.split()) for text in german.split(" = ")),
        objects=tuple((name, NOUNS.get(name, ())) for name in classes),
        moves_particle="_" in english and not english.startswith(("look_", "listen_")),
    )


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(map(_verb, lines(table)))


TRANSITIVE = _verbs(lexicon.TRANSITIVE)
DATIVE_VERBS = _verbs(lexicon.DATIVE)
DITRANSITIVE = _verbs(lexicon.DITRANSITIVE)
INTRANSITIVE = _verbs(lexicon.INTRANSITIVE)
MOTION = _verbs(lexicon.MOTION)
CONTROL = _verbs(lexicon.CONTROL)
SAYING = _verbs(lexicon.SAYING)

# English verbs without a progressive.
STATIVE = ("need", "love", "know", "believe", "trust", "belong", "hope")

TIMES = {
    "present": _pairs(lexicon.TIMES_PRESENT),
    "past": _pairs(lexicon.TIMES_PAST),
    "future": _pairs(lexicon.TIMES_FUTURE),
}
FREQUENCY = _pairs(lexicon.FREQUENCY)
MANNER = _pairs(lexicon.MANNER)

_ADJECTIVES = {
    name: tuple(map(_adjective, lines(getattr(lexicon, f"{name}_ADJECTIVES"))))
    for name in ("PERSON", "ANIMAL", "THING", "FOOD", "READING")
}
_ADJECTIVES_OF = {
    **dict.fromkeys(("PERSONS", "staff"), "PERSON"),
    "ANIMALS": "ANIMAL",
    **dict.fromkeys(("READING", "texts", "TALES", "LETTERS"), "READING"),
    **dict.fromkeys(
        ("FOOD", "BAKED", "dishes", "cakes", "DRINKS", "MASS_FOOD", "VEGETABLES", "FRUIT"), "FOOD"
    ),
}


def adjectives_of(kind: str) -> tuple[Adjective, ...]:
    """The adjectives that suit a class of nouns."""
    return _ADJECTIVES[_ADJECTIVES_OF.get(kind, "THING")]

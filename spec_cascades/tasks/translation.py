"""`demo_translation`: English to German from a synchronous grammar.

Every sentence is drawn once as a structure (who does what to whom, when, where, in which mood) and
spelled out in both languages, each by its own rules: German has three genders, four cases,
adjective endings, the verb second in main clauses and last in subordinate ones, separable prefixes,
and participles and infinitives at the end. Some words and orders have two correct renderings, of
which one is drawn, so no model can be sure of every token.

An example is a function of its split and index. Splits are disjoint by construction: which one a
sentence may belong to is decided by a checksum of its English text.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

from spec_cascades.tasks import lexicon, splits
from spec_cascades.tasks.dice import Dice
from spec_cascades.tasks.morphology import (
    ACCUSATIVE,
    DATIVE,
    FINITE,
    FIRST,
    GENITIVE,
    NOMINATIVE,
    PLURAL,
    SECOND,
    THIRD,
    Determiner,
    EnglishVerb,
    GermanNoun,
    GermanVerb,
    contract,
    english_phrase,
    english_verb,
    german_phrase,
    german_verb,
    relative_pronoun,
)

PREFIX = "German: "
SIZES = {"train": 200_000, "validation": 512, "test": 512}
_SEED = 20_250_401
_MOST_CHARACTERS = 110

Words = tuple[str, str]  # English, German


# The lexicon, parsed.


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


def _lines(table: str) -> list[str]:
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
    pairs = [line.split(" | ") for line in _lines(table)]
    return tuple((english, tuple(german.split(" = "))) for english, german in pairs)


def _nouns() -> dict[str, tuple[Noun, ...]]:
    names = (
        "PERSONS ANIMALS FOOD BAKED READING FLAT STANDING SUPPORTS THINGS MACHINES BREAKABLE OPENABLE CLOTHES VEHICLES "
        "BUILDINGS ROOMS DRINKS MASS_FOOD VESSELS VEGETABLES FRUIT PACKED HANGING TALES LETTERS"
    )
    nouns = {name: tuple(map(_noun, _lines(getattr(lexicon, name)))) for name in names.split()}
    for name, modifiers, heads in lexicon.COMPOUNDS:
        before = [line.rsplit(" ", 1) for line in _lines(modifiers)]
        nouns[name] = tuple(
            _noun(head, (english.replace("_", " "), german))
            for head in _lines(heads)
            for english, german in before
        )
    return nouns


_NOUNS = _nouns()


def _verb(line: str) -> Verb:
    english, german, *objects = line.split(" | ")
    classes = objects[0].split() if objects else []
    return Verb(
        english=english_verb(*english.split()),
        german=tuple(german_verb(*text.split()) for text in german.split(" = ")),
        objects=tuple((name, _NOUNS.get(name, ())) for name in classes),
        moves_particle="_" in english and not english.startswith(("look_", "listen_")),
    )


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(map(_verb, _lines(table)))


_TRANSITIVE = _verbs(lexicon.TRANSITIVE)
_DATIVE = _verbs(lexicon.DATIVE)
_DITRANSITIVE = _verbs(lexicon.DITRANSITIVE)
_INTRANSITIVE = _verbs(lexicon.INTRANSITIVE)
_MOTION = _verbs(lexicon.MOTION)
_CONTROL = _verbs(lexicon.CONTROL)
_SAYING = _verbs(lexicon.SAYING)

# English verbs without a progressive.
_STATIVE = ("need", "love", "know", "believe", "trust", "belong", "hope")

_TIMES = {
    "present": _pairs(lexicon.TIMES_PRESENT),
    "past": _pairs(lexicon.TIMES_PAST),
    "future": _pairs(lexicon.TIMES_FUTURE),
}
_FREQUENCY = _pairs(lexicon.FREQUENCY)
_MANNER = _pairs(lexicon.MANNER)

_ADJECTIVES = {
    name: tuple(map(_adjective, _lines(getattr(lexicon, f"{name}_ADJECTIVES"))))
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

_THE = Determiner("the", "d", "der")
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
    german: tuple[str, str, str, str]
    agreement: int
    definite: bool
    pronoun: tuple[str, str, str, str] | None = None
    is_pronoun: bool = False
    relative: tuple[str, str] | None = None
    negated: "Phrase | None" = None


def _fixed(english: str, obj: str, agreement: int, *german: str) -> Phrase:
    return Phrase(english, obj, (*german, ""), agreement, True, is_pronoun=True)


_PRONOUNS = (
    _fixed("he", "him", THIRD, "er", "ihn", "ihm"),
    _fixed("she", "her", THIRD, "sie", "sie", "ihr"),
    _fixed("I", "me", FIRST, "ich", "mich", "mir"),
    _fixed("they", "them", PLURAL, "sie", "sie", "ihnen"),
    _fixed("we", "us", PLURAL, "wir", "uns", "uns"),
    _fixed("you", "you", SECOND, "du", "dich", "dir"),
)
_THEM = _PRONOUNS[3]
_PRONOUNS_OF_OTHERS = (_PRONOUNS[0], _PRONOUNS[1], _THEM)
_RESUMED = {"m": ("er", "ihn"), "f": ("sie", "sie"), "n": ("es", "es")}
_NAMES = tuple(
    Phrase(
        name,
        name,
        (name, name, name, f"{name}s"),
        THIRD,
        True,
        pronoun=(*{"m": ("he", "him"), "f": ("she", "her")}[gender], *_RESUMED[gender]),
        relative=({"m": "der", "f": "die"}[gender], {"m": "den", "f": "die"}[gender]),
    )
    for name, gender in (line.split() for line in _lines(lexicon.NAMES) if not line.endswith("x m"))
)


def _object_pronoun(dice: Dice, subject: Phrase) -> Phrase:
    """A pronoun that does not mean the subject, which would take a reflexive."""
    first_or_second = subject.agreement in (FIRST, SECOND) or subject.english == "we"
    return dice.pick(_PRONOUNS_OF_OTHERS if first_or_second else _PRONOUNS)


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
        german=tuple(german_phrase(determiner, stems, german, case, plural) for case in range(4)),
        agreement=PLURAL if plural else THIRD,
        definite=determiner.kind == "der"
        or determiner.kind == "dieser"
        or determiner in _POSSESSIVES,
        pronoun=_resuming(kind, german, plural),
        relative=tuple(relative_pronoun(german, case, plural) for case in (0, 1)),
        negated=negated,
    )


def _adjectives(dice: Dice, kind: str, probability: float) -> list[Words]:
    if not dice.chance(probability):
        return []
    options = _ADJECTIVES[_ADJECTIVES_OF.get(kind, "THING")]
    count = 2 if dice.chance(0.12) else 1
    chosen: list[Words] = []
    for _ in range(count):
        adjective = dice.skewed(options)
        if adjective.english not in [english for english, _ in chosen]:
            chosen.append((adjective.english, dice.synonym(adjective.german)[1]))
    return chosen


def _noun_phrase(
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
    adjectives = _adjectives(dice, kind, adjective)
    if kind in ("DRINKS", "MASS_FOOD"):
        determiner = _THE if definite or dice.chance(0.4) else _NO_ARTICLE
        return _phrase(kind, noun, german, determiner, adjectives, False)
    plural = dice.chance(0.22)
    if definite:
        determiner = dice.pick(_POSSESSIVES) if dice.chance(0.25) else _THE
    elif plural:
        determiner = dice.weighted(
            (_THE, _NO_ARTICLE, _THIS, _MANY, None), (0.4, 0.65, 0.72, 0.82, 1.0)
        ) or dice.pick(_NUMBERS)
    else:
        determiner = dice.weighted(
            (_THE, _A, None, _THIS, _EVERY), (0.45, 0.75, 0.91, 0.97, 1.0)
        ) or dice.pick(_POSSESSIVES)
    return _phrase(kind, noun, german, determiner, adjectives, plural)


def _cup_of(dice: Dice) -> Phrase:
    """A cup of tea, two bottles of water."""
    vessel = dice.skewed(_NOUNS["VESSELS"])
    drink = dice.skewed(_NOUNS["DRINKS"])
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
        german=tuple(form + german for form in phrase.german),
        negated=phrase.negated and _with_tail(phrase.negated, english, german),
    )


def _person(dice: Dice, *, pronoun: float = 0.16, name: float = 0.16) -> Phrase:
    """Draws a person: a pronoun, a name, or a noun phrase."""
    if dice.chance(pronoun):
        return dice.pick(_PRONOUNS)
    if dice.chance(name):
        return dice.pick(_NAMES)
    if dice.chance(0.08):
        return _noun_phrase(dice, "staff", _NOUNS["staff"], adjective=0.15)
    return _noun_phrase(dice, "PERSONS", _NOUNS["PERSONS"], adjective=0.25)


def _definite_person(dice: Dice) -> Phrase:
    """Draws a person that is known: for datives, agents and owners."""
    if dice.chance(0.15):
        return dice.pick(_NAMES)
    return _noun_phrase(dice, "PERSONS", _NOUNS["PERSONS"], definite=True, adjective=0.2)


# Adverbials.


def _time(dice: Dice, tense: str) -> Words:
    if dice.chance(0.08):
        hour = dice.integer(2, 10)
        return f"at {_HOURS[hour - 1]} o'clock", f"um {lexicon.CLOCK[hour - 1]} Uhr"
    english, german = dice.skewed(_TIMES[tense])
    return english, dice.synonym(german)


_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@functools.cache
def _places() -> tuple[tuple[str, str, tuple[tuple[str, str, str, str], ...]], ...]:
    """Places as (in the garden, to the garden, ((im Garten, in den Garten, …), …))."""
    places = []
    for line in _lines(lexicon.PLACES):
        first, *others = line.split(" = ")
        preposition, english, first = first.split(" ", 2)
        english = english.replace("_", " ")
        german = []
        for text in [first, *others]:
            word, noun, gender = text.split()
            plural = gender == "pl"
            entry = GermanNoun(noun, "m" if plural else gender, noun if plural else "")
            there = german_phrase(_THE, [], entry, DATIVE, plural)
            if word == "an":
                to = contract("zu", there)
            else:
                to = contract(word, german_phrase(_THE, [], entry, ACCUSATIVE, plural))
            german.append((contract(word, there), to))
        article = "" if english == "school" else "the "
        places.append(
            (f"{preposition} {article}{english}", f"to {article}{english}", tuple(german))
        )
    return tuple(places)


_TOWNS = tuple(line.split() for line in _lines(lexicon.TOWNS))


def _place(dice: Dice) -> Words:
    if dice.chance(0.15):
        english, german = dice.skewed(_TOWNS)
        return f"in {english}", f"in {german}"
    if dice.chance(0.1):
        return _beside(dice)
    there, _, german = dice.skewed(_places())
    return there, dice.synonym(german)[0]


def _direction(dice: Dice) -> Words:
    if dice.chance(0.25):
        english, german = dice.skewed(_TOWNS)
        return f"to {english}", f"nach {german}"
    _, to, german = dice.skewed(_places())
    return to, dice.synonym(german)[1]


_TWO_WAY = (
    ("on", "auf"),
    ("under", "unter"),
    ("next to", "neben"),
    ("behind", "hinter"),
    ("in front of", "vor"),
)


def _beside(dice: Dice) -> Words:
    """Behind the old house: a two-way preposition with the dative."""
    english, german = dice.pick(_TWO_WAY[2:])
    phrase = _noun_phrase(dice, "BUILDINGS", _NOUNS["BUILDINGS"], definite=True, adjective=0.2)
    return f"{english} {phrase.english}", contract(german, phrase.german[DATIVE])


def _company(dice: Dice, *, beneficiary: bool = True) -> Words:
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
        phrase = _noun_phrase(dice, "ANIMALS", _NOUNS["ANIMALS"], definite=True, adjective=0.15)
    else:
        phrase = _definite_person(dice)
    return f"{english} {phrase.english}", f"{german} {phrase.german[case]}"


# Clauses.

# English modal, German finite forms, share of its negation.
_MODALS = (
    ("can", "können"),
    ("must", "müssen"),
    ("want to", "wollen"),
    ("should", "sollte"),
    ("would like to", "möchte"),
    ("may", "dürfen"),
)
_NEGATABLE = ("can", "want to", "should")
_BE = ("am", "are", "is", "are")
_WAS = ("was", "were", "was", "were")


@dataclasses.dataclass(frozen=True)
class Clause:
    """One clause before it is spelled out.

    `tense` is 'present', 'progressive', 'past', 'perfect', 'future' or 'modal'. Adverbials and
    predicates are pairs of English and German words. `copula` and `passive` replace the verb by
    forms of to be.
    """

    subject: Phrase
    tense: str
    verb: EnglishVerb | None = None
    german: GermanVerb | None = None
    modal: tuple[str, str] | None = None
    negated: bool = False
    accusative: Phrase | None = None
    dative: Phrase | None = None
    dative_with_to: bool = False
    particle_last: bool = False
    early_object: bool = False
    time: Words | None = None
    frequency: Words | None = None
    manner: Words | None = None
    company: Words | None = None
    place: Words | None = None
    direction: Words | None = None
    predicate: Words | None = None
    agent: Words | None = None
    passive: bool = False
    front: str = "subject"

    @property
    def copula(self) -> bool:
        """Whether the clause says what the subject is like."""
        return self.predicate is not None


def _english_verbs(clause: Clause, question: bool) -> tuple[list[str], str]:
    """The auxiliaries and the main verb, auxiliaries first."""
    person = clause.subject.agreement
    third = person == THIRD
    no = ["not"] if clause.negated else []
    if clause.copula or clause.passive:
        return _english_to_be(clause, no)
    verb = clause.verb
    if clause.tense == "progressive":
        return [_BE[person], *no], verb.progressive
    if clause.tense == "perfect":
        return ["has" if third else "have", *no], verb.participle
    if clause.tense == "future":
        return ["will", *no], verb.base
    if clause.tense == "modal":
        modal = clause.modal[0]
        if modal == "want to":
            if clause.negated or question:
                return ["does" if third else "do", *no, "want to"], verb.base
            return ["wants to" if third else "want to"], verb.base
        if modal == "can" and clause.negated:
            return ["cannot"], verb.base
        return [*modal.split(" ", 1), *no], verb.base
    if clause.negated or question:
        auxiliary = "did" if clause.tense == "past" else ("does" if third else "do")
        return [auxiliary, *no], verb.base
    if clause.tense == "past":
        return [], verb.past
    return [], verb.third if third else verb.base


def _english_to_be(clause: Clause, no: list[str]) -> tuple[list[str], str]:
    person = clause.subject.agreement
    last = clause.verb.participle if clause.passive else ""
    if clause.tense == "past":
        return [_WAS[person], *no], last
    if clause.tense == "future":
        return ["will", *no, "be"], last
    return [_BE[person], *no], last


def _english_rest(clause: Clause) -> list[str]:
    """What follows the main verb."""
    parts = []
    if clause.predicate:
        parts.append(clause.predicate[0])
    accusative = clause.accusative.english_object if clause.accusative else None
    dative = clause.dative.english_object if clause.dative else None
    if dative and not clause.dative_with_to:
        parts.append(dative)
    if accusative:
        parts.append(accusative)
    if dative and clause.dative_with_to:
        parts.append(f"to {dative}")
    for words in (clause.agent, clause.direction, clause.company, clause.manner):
        if words:
            parts.append(words[0])
    if clause.place and clause.front != "place":
        parts.append(clause.place[0])
    if clause.time and clause.front != "time":
        parts.append(clause.time[0])
    return parts


def _join(*words: str) -> str:
    return " ".join(word for word in words if word)


def english_clause(clause: Clause, *, question: bool = False) -> str:
    """Spells a clause in English, without capital letter and final mark."""
    auxiliaries, main = _english_verbs(clause, question)
    main, rest = _place_particle(clause, main)
    middle = [clause.frequency[0]] if clause.frequency else []
    if question:
        first, *others = auxiliaries
        return _join(first, clause.subject.english, *others, *middle, main, *rest)
    front = {"time": clause.time, "place": clause.place}.get(clause.front)
    return _join(
        front[0] if front else "", clause.subject.english, *auxiliaries, *middle, main, *rest
    )


def english_infinitive(clause: Clause) -> str:
    """Spells a clause without its subject: "to buy an apple"."""
    main, rest = _place_particle(clause, clause.verb.base)
    return _join("to", main, *rest)


def _place_particle(clause: Clause, main: str) -> tuple[str, list[str]]:
    """The main verb and what follows it: "put on the coat", but "put it on"."""
    rest = _english_rest(clause)
    if clause.particle_last:
        main, _, particle = main.rpartition(" ")
        rest.insert(1, particle)
    return main, rest


def _german_verbs(clause: Clause) -> tuple[str, list[str]]:
    """The finite verb and what stands at the end of a main clause."""
    person = clause.subject.agreement
    if clause.copula:
        if clause.tense == "future":
            return FINITE["werden"][person], ["sein"]
        return FINITE["war" if clause.tense == "past" else "sein"][person], []
    verb = clause.german
    if clause.passive:
        if clause.tense == "future":
            return FINITE["werden"][person], [verb.participle, "werden"]
        return FINITE["wurde" if clause.tense == "past" else "werden"][person], [verb.participle]
    if clause.tense in ("past", "perfect"):
        return FINITE[verb.auxiliary][person], [verb.participle]
    if clause.tense == "future":
        return FINITE["werden"][person], [verb.infinitive]
    if clause.tense == "modal":
        return FINITE[clause.modal[1]][person], [verb.infinitive]
    return verb.finite[person], [verb.prefix] if verb.prefix else []


def _german_middle(clause: Clause) -> list[str]:
    """What stands between the finite verb (or the conjunction and subject) and the end.

    Pronouns, time, dative, definite accusative, "nicht", manner, company, place, indefinite
    accusative, direction.
    """
    accusative, dative = clause.accusative, clause.dative
    negated = clause.negated
    if negated and accusative and accusative.negated:
        accusative, negated = accusative.negated, False
    known = accusative is not None and (accusative.definite or accusative.is_pronoun)
    first = accusative is not None and (accusative.is_pronoun or (known and clause.early_object))
    parts = []
    if first:
        parts.append(accusative.german[ACCUSATIVE])
    if dative and dative.is_pronoun:
        parts.append(dative.german[DATIVE])
    if clause.time and clause.front != "time":
        parts.append(clause.time[1])
    if clause.frequency:
        parts.append(clause.frequency[1])
    if dative and not dative.is_pronoun:
        parts.append(dative.german[DATIVE])
    if known and not first:
        parts.append(accusative.german[ACCUSATIVE])
    if negated:
        parts.append("nicht")
    for words in (clause.manner, clause.agent, clause.company):
        if words:
            parts.append(words[1])
    if clause.place and clause.front != "place":
        parts.append(clause.place[1])
    if accusative is not None and not known:
        parts.append(accusative.german[ACCUSATIVE])
    for words in (clause.direction, clause.predicate):
        if words:
            parts.append(words[1])
    return parts


def german_main(clause: Clause, *, after_clause: bool = False) -> str:
    """Spells a main clause: the verb stands second, after the subject, a fronted adverbial or (`after_clause`) a clause."""
    finite, tail = _german_verbs(clause)
    subject = clause.subject.german[NOMINATIVE]
    middle = _german_middle(clause)
    front = {"time": clause.time, "place": clause.place}.get(clause.front)
    if after_clause:
        return _join(finite, subject, *middle, *tail)
    if front:
        return _join(front[1], finite, subject, *middle, *tail)
    return _join(subject, finite, *middle, *tail)


def german_question(clause: Clause) -> str:
    """Spells a question: the verb stands first, or after the question word that the caller adds."""
    return german_main(clause, after_clause=True)


def german_subordinate(clause: Clause, *, subject: str | None = None) -> str:
    """Spells what follows a conjunction: the finite verb stands last, with its prefix.

    Args:
      clause: the clause.
      subject: replaces the subject; '' where the relative pronoun is the subject.
    """
    finite, tail = _german_verbs(clause)
    if subject is None:
        subject = clause.subject.german[NOMINATIVE]
    simple = clause.tense in ("present", "progressive") and not (clause.copula or clause.passive)
    ending = ["".join([*tail, finite])] if simple else [*tail, finite]
    return _join(subject, *_german_middle(clause), *ending)


def german_infinitive(clause: Clause) -> str:
    """Spells a clause without its subject: "einen Apfel zu kaufen"."""
    return _join(*_german_middle(clause), clause.german.zu)


def _draw_tense(dice: Dice) -> str:
    return dice.weighted(
        ("present", "progressive", "past", "perfect", "future", "modal"),
        (0.36, 0.5, 0.72, 0.79, 0.87, 1.0),
    )


def _tense_for(dice: Dice, verb: Verb) -> str:
    """A tense without a modal, and without the progressive where the verb has none."""
    tense = _draw_tense(dice)
    if tense == "modal":
        return "future"
    stative = tense == "progressive" and verb.english.base in _STATIVE
    return "present" if stative else tense


def _times_of(tense: str) -> str:
    return {"past": "past", "future": "future"}.get(tense, "present")


def _clause(
    dice: Dice,
    *,
    subject: Phrase | None = None,
    tense: str | None = None,
    detail: float = 1.0,
    allow_negation: bool = True,
) -> Clause:
    """Draws a clause with a verb; `detail` scales the number of adverbials."""
    subject = subject or _person(dice)
    tense = tense or _draw_tense(dice)
    settings: dict = {"subject": subject, "tense": tense}
    if tense == "modal":
        settings["modal"] = dice.skewed(_MODALS, 1.2)
    if allow_negation and dice.chance(0.12):
        settings["negated"] = tense != "modal" or settings["modal"][0] in _NEGATABLE
    kind = dice.weighted(
        ("transitive", "intransitive", "ditransitive", "motion", "dative"),
        (0.5, 0.68, 0.82, 0.93, 1.0),
    )
    settings.update(_PREDICATES[kind](dice, subject, detail))
    _make_sound(settings)
    if dice.chance(0.42 * detail):
        settings["time"] = _time(dice, _times_of(tense))
        settings["front"] = dice.weighted(("subject", "time"), (0.6, 1.0))
    elif tense in ("present", "past") and not settings.get("negated") and dice.chance(0.2):
        english, german = dice.skewed(_FREQUENCY)
        settings["frequency"] = english, dice.synonym(german)
    if dice.chance(0.1 * detail) and kind != "dative":
        english, german = dice.skewed(_MANNER)
        settings["manner"] = english, dice.synonym(german)
    return Clause(**settings)


def _make_sound(settings: dict) -> None:
    """Drops a progressive or a negation that the drawn verb or object does not allow."""
    if settings["tense"] == "progressive" and settings["verb"].base in _STATIVE:
        settings["tense"] = "present"
    accusative = settings.get("accusative")
    if accusative and not (accusative.definite or accusative.negated):
        settings["negated"] = False  # "not two apples" would correct someone


def _transitive(dice: Dice, subject: Phrase, detail: float) -> dict:
    verb = dice.skewed(_TRANSITIVE, 1.5)
    kind, nouns = dice.skewed(verb.objects, 1.3)
    settings = _with_verb(dice, verb)
    if dice.chance(0.08):
        person = kind in ("PERSONS", "staff")
        settings["accusative"] = _object_pronoun(dice, subject) if person else _THEM
        settings["particle_last"] = verb.moves_particle
    else:
        settings["accusative"] = _noun_phrase(dice, kind, nouns)
    settings["early_object"] = dice.chance(0.2)
    if dice.chance(0.18 * detail):
        settings["place"] = _place(dice)
    elif dice.chance(0.1 * detail):
        settings["company"] = _company(dice)
    return settings


def _intransitive(dice: Dice, subject: Phrase, detail: float) -> dict:
    settings = _with_verb(dice, dice.skewed(_INTRANSITIVE))
    if dice.chance(0.7):
        settings["place"] = _place(dice)
    if dice.chance(0.25 * detail):
        settings["company"] = _company(dice, beneficiary=False)
    return settings


def _ditransitive(dice: Dice, subject: Phrase, detail: float) -> dict:
    verb = dice.skewed(_DITRANSITIVE)
    kind, nouns = dice.skewed(verb.objects, 1.3)
    settings = _with_verb(dice, verb)
    settings["dative"] = _dative_person(dice, subject)
    settings["accusative"] = _noun_phrase(dice, kind, nouns)
    # "recommends the child the book" is no English, and "buys a book to the child" neither.
    base = verb.english.base
    settings["dative_with_to"] = base == "recommend" or (base != "buy" and dice.chance(0.5))
    return settings


def _dative_person(dice: Dice, subject: Phrase) -> Phrase:
    return _object_pronoun(dice, subject) if dice.chance(0.2) else _definite_person(dice)


def _motion(dice: Dice, subject: Phrase, detail: float) -> dict:
    settings = _with_verb(dice, dice.skewed(_MOTION))
    settings["direction"] = _direction(dice)
    if dice.chance(0.2 * detail):
        settings["company"] = _company(dice)
    return settings


def _dative(dice: Dice, subject: Phrase, detail: float) -> dict:
    settings = _with_verb(dice, dice.skewed(_DATIVE))
    settings["dative"] = _dative_person(dice, subject)
    if dice.chance(0.3 * detail):
        settings["place"] = _place(dice)
    return settings


def _with_verb(dice: Dice, verb: Verb) -> dict:
    return {"verb": verb.english, "german": dice.synonym(verb.german)}


_PREDICATES: dict[str, Callable[[Dice, Phrase, float], dict]] = {
    "transitive": _transitive,
    "intransitive": _intransitive,
    "ditransitive": _ditransitive,
    "motion": _motion,
    "dative": _dative,
}


# Sentences: each returns English and German without capitals, final mark included.


def _statement(dice: Dice) -> Words:
    clause = _clause(dice)
    if clause.place and clause.front == "subject" and not clause.time and dice.chance(0.25):
        clause = dataclasses.replace(clause, front="place")
    return english_clause(clause) + ".", german_main(clause) + "."


def _question(dice: Dice) -> Words:
    clause = dataclasses.replace(
        _clause(dice, detail=0.7), front="subject", negated=False, early_object=False
    )
    word = dice.weighted((None, "where", "when", "why"), (0.5, 0.7, 0.85, 1.0))
    if word == "where":
        clause = dataclasses.replace(clause, place=None, company=None)
        german = "wohin" if clause.direction else "wo"
        clause = dataclasses.replace(clause, direction=None)
    elif word == "when":
        clause = dataclasses.replace(clause, time=None, frequency=None)
        german = "wann"
    else:
        german = "warum"
    english = english_clause(clause, question=True) + "?"
    if word is None:
        return english, german_question(clause) + "?"
    return f"{word} {english}", f"{german} {german_question(clause)}?"


_CONJUNCTIONS = (
    ("because", ("weil", "da")),
    ("when", ("wenn",)),
    ("although", ("obwohl",)),
    ("if", ("wenn", "falls")),
    ("before", ("bevor",)),
    ("while", ("während",)),
)


def _complex(dice: Dice) -> Words:
    """Two clauses joined by a conjunction; the second often resumes the first's subject."""
    english, options = dice.skewed(_CONJUNCTIONS, 1.4)
    german = dice.synonym(options)
    present = english in ("when", "if", "before", "while")
    tense = "present" if present else None
    main = dataclasses.replace(_clause(dice, detail=0.4, tense=tense), front="subject")
    subject = _resume(main.subject) if dice.chance(0.65) else None
    other = dataclasses.replace(
        _clause(dice, subject=subject, detail=0.4, tense=tense), front="subject"
    )
    if dice.chance(0.35) and subject is None:
        return (
            f"{english} {english_clause(other)}, {english_clause(main)}.",
            f"{german} {german_subordinate(other)}, {german_main(main, after_clause=True)}.",
        )
    return (
        f"{english_clause(main)} {english} {english_clause(other)}.",
        f"{german_main(main)}, {german} {german_subordinate(other)}.",
    )


def _resume(phrase: Phrase) -> Phrase | None:
    """The pronoun for a subject, or None where there is none without doubt."""
    if phrase.is_pronoun:
        return phrase
    if phrase.pronoun is None:
        return None
    subject, obj, nominative, accusative = phrase.pronoun
    agreement = phrase.agreement
    return _fixed(subject, obj, agreement, nominative, accusative, "")


def _likes_it(dice: Dice) -> Words:
    """The man buys the apple because he needs it: gender agreement across clauses."""
    main = dataclasses.replace(_clause(dice, detail=0.2, allow_negation=False), front="subject")
    subject = _resume(main.subject)
    thing = main.accusative
    if subject is None or thing is None or thing.pronoun is None or not thing.definite:
        return _complex(dice)
    resumed = _resume(thing)
    english, german = dice.pick(_LIKING)
    other = Clause(
        subject=subject, tense="present", verb=english, german=german, accusative=resumed
    )
    return (
        f"{english_clause(main)} because {english_clause(other)}.",
        f"{german_main(main)}, weil {german_subordinate(other)}.",
    )


_LIKING = (
    (english_verb("need", "-", "-"), german_verb("brauchen", "-", "gebraucht", "h")),
    (english_verb("love", "-", "-"), german_verb("lieben", "-", "geliebt", "h")),
    (english_verb("know", "knew", "known"), german_verb("kennen", "-", "gekannt", "h")),
    (english_verb("miss", "-", "-"), german_verb("vermissen", "-", "vermisst", "h")),
)


def _saying(dice: Dice) -> Words:
    """The man says that the woman is sleeping."""
    verb = dice.skewed(_SAYING)
    subject = _person(dice)
    main = Clause(
        subject=subject,
        tense=dice.weighted(("present", "past"), (0.65, 1.0)),
        **_with_verb(dice, verb),
    )
    inner = dataclasses.replace(_clause(dice, detail=0.5), front="subject")
    return (
        f"{english_clause(main)} that {english_clause(inner)}.",
        f"{german_main(main)}, dass {german_subordinate(inner)}.",
    )


def _control(dice: Dice) -> Words:
    """The man tries to open the door."""
    subject = _person(dice)
    main = Clause(
        subject=subject,
        tense=dice.weighted(("present", "past", "future"), (0.6, 0.9, 1.0)),
        **_with_verb(dice, dice.skewed(_CONTROL)),
    )
    inner = dataclasses.replace(
        _clause(dice, subject=subject, tense="present", detail=0.4, allow_negation=False),
        front="subject",
        frequency=None,
    )
    return (
        f"{english_clause(main)} {english_infinitive(inner)}.",
        f"{german_main(main)}, {german_infinitive(inner)}.",
    )


def _purpose(dice: Dice) -> Words:
    """The woman goes to the market to buy apples."""
    subject = _person(dice)
    main = Clause(
        subject=subject,
        tense=dice.pick(("present", "past", "future")),
        **_motion(dice, subject, 0.0),
    )
    inner = Clause(subject=subject, tense="present", **_transitive(dice, subject, 0.0))
    return (
        f"{english_clause(main)} {english_infinitive(inner)}.",
        f"{german_main(main)}, um {german_infinitive(inner)}.",
    )


def _copula(dice: Dice) -> Words:
    """The old house is very expensive; the dog is bigger than the cat."""
    kind = dice.weighted(
        ("PERSONS", "THINGS", "ANIMALS", "READING", "CLOTHES", "BUILDINGS", "FOOD"),
        (0.3, 0.48, 0.6, 0.7, 0.8, 0.92, 1.0),
    )
    subject = _noun_phrase(dice, kind, _NOUNS[kind], definite=dice.chance(0.8), adjective=0.2)
    adjective = dice.skewed(_ADJECTIVES[_ADJECTIVES_OF.get(kind, "THING")])
    predicative, _, comparative = dice.synonym(adjective.german)
    if comparative and adjective.comparative and dice.chance(0.4):
        other = _noun_phrase(dice, kind, _NOUNS[kind], definite=True, adjective=0.15)
        predicate = (
            f"{adjective.comparative} than {other.english}",
            f"{comparative} als {other.german[NOMINATIVE]}",
        )
    else:
        degree = dice.weighted((("", ""), ("very ", "sehr "), ("too ", "zu ")), (0.5, 0.82, 1.0))
        predicate = degree[0] + adjective.english, degree[1] + predicative
    tense = dice.weighted(("present", "past", "future"), (0.65, 0.93, 1.0))
    clause = Clause(
        subject=subject,
        tense=tense,
        predicate=predicate,
        negated=dice.chance(0.15),
        time=_time(dice, _times_of(tense)) if dice.chance(0.15) else None,
        front="subject",
    )
    if clause.time and dice.chance(0.5):
        clause = dataclasses.replace(clause, front="time")
    return english_clause(clause) + ".", german_main(clause) + "."


def _passive(dice: Dice) -> Words:
    """The bridge was built by the engineer."""
    verb = dice.skewed(_TRANSITIVE, 1.3)
    kind, nouns = dice.skewed(verb.objects, 1.3)
    tense = dice.weighted(("present", "past", "future"), (0.4, 0.88, 1.0))
    agent = None
    if dice.chance(0.55):
        person = _definite_person(dice)
        agent = f"by {person.english}", contract("von", person.german[DATIVE])
    clause = Clause(
        subject=_noun_phrase(dice, kind, nouns, definite=True, adjective=0.3),
        tense=tense,
        passive=True,
        agent=agent,
        negated=dice.chance(0.1),
        time=_time(dice, _times_of(tense)) if dice.chance(0.4) else None,
        front=dice.weighted(("subject", "time"), (0.7, 1.0)),
        **_with_verb(dice, verb),
    )
    if clause.time is None:
        clause = dataclasses.replace(clause, front="subject")
    return english_clause(clause) + ".", german_main(clause) + "."


def _relative_subject(dice: Dice) -> Words:
    """The man who lives in Berlin buys a car."""
    subject = _noun_phrase(dice, "PERSONS", _NOUNS["PERSONS"], definite=True, adjective=0.15)
    inner = dataclasses.replace(
        _clause(dice, subject=subject, detail=0.3, allow_negation=False), front="subject"
    )
    outer = dataclasses.replace(_clause(dice, subject=subject, detail=0.3), front="subject")
    nobody = dataclasses.replace(subject, english="who")
    english_inner = english_clause(dataclasses.replace(inner, subject=nobody))
    english_whole = dataclasses.replace(subject, english=f"{subject.english} {english_inner}")
    german_inner = german_subordinate(inner, subject=subject.relative[0])
    german_whole = f"{subject.german[NOMINATIVE]}, {german_inner},"
    german_forms = (german_whole, *subject.german[1:])
    outer = dataclasses.replace(
        outer, subject=dataclasses.replace(english_whole, german=german_forms)
    )
    return english_clause(outer) + ".", german_main(outer) + "."


def _relative_object(dice: Dice) -> Words:
    """The woman is looking for the key that the man lost."""
    verb = dice.skewed(_TRANSITIVE, 1.5)
    kind, nouns = dice.skewed(verb.objects, 1.3)
    thing = _noun_phrase(dice, kind, nouns, definite=True, adjective=0.2)
    if thing.relative is None:
        return _complex(dice)
    main = Clause(
        subject=_person(dice),
        tense=_tense_for(dice, verb),
        accusative=thing,
        **_with_verb(dice, verb),
    )
    suited = [v for v in _TRANSITIVE if kind in dict(v.objects)]
    inner_verb = dice.pick(suited)
    inner = Clause(
        subject=_person(dice),
        tense=_tense_for(dice, inner_verb),
        **_with_verb(dice, inner_verb),
    )
    return (
        f"{english_clause(main)} that {english_clause(inner)}.",
        f"{german_main(main)}, {thing.relative[1]} {german_subordinate(inner)}.",
    )


def _position(dice: Dice) -> Words:
    """The book lies on the table; the woman puts it on the table: where it is, where to."""
    flat = dice.chance(0.5)
    kind = "FLAT" if flat else "STANDING"
    english, german = dice.pick(_TWO_WAY)
    support = _noun_phrase(dice, "SUPPORTS", _NOUNS["SUPPORTS"], definite=True, adjective=0.25)
    thing = _noun_phrase(dice, kind, _NOUNS[kind], adjective=0.25)
    if dice.chance(0.5):
        verb, there = (_LIE if flat else _STAND), DATIVE
        clause = Clause(
            subject=thing,
            tense="present",
            place=(f"{english} {support.english}", contract(german, support.german[there])),
            verb=verb[0],
            german=verb[1],
            time=_time(dice, "present") if dice.chance(0.15) else None,
            front=dice.weighted(("subject", "place"), (0.75, 1.0)),
        )
    else:
        tense = _draw_tense(dice).replace("modal", "future")
        clause = Clause(
            subject=_person(dice),
            tense=tense,
            accusative=thing,
            direction=(
                f"{english} {support.english}",
                contract(german, support.german[ACCUSATIVE]),
            ),
            verb=_PUT,
            german=_LAY if flat else _SET,
            time=_time(dice, _times_of(tense)) if dice.chance(0.3) else None,
        )
        if clause.time and dice.chance(0.4):
            clause = dataclasses.replace(clause, front="time")
    return english_clause(clause) + ".", german_main(clause) + "."


_LIE = english_verb("lie", "lay", "lain"), german_verb("liegen", "-", "gelegen", "h")
_STAND = english_verb("stand", "stood", "stood"), german_verb("stehen", "-", "gestanden", "h")
_PUT = english_verb("put", "put", "put")
_LAY = german_verb("legen", "-", "gelegt", "h")
_SET = german_verb("stellen", "-", "gestellt", "h")


def _belonging(dice: Dice) -> Words:
    """The car belongs to my uncle; my uncle's car is red: dative and genitive of the owner."""
    kind = dice.pick(("THINGS", "CLOTHES", "VEHICLES", "BUILDINGS", "ANIMALS"))
    owner = _definite_person(dice)
    if dice.chance(0.4):
        clause = Clause(
            subject=_noun_phrase(dice, kind, _NOUNS[kind], definite=True, adjective=0.4),
            tense="present",
            verb=_BELONG[0],
            german=_BELONG[1],
            dative=owner,
            dative_with_to=True,
            negated=dice.chance(0.15),
        )
        return english_clause(clause) + ".", german_main(clause) + "."
    noun = dice.skewed(_NOUNS[kind])
    german = dice.synonym(noun.german)
    adjectives = _adjectives(dice, kind, 0.3)
    mark = "'" if owner.english.endswith("s") else "'s"
    english = " ".join([owner.english + mark, *(a for a, _ in adjectives), noun.singular])
    stems = [s for _, s in adjectives]
    if owner.agreement == THIRD and owner in _NAMES:
        name = Determiner("", owner.german[GENITIVE], "none")
        forms = [german_phrase(name, stems, german, case, False) for case in range(4)]
    else:
        forms = [
            f"{german_phrase(_THE, stems, german, case, False)} {owner.german[GENITIVE]}"
            for case in range(4)
        ]
    thing = Phrase(english, english, tuple(forms), THIRD, True)
    if dice.chance(0.5):
        adjective = dice.skewed(_ADJECTIVES[_ADJECTIVES_OF.get(kind, "THING")])
        predicate = adjective.english, dice.synonym(adjective.german)[0]
        clause = Clause(subject=thing, tense="present", predicate=predicate)
    else:
        verb = dice.pick([v for v in _TRANSITIVE if kind in dict(v.objects)])
        clause = Clause(
            subject=_person(dice),
            tense=_tense_for(dice, verb),
            accusative=thing,
            **_with_verb(dice, verb),
        )
    return english_clause(clause) + ".", german_main(clause) + "."


_BELONG = english_verb("belong", "-", "-"), german_verb("gehören", "-", "gehört", "h")


def _both(dice: Dice) -> Words:
    """Two main clauses joined by and, but, or."""
    english, german = dice.weighted((("and", "und"), (", but", ", aber")), (0.6, 1.0))
    first, second = (
        dataclasses.replace(_clause(dice, detail=0.25), front="subject") for _ in range(2)
    )
    space = "" if english.startswith(",") else " "
    return (
        f"{english_clause(first)}{space}{english} {english_clause(second)}.",
        f"{german_main(first)}{space}{german} {german_main(second)}.",
    )


_SENTENCES: tuple[Callable[[Dice], Words], ...] = (
    _statement,
    _question,
    _complex,
    _likes_it,
    _saying,
    _control,
    _purpose,
    _copula,
    _passive,
    _relative_subject,
    _relative_object,
    _position,
    _belonging,
    _both,
)
_CUMULATIVE = (0.30, 0.37, 0.46, 0.50, 0.57, 0.63, 0.67, 0.75, 0.81, 0.86, 0.90, 0.95, 0.98, 1.0)


def sentence(seed: int) -> Words:
    """An English sentence and its German translation, as a function of the seed."""
    dice = Dice(seed)
    while True:
        english, german = dice.weighted(_SENTENCES, _CUMULATIVE)(dice)
        if len(english) <= _MOST_CHARACTERS:
            return english[0].upper() + english[1:], german[0].upper() + german[1:]


def example(split: str, index: int) -> Words:
    """Input and target text of one example of `demo_translation`."""
    english, german = _STREAM.example(split, index)
    return PREFIX + english, german


_STREAM = splits.Stream(sentence, seed=_SEED, sizes=SIZES)

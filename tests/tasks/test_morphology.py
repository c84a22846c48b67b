import pytest

from spec_cascades.tasks.grammar import lexicon, words
from spec_cascades.tasks.grammar.morphology import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    NOMINATIVE,
    Determiner,
    GermanNoun,
    contract,
    english_phrase,
    english_verb,
    german_phrase,
    german_verb,
)

DER = Determiner("the", "d", "der")
EIN = Determiner("a", "ein", "ein")
KEIN = Determiner("no", "kein", "ein")
DIESER = Determiner("this", "dies", "dieser", "these")
NONE = Determiner("", "", "none")
MANN = GermanNoun("Mann", "m", "Männer")
FRAU = GermanNoun("Frau", "f", "Frauen")
KIND = GermanNoun("Kind", "n", "Kinder")
JUNGE = GermanNoun("Junge", "m", "Jungen", weak=True)
AUTO = GermanNoun("Auto", "n", "Autos")

# By case: nominative, accusative, dative, genitive; hand-written.
PARADIGMS = [
    (DER, MANN, False, "der alte Mann|den alten Mann|dem alten Mann|des alten Mannes"),
    (DER, FRAU, False, "die alte Frau|die alte Frau|der alten Frau|der alten Frau"),
    (DER, KIND, False, "das alte Kind|das alte Kind|dem alten Kind|des alten Kindes"),
    (DER, KIND, True, "die alten Kinder|die alten Kinder|den alten Kindern|der alten Kinder"),
    (DER, AUTO, True, "die alten Autos|die alten Autos|den alten Autos|der alten Autos"),
    (DER, JUNGE, False, "der alte Junge|den alten Jungen|dem alten Jungen|des alten Jungen"),
    (EIN, MANN, False, "ein alter Mann|einen alten Mann|einem alten Mann|eines alten Mannes"),
    (EIN, FRAU, False, "eine alte Frau|eine alte Frau|einer alten Frau|einer alten Frau"),
    (EIN, KIND, False, "ein altes Kind|ein altes Kind|einem alten Kind|eines alten Kindes"),
    (KEIN, FRAU, True, "keine alten Frauen|keine alten Frauen|keinen alten Frauen|"
                       "keiner alten Frauen"),
    (DIESER, MANN, False, "dieser alte Mann|diesen alten Mann|diesem alten Mann|"
                          "dieses alten Mannes"),
    (DIESER, KIND, False, "dieses alte Kind|dieses alte Kind|diesem alten Kind|"
                          "dieses alten Kindes"),
    (NONE, MANN, True, "alte Männer|alte Männer|alten Männern|alter Männer"),
    (NONE, GermanNoun("Milch", "f"), False, "alte Milch|alte Milch|alter Milch|alter Milch"),
    (NONE, GermanNoun("Wasser", "n"), False, "altes Wasser|altes Wasser|altem Wasser|"
                                             "alten Wassers"),
]  # fmt: skip


@pytest.mark.parametrize("determiner, noun, plural, forms", PARADIGMS)
def test_paradigms(determiner, noun, plural, forms):
    found = [german_phrase(determiner, ["alt"], noun, case, plural) for case in range(4)]
    assert found == forms.split("|")


@pytest.mark.parametrize(
    "noun, genitive",
    [
        ("Lehrer", "Lehrers"), ("Freund", "Freundes"), ("Haus", "Hauses"), ("Schloss", "Schlosses"),
        ("Arzt", "Arztes"), ("Chef", "Chefs"), ("König", "Königs"), ("Sohn", "Sohnes"),
        ("Großvater", "Großvaters"), ("Auto", "Autos"), ("Zimmer", "Zimmers"),
    ],
)  # fmt: skip
def test_genitives(noun, genitive):
    assert GermanNoun(noun, "m", noun).form(GENITIVE, False) == genitive


def test_weak_nouns():
    forms = {
        "Student": "Studenten", "Bauer": "Bauern", "Nachbar": "Nachbarn", "Bär": "Bären",
        "Kollege": "Kollegen", "Polizist": "Polizisten", "Hase": "Hasen",
    }  # fmt: skip
    for nominative, other in forms.items():
        noun = GermanNoun(nominative, "m", other, weak=True)
        assert noun.form(NOMINATIVE, False) == nominative
        assert {noun.form(case, False) for case in (ACCUSATIVE, DATIVE, GENITIVE)} == {other}


# ich, du, er, plural; hand-written.
@pytest.mark.parametrize(
    "entry, forms, zu",
    [
        ("kaufen - gekauft h", "kaufe kaufst kauft kaufen", "zu kaufen"),
        ("arbeiten - gearbeitet h", "arbeite arbeitest arbeitet arbeiten", "zu arbeiten"),
        ("finden - gefunden h", "finde findest findet finden", "zu finden"),
        ("öffnen - geöffnet h", "öffne öffnest öffnet öffnen", "zu öffnen"),
        ("zeichnen - gezeichnet h", "zeichne zeichnest zeichnet zeichnen", "zu zeichnen"),
        ("lernen - gelernt h", "lerne lernst lernt lernen", "zu lernen"),
        ("lesen lies gelesen h", "lese liest liest lesen", "zu lesen"),
        ("essen iss gegessen h", "esse isst isst essen", "zu essen"),
        ("treffen triff getroffen h", "treffe triffst trifft treffen", "zu treffen"),
        ("ein.laden läd eingeladen h", "lade lädst lädt laden", "einzuladen"),
        ("auf.machen - aufgemacht h", "mache machst macht machen", "aufzumachen"),
        ("tanzen - getanzt h", "tanze tanzt tanzt tanzen", "zu tanzen"),
        ("reisen - gereist s", "reise reist reist reisen", "zu reisen"),
        ("füttern - gefüttert h", "füttere fütterst füttert füttern", "zu füttern"),
        ("wandern - gewandert s", "wandere wanderst wandert wandern", "zu wandern"),
        ("wissen - gewusst h", "weiß weißt weiß wissen", "zu wissen"),
        ("sitzen - gesessen h", "sitze sitzt sitzt sitzen", "zu sitzen"),
    ],
)
def test_conjugation(entry, forms, zu):
    verb = german_verb(*entry.split())
    assert " ".join(verb.finite) == forms
    assert verb.zu == zu


def test_contractions():
    assert contract("in", "dem Garten") == "im Garten"
    assert contract("in", "den Garten") == "in den Garten"
    assert contract("zu", "der Haltestelle") == "zur Haltestelle"
    assert contract("von", "dem alten Mann") == "vom alten Mann"
    assert contract("auf", "dem Tisch") == "auf dem Tisch"
    assert contract("mit", "demselben") == "mit demselben"


@pytest.mark.parametrize(
    "entry, forms",
    [
        ("buy bought bought", "buys bought bought buying"),
        ("carry - -", "carries carried carried carrying"),
        ("watch - -", "watches watched watched watching"),
        ("plan - -", "plans planned planned planning"),
        ("put_on put put", "puts on|put on|put on|putting on"),
        ("see saw seen", "sees saw seen seeing"),
        ("go went gone", "goes went gone going"),
        ("use - -", "uses used used using"),
        ("play - -", "plays played played playing"),
    ],
)
def test_english_verbs(entry, forms):
    verb = english_verb(*entry.split())
    expected = forms.split("|") if "|" in forms else forms.split()
    assert [verb.third, verb.past, verb.participle, verb.progressive] == expected


@pytest.mark.parametrize(
    "adjectives, noun, text",
    [
        ([], "apple", "an apple"),
        (["red"], "apple", "a red apple"),
        (["old"], "man", "an old man"),
        (["useful"], "box", "a useful box"),
        ([], "umbrella", "an umbrella"),
    ],
)
def test_english_article(adjectives, noun, text):
    assert english_phrase(EIN, adjectives, noun, False) == text


def test_lexicon_is_consistent():
    assert sum(map(len, words.NOUNS.values())) > 600
    seen = {}
    for nouns in words.NOUNS.values():
        for noun in nouns:
            for german in noun.german:
                assert german.gender in "mfn" and german.singular[0].isupper()
                assert german.plural == "" or german.plural[0].isupper()
                # A word has one gender and one plural wherever it is listed.
                entry = (german.gender, german.weak)
                assert seen.setdefault(german.singular, entry) == entry
    verbs = words.TRANSITIVE + words.DITRANSITIVE
    for verb in verbs:
        assert verb.objects
        for kind, nouns in verb.objects:
            assert nouns or kind == "CUPS", kind
    assert len(lexicon.NUMBERS) == len(dict(lexicon.NUMBERS))

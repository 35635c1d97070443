"""The grammar of the captions: sentences checked by hand, and patterns of errors."""

import re
from collections import Counter

import pytest

from seq2see.text.captions import Caption, words
from seq2see.text.captions.chinese import write_chinese
from seq2see.text.captions.grammar import Author
from seq2see.text.captions.lexicon import Noun, Structure
from seq2see.text.captions.phrases import write_english, write_german


class Dictated(Author):
    """Author with prescribed nouns and verbs that makes the plainest choice everywhere else."""

    def __init__(self, dictation: str) -> None:
        super().__init__("")
        self.random = lambda: 0.999  # no optional part is added
        self.dictation = dictation.split()

    def fresh(self, entries):  # type: ignore[no-untyped-def]
        name = self.dictation.pop(0)
        for entry in entries:
            noun = isinstance(entry, Noun)
            if name == (
                entry.german[0][0] if noun else f"{entry.particle}|{entry.base}".lstrip("|")
            ):
                return entry
        raise LookupError(name)

    def pick(self, options):  # type: ignore[no-untyped-def]
        return next((option for option in options if option in ("definite", ())), options[0])


HAND_CHECKED = [
    (
        *("plain", "auf|heben Mann Ball"),
        *("Der Mann hebt den Ball auf.", "The man is picking up the ball."),
        "0-0 1-1 2-2 2-3 2-4 3-5 4-6 5-3 5-4 6-7",
    ),
    (
        *("modal", "auf|heben Junge Stein"),
        *("Der Junge will den Stein aufheben.", "The boy wants to pick up the stone."),
        "0-0 1-1 2-2 2-3 3-6 4-7 5-4 5-5 6-8",
    ),
    (
        *("fronted(place)", "spielen Mädchen Fußball"),
        *("Im Park spielt das Mädchen Fußball.", "In the park, the girl is playing football."),
        "0-0 0-1 1-2 2-6 2-7 3-4 4-5 5-8 6-9",
    ),
    (
        *("fronted(object)+perfect", "geben Frau Apfel Junge"),
        *(
            "Den Apfel hat die Frau dem Jungen gegeben.",
            "The woman has given the apple to the boy.",
        ),
        "0-4 1-5 2-2 3-0 4-1 5-6 5-7 6-8 7-3 8-9",
    ),
    (
        *("because, plain", "schlafen Katze"),
        *("Weil sie müde ist, schläft die Katze.", "Because it is tired, the cat is sleeping."),
        "0-0 1-1 2-3 3-2 4-4 5-7 5-8 6-5 7-6 8-9",
    ),
    (
        *("plain, that", "sehen Frau auf|heben Junge Ball"),
        "Die Frau sieht, dass der Junge den Ball aufhebt.",
        "The woman sees that the boy is picking up the ball.",
        "0-0 1-1 2-2 4-3 5-4 6-5 7-9 8-10 9-6 9-7 9-8 10-11",
    ),
    (
        *("relative(subject)", "lachen Frau tragen Hut"),
        *("Die Frau, die den Hut trägt, lacht.", "The woman who is wearing the hat is laughing."),
        "0-0 1-1 3-2 4-5 5-6 6-3 6-4 8-7 8-8 9-9",
    ),
    (
        *("passive", "waschen Hund Mann"),
        *("Der Hund wird vom Mann gewaschen.", "The dog is being washed by the man."),
        "0-0 1-1 2-2 2-3 3-5 3-6 4-7 5-4 6-8",
    ),
]


@pytest.mark.parametrize(("structure", "dictation", "source", "target", "links"), HAND_CHECKED)
def test_hand_checked_sentences(
    structure: str, dictation: str, source: str, target: str, links: str
) -> None:
    sentence = Dictated(dictation).sentence(Structure(structure))
    english, starts = write_english(sentence)
    german, alignment = write_german(sentence, starts)
    assert (german, english) == (source, target)
    assert " ".join(f"{german}-{english}" for german, english in alignment) == links


CHINESE = {
    "plain": ("男人正在捡那个球。", "0-0 0-1 1-0 1-1 2-2 3-2 4-3 4-4 5-5 6-5 7-6 8-7"),
    "modal": (
        "男孩想要把石头捡起来。",
        "0-0 0-1 1-0 1-1 2-2 2-3 3-2 3-3 4-4 4-5 5-6 5-7 6-6 6-7 7-4 7-5 8-4 8-5 9-4 9-5 10-8",
    ),
    "fronted(place)": (
        "在公园里，女孩正在踢足球。",
        "0-0 1-1 1-2 2-1 2-2 3-0 5-4 5-5 6-4 6-5 7-6 8-6 9-7 10-8 11-8 12-9",
    ),
    "fronted(object)+perfect": (
        "那个苹果，女人给了男孩。",
        "0-4 1-4 2-5 3-5 5-0 5-1 6-0 6-1 7-3 7-6 8-2 9-7 9-8 10-7 10-8 11-9",
    ),
    "because, plain": (
        "因为很累，猫正在睡觉。",
        "0-0 1-0 2-2 2-3 3-2 3-3 5-5 5-6 6-7 7-7 8-8 9-8 10-9",
    ),
    "plain, that": (
        "女人看见男孩正在捡那个球。",
        "0-0 0-1 1-0 1-1 2-2 3-2 4-4 4-5 5-4 5-5 6-6 7-6 8-7 8-8 9-9 10-9 11-10 12-11",
    ),
    "relative(subject)": (
        "戴着那顶礼帽的女人正在笑。",
        "0-3 0-4 1-3 1-4 2-5 3-5 4-6 5-6 6-2 7-0 7-1 8-0 8-1 9-7 10-7 11-8 12-9",
    ),
    "passive": (
        "狗正在被男人清洗。",
        "0-0 0-1 1-2 1-3 2-2 2-3 3-5 4-6 4-7 5-6 5-7 6-4 7-4 8-8",
    ),
}


@pytest.mark.parametrize(("structure", "dictation"), [row[:2] for row in HAND_CHECKED])
def test_hand_checked_chinese(structure: str, dictation: str) -> None:
    author = Dictated(dictation)
    _, starts = write_english(author.sentence(Structure(structure)))
    chinese, links = write_chinese(author.plan, starts)
    alignment = " ".join(f"{chinese}-{english}" for chinese, english in links)
    assert (chinese, alignment) == CHINESE[structure]


# An adjective, but no article or number, which can follow a relative pronoun ("den ein Nachbar").
ADJECTIVE = r"(?!d[aei]|ein|kein|sein|ihr|zwei|drei|vier|fünf|sechs|viele|mehrere)[a-zäöüß]+e[nrs]?"
WEAK_NOUNS = "Junge|Polizist|Student|Tourist|Fotograf|Nachbar|Bauer|Hase|Affe|Welpe"
PLURALS_WITHOUT_N = "Kinder|Hunde|Männer|Bäume|Stühle|Tische|Häuser|Ärzte|Köche|Väter|Pferde|Bälle"


def article_before(articles: str, nouns: str) -> str:
    """A pattern for one of these articles, in either case, before one of these nouns."""
    forms = "|".join(
        f"[{article[0].upper()}{article[0]}]{article[1:]}" for article in articles.split()
    )
    return rf"\b({forms}) ({ADJECTIVE} )?({nouns})\b"


GERMAN_ERRORS = {
    "feminine": article_before(
        "ein einen einem den dem das kein keinen diesen dieses", "Frau|Katze|Tasche|Schule"
    ),
    "masculine": article_before(
        "eine einer die das diese dieses keine zur", "Mann|Hund|Ball|Tisch|Park"
    ),
    "neuter": article_before(
        "einen eine einer der den die diesen keinen zur", "Kind|Buch|Auto|Haus"
    ),
    "weak masculine": article_before(
        "den dem einen einem diesen diesem seinem vom zum des", WEAK_NOUNS
    ),
    "plural after ein": article_before(
        "ein eine einen einem einer kein", "Männer|Frauen|Hunde|Katzen|Bücher"
    ),
    "dative plural": (
        rf"\b([Mm]it|[Vv]on|[Zz]wischen) (\w+ )?({ADJECTIVE} )?({PLURALS_WITHOUT_N})\b"
    ),
    "open contraction": rf"\b([Ii]n|[Aa]n|[Zz]u|[Vv]on|[Bb]ei) dem ({ADJECTIVE} )?[A-ZÄÖÜ]",
    "open contraction, neuter": rf"\b([Ii]n|[Aa]n) das ({ADJECTIVE} )?[A-ZÄÖÜ]|\b[Zz]u der\b",
    "mixed ending": r"\b[Ee]in \w+(en|es) (Mann|Hund)\b|\b[Ee]in \w+(en|er) (Kind|Buch)\b",
    "weak ending": rf"\b([Ee]inem|[Dd]em|[Dd]iesem|[Ss]einem) {ADJECTIVE}(?<!en) [A-ZÄÖÜ]",
    "strong ending": (
        r"\b([Zz]wei|[Dd]rei|[Vv]iele|[Ee]inige|[Mm]ehrere) [a-zäöüß]+(er|es|em) [A-ZÄÖÜ]"
    ),
    "comma": r"[^,] (während|weil|wenn|dass|obwohl|nachdem)\b|,,|, ?[.?]| [,.?]|  ",
}
ENGLISH_ERRORS = {
    "a before a vowel": r"\b[Aa] [aeiou]",
    "an before a consonant": r"\b[Aa]n [^aeiou]",
    "singular verb": (
        r"^(Two|Three|Four|Many|Several|Some|These) (\w+ )?(\w+ )?(is|has|wants|sees)\b"
    ),
    "plural verb": r"^(The|A|An|This) (\w+ )?(man|woman|boy|girl|dog|child) (are|have|want|see)\b",
    "plural noun": r"\b(an?|this) (\w+ )?(men|women|boys|girls|dogs|children)\b",
    "singular noun": r"\b(two|these|many) (\w+ )?(man|woman|boy|dog|child)\b",
    "spacing or repetition": r",,|, ?[.?]| [,.?]|  |\b(\w+) \1\b",
}


@pytest.mark.parametrize("error", GERMAN_ERRORS)
def test_german_is_free_of(texts: tuple[str, str], error: str) -> None:
    match = re.search(f"(?m){GERMAN_ERRORS[error]}", texts[0])
    assert not match, texts[0][match.start() - 60 : match.end() + 60]


@pytest.mark.parametrize("error", ENGLISH_ERRORS)
def test_english_is_free_of(texts: tuple[str, str], error: str) -> None:
    match = re.search(f"(?m){ENGLISH_ERRORS[error]}", texts[1])
    assert not match, texts[1][match.start() - 60 : match.end() + 60]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("feminine", "Ein Mann sieht einen alte Frau."),
        ("masculine", "Eine Hund bellt."),
        ("neuter", "Der Mann liest einen neues Buch."),
        ("weak masculine", "Die Frau ruft den kleinen Junge."),
        ("dative plural", "Ein Mann spricht mit drei kleinen Kinder."),
        ("open contraction", "Der Hund schläft in dem Park."),
        ("weak ending", "Die Frau hilft dem alter Mann."),
        ("comma", "Der Hund schläft weil er müde ist."),
    ],
)
def test_the_error_patterns_find_errors(error: str, sentence: str) -> None:
    assert re.search(GERMAN_ERRORS[error], sentence)


def test_sentences_open_with_a_capital_and_end_with_a_mark(train: list[Caption]) -> None:
    for caption in train:
        for text in (caption.source, caption.target):
            assert text[0].isupper() and text[-1] in ".?" and text == text.strip()


def test_possessives_follow_their_owner(all_captions: list[Caption]) -> None:
    owners = {
        r"(man|boy|father|king)": "his",
        r"(woman|girl|mother)": "her",
        r"(dog|cat|puppy)": "its",
    }
    counts: Counter[str] = Counter()
    for caption in all_captions:
        if caption.structure in ("plain", "perfect", "modal", "fronted(time)"):
            for owner, possessive in owners.items():
                if re.search(
                    rf"^(\w+ )*?(The|A|An|the|a|an) (\w+ )?{owner} (is|has|wants)\b", caption.target
                ):
                    used = {*re.findall(r"\b(?:his|her|its|their)\b", caption.target)}
                    assert used <= {possessive}, caption.target
                    counts.update(used)
    assert counts["his"] and counts["her"]


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"\b[Hh]ebt\b.* auf[.,]", id="separable verb, second"),
        pytest.param(
            r"\b(weil|wenn|dass|während|nachdem)\b.* aufhebt\b", id="separable verb, last"
        ),
        pytest.param(r", .* \w+zu(heben|machen|geben|räumen)\b", id="zu inside a separable verb"),
        pytest.param(
            r"\b(will|möchte|muss|kann|soll|darf) .*en\.", id="modal with infinitive at the end"
        ),
        pytest.param(r"\b(ist|sind) .* (gelaufen|gegangen)\b", id="perfect with sein"),
        pytest.param(r"\b(wird|werden) .* (von|vom) .* \w+(t|en)\.", id="passive"),
        pytest.param(
            r"^(Der|Ein) (\w+ )?\w+, der .*, ", id="relative clause on a masculine subject"
        ),
        pytest.param(
            r"\w+, (den|die|das) (der|die|das|eine?) .* (hat|will|sucht)\.",
            id="relative clause on an object",
        ),
        pytest.param(
            r"\w+, (auf|mit|über) (den|dem|der|das|die|denen) ",
            id="relative pronoun after a preposition",
        ),
        pytest.param(r"\b[Dd]rei (kleine )?(Kinder|Frauen|Hunde)\b", id="number and plural"),
        pytest.param(r"\b[Ii]m (\w+ )?Park\b", id="in with the dative"),
        pytest.param(r"\bin (den|einen) (\w+ )?Park\b", id="in with the accusative"),
        pytest.param(r"^(Im|Am|Auf|In|Vor|Hinter) .*", id="place first"),
        pytest.param(r"^(Den|Einen|Diesen) ", id="object first"),
        pytest.param(
            r"^(Weil|Während|Wenn|Obwohl|Nachdem) .*, \w+(t|en) ", id="subordinate clause first"
        ),
        pytest.param(r"\bdes (\w+ )?(Mannes|Jungen|Kindes)\b", id="genitive"),
        pytest.param(r"\bkeinen? ", id="kein"),
        pytest.param(r" nicht\b", id="nicht"),
        pytest.param(r"^(Ist|Hat|Kann|Soll|Trägt|Liest) .*\?$", id="question"),
        pytest.param(r"\bdenen?\b|\bzwischen den \w+n\b", id="dative plural"),
    ],
)
def test_phenomenon_occurs(texts: tuple[str, str], pattern: str) -> None:
    assert re.search(f"(?m){pattern}", texts[0])


def test_forms_of_articles_and_adjectives_occur(train: list[Caption]) -> None:
    german = {word.lower() for caption in train for word in words(caption.source)}
    assert {"im", "am", "ins", "ans", "zum", "zur", "beim", "vom"} <= german
    assert {
        "rote",
        "roten",
        "roter",
        "rotes",
        "kaltes",
        "kalten",
        "seinen",
        "ihre",
        "diesem",
        "dessen",
    } - german <= {"dessen"}

"""Function words by language: words that carry grammar rather than content."""

_LISTS = {
    "de": (
        "der die das den dem des ein eine einen einem einer eines und oder aber in im ins an "
        "am ans auf aus bei beim mit von vom zu zum zur für über unter um durch nach vor als "
        "wie dass ist sind war waren hat haben hatte wird werden er sie es ich du wir ihr man "
        "sich mich mir dich dir uns ihm ihn ihnen mein dein sein seine seinen seinem seiner "
        "ihre ihren ihrem ihrer unser nicht auch so da"
    ),
    "en": (
        "a an the and or but in into on onto at by for from of off to with as that this these "
        "those there which who is are was were be been being am has have had do does did will "
        "would can could it its he she they we i you me him her them us his their our my your "
        "some up out not so"
    ),
    "fr": (
        "le la les un une des du de d'un d'une et ou mais à au aux dans en sur sous par pour "
        "avec sans est sont était a ont il elle ils elles on je tu nous vous me te se son sa "
        "ses leur leurs mon ma mes ton ta tes qui que qu'il qu'elle ce cette ces c'est n'est "
        "y ne pas"
    ),
}
FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}

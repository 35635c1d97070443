"""Names of languages, as people write them over a column."""

# Code → other codes, and names in English, in the language itself and in some others.
NAMES = {
    "ar": "ara arabic arabisch arabe العربية",
    "bg": "bul bulgarian български",
    "bn": "ben bengali বাংলা",
    "ca": "cat catalan català",
    "cs": "ces cze czech tschechisch čeština česky",
    "da": "dan danish dänisch dansk",
    "de": "deu ger german deutsch allemand alemán 德语 德文",
    "el": "ell gre greek griechisch ελληνικά",
    "en": "eng english englisch anglais inglés inglese 英语 英文 英語",
    "eo": "epo esperanto",
    "es": "spa spanish spanisch espagnol español castellano 西班牙语",
    "et": "est estonian eesti",
    "eu": "eus baq basque euskara",
    "fa": "fas per persian farsi فارسی",
    "fi": "fin finnish finnisch suomi",
    "fr": "fra fre french französisch français francés 法语 法文",
    "ga": "gle irish gaeilge",
    "gl": "glg galician galego",
    "he": "heb hebrew hebräisch עברית",
    "hi": "hin hindi हिन्दी",
    "hr": "hrv croatian kroatisch hrvatski",
    "hu": "hun hungarian ungarisch magyar",
    "id": "ind indonesian indonesia",
    "is": "isl ice icelandic íslenska",
    "it": "ita italian italienisch italien italiano",
    "ja": "jpn japanese japanisch japonais 日本語 日语",
    "ka": "kat geo georgian ქართული",
    "ko": "kor korean koreanisch 한국어 韩语",
    "la": "lat latin latein",
    "lt": "lit lithuanian lietuvių",
    "lv": "lav latvian latviešu",
    "ms": "msa may malay melayu",
    "nl": "nld dut dutch niederländisch néerlandais nederlands",
    "no": "nor nb nob nn nno norwegian norwegisch norsk",
    "pl": "pol polish polnisch polski",
    "pt": "por portuguese portugiesisch portugais português",
    "ro": "ron rum romanian rumänisch română",
    "ru": "rus russian russisch russe русский 俄语",
    "sk": "slk slo slovak slowakisch slovenčina",
    "sl": "slv slovene slovenian slovenščina",
    "sq": "sqi alb albanian shqip",
    "sr": "srp serbian serbisch српски srpski",
    "sv": "swe swedish schwedisch svenska",
    "sw": "swa swahili kiswahili",
    "ta": "tam tamil தமிழ்",
    "th": "tha thai ไทย",
    "tr": "tur turkish türkisch türkçe",
    "uk": "ukr ukrainian ukrainisch українська",
    "ur": "urd urdu اردو",
    "vi": "vie vietnamese vietnamesisch việt",
    "zh": "zho chi cmn chinese mandarin chinesisch chinois chino 中文 汉语 漢語",
}
LONGEST_CODE = 3  # characters
CODES = {name: code for code, names in NAMES.items() for name in (code, *names.split())}


def english_name(code: str) -> str:
    """Return a language's name in English, or the code itself if it has none here."""
    names = NAMES.get(code, code).split()
    return next((name.title() for name in names if len(name) > LONGEST_CODE), code)

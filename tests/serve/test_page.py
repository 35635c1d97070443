"""The page at / in a real browser: Debian's Chromium, driven by Playwright."""

import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

Go = Callable[..., Any]  # the fixture that opens pages
FILES = resources.files("seq2see.serve") / "page"
TOKEN = "sixteen characters"
WIDTHS = (1280, 390)
FOCUSED = """(({ activeElement: element }) => [
    element.id || element.localName,
    getComputedStyle(element.id === "text" ? element.parentElement : element).outlineStyle,
])(document)"""  # the pane of the text has the outline
HALF = """(() => {
    document.querySelector("#text").value = "eins \\ud83d";
    document.querySelector("#text").dispatchEvent(new InputEvent("input"));
})()"""


def fits(visit: Any) -> bool:
    """Whether nothing is wider than the window."""
    fit: bool = visit.read("document.documentElement.scrollWidth <= innerWidth")
    return fit


@pytest.mark.parametrize("width", WIDTHS)
def test_it_translates_while_the_reader_types(site: Any, go: Go, width: int) -> None:
    visit = go(site.url, width)
    visit.page.keyboard.type("drei acht eins")
    visit.see("#translation", "three eight one")
    visit.see("#count", "14 / 100,000 characters")
    visit.see("#by", re.compile(r"toy · torch · \d+ ms"))
    visit.page.keyboard.type(" vier")
    visit.see("#translation", "three eight one four")
    assert visit.find("#text").get_attribute("lang") == "de"
    assert visit.find("#translation").get_attribute("lang") == "en"
    assert fits(visit)
    visit.find("#clear").click()
    visit.see("#translation", "")


def test_line_breaks_and_empty_lines_stay(site: Any, go: Go) -> None:
    visit = go(site.url)
    assert visit.translated("zwei vier\n\n  \ndrei acht eins\n") == (
        "two four\n\n  \nthree eight one\n"
    )
    style = visit.read("getComputedStyle(document.querySelector('#translation')).whiteSpace")
    assert style == "pre-wrap"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_language_of_the_page_is_switched_and_remembered(site: Any, go: Go, width: int) -> None:
    visit = go(site.url, width)
    visit.translated("zwei vier")
    assert visit.page.title() == "Translate · seq2see"
    visit.find("#language").click()
    visit.see("#count", "9 / 100,000 个字符")
    visit.see("#from option:checked", "德语")
    visit.see("#translation", "two four")
    visit.page.reload()
    assert visit.read("document.documentElement.lang") == "zh-CN"
    assert visit.page.title() == "翻译 · seq2see"
    visit.see("#copy", "复制")
    visit.see("#language", "English")
    assert fits(visit)


def test_a_chinese_browser_gets_the_page_in_chinese(site: Any, browser: Any) -> None:
    context = browser.new_context(locale="zh-CN")
    page = context.new_page()
    page.goto(site.url)
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    english, chinese = page.evaluate(
        """import("./page/words.js").then(({ WORDS }) => [WORDS.en, WORDS.zh])"""
    )
    context.close()
    assert english.keys() == chinese.keys()
    for key, words in english.items():
        values = re.compile(r"\{\w+\}")
        assert sorted(values.findall(words)) == sorted(values.findall(chinese[key])), key


def test_the_theme_is_the_systems_until_it_is_switched(site: Any, go: Go) -> None:
    visit = go(site.url)

    def brightness() -> int:
        colour = visit.read("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) // 3

    assert brightness() > 200
    visit.page.emulate_media(color_scheme="dark")
    assert brightness() < 60
    visit.find("#theme").click()
    assert brightness() > 200 and visit.find("#theme").get_attribute("aria-pressed") == "false"
    visit.page.reload()
    assert brightness() > 200
    visit.find("#theme").click()
    visit.page.emulate_media(color_scheme="light")
    assert brightness() > 200  # it follows the system again


def test_the_other_translations_are_those_of_the_server(site: Any, go: Go) -> None:
    body = {"text": "neun sieben", "model": "toy", "n_best": 4}
    (row,) = site.client.post("/v1/translate", json=body).json()["translations"]
    expected = dict.fromkeys(one["text"] for one in row["alternatives"])
    visit = go(site.url)
    visit.translated("neun sieben")
    visit.see("#others ol", "")
    visit.find("#others summary").click()
    visit.expect(visit.find("#others li")).to_have_count(len(expected) - 1)
    shown = visit.find("#others li span").all_inner_texts()
    assert [visit.find("#translation").inner_text(), *shown] == [*expected]


def test_a_pair_and_a_model_are_chosen(site: Any, go: Go) -> None:
    visit = go(site.url)
    visit.translated("zwei vier")
    visit.find("#model").select_option("twin")
    visit.see("#by", re.compile("^twin"))
    visit.page.reload()
    visit.expect(visit.find("#model")).to_have_value("twin")
    visit.find("#from").select_option("he")
    visit.expect(visit.find("#text")).to_have_attribute("dir", "rtl")
    visit.expect(visit.find("#translation")).to_have_attribute("dir", "ltr")
    visit.expect(visit.find("#swap")).to_be_disabled()
    visit.expect(visit.find("#model")).to_be_hidden()


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_is_reached_by_the_keyboard(site: Any, go: Go, width: int) -> None:
    visit = go(site.url, width)
    keyboard = visit.page.keyboard
    keyboard.type("zwei vier")
    visit.see("#translation", "two four")
    keyboard.press("Control+Enter")
    visit.see("#copy", "Copied")
    assert visit.read("navigator.clipboard.readText()") == "two four"
    keyboard.press("Control+Shift+Enter")
    visit.expect(visit.find("#text")).to_have_value("two four")
    visit.expect(visit.find("#from")).to_have_value("en")
    visit.expect(visit.find("#copy")).to_be_enabled()
    visit.find(".brand").focus()
    order = []
    for _ in range(17):
        keyboard.press("Tab")
        name, outline = visit.read(FOCUSED)
        order.append(name)
        assert outline == "solid", name
    header, body = (
        [*["a"] * 9, "language", "theme"],
        ["from", "swap", "text", "clear", "copy", "summary"],
    )
    assert order == header + body
    keyboard.press("Enter")
    visit.expect(visit.find("#others li").first).to_be_visible()


def test_letters_of_a_word_that_is_being_composed_are_not_sent(site: Any, go: Go) -> None:
    visit = go(site.url)
    sent: list[str] = []
    visit.page.on("request", lambda request: sent.append(request.post_data))
    keyboard = visit.context.new_cdp_session(visit.page)
    for letters in ("z", "zw", "zwei"):
        place = {"selectionStart": len(letters), "selectionEnd": len(letters)}
        keyboard.send("Input.imeSetComposition", {"text": letters, **place})
    visit.page.wait_for_timeout(600)
    visit.expect(visit.find("#text")).to_have_value("zwei")
    assert sent == []
    keyboard.send("Input.insertText", {"text": "zwei vier"})
    visit.see("#translation", "two four")


def test_an_older_answer_never_replaces_a_newer_one(site: Any, go: Go) -> None:
    visit = go(site.url)
    held: list[Any] = []
    visit.page.route("**/v1/translate", lambda route: held.append(route), times=1)
    visit.find("#text").fill("zwei vier")
    with visit.page.expect_event("requestfailed"):
        while not held:
            visit.page.wait_for_timeout(20)
        visit.find("#text").fill("drei acht eins")
    assert visit.aborted == ["net::ERR_ABORTED"]
    visit.see("#translation", "three eight one")


def test_a_text_that_is_too_long_is_not_sent(site: Any, go: Go) -> None:
    visit = go(site.url)
    visit.translated("zwei vier")
    visit.find("#text").fill("😀" * 100_001)
    visit.see("#trouble span", "The text has 100,001 characters; the server takes at most 100,000.")
    visit.expect(visit.find("#text")).to_have_attribute("aria-invalid", "true")
    visit.translated("zwei vier")
    visit.expect(visit.find("#trouble")).to_be_hidden()


def test_the_servers_refusal_is_shown(site: Any, go: Go) -> None:
    visit = go(site.url)
    visit.read(HALF)
    rule = "text has half a surrogate pair, which is no character"
    visit.see("#trouble span", f"The server refuses the request: {rule}")
    visit.find("#language").click()
    visit.see("#trouble span", f"服务器拒绝了请求：{rule}")
    visit.forgive("422")


def test_a_lost_network_is_said_and_the_text_is_sent_again(site: Any, go: Go) -> None:
    visit = go(site.url)
    visit.translated("zwei vier")
    visit.context.set_offline(True)
    visit.find("#text").fill("drei acht eins")
    visit.see("#trouble span", "The server cannot be reached. Your text is still here.")
    visit.context.set_offline(False)
    visit.find("#again").click()
    visit.see("#translation", "three eight one")
    visit.expect(visit.find("#trouble")).to_be_hidden()
    visit.forgive("ERR_INTERNET_DISCONNECTED")


def test_a_busy_server_is_asked_once_more_after_its_delay(site: Any, go: Go) -> None:
    def busy(route: Any) -> None:
        route.fulfill(status=503, headers={"Retry-After": "1"}, json={"error": "the queue is full"})

    visit = go(site.url)
    visit.page.route("**/v1/translate", busy, times=1)
    visit.find("#text").fill("zwei vier")
    visit.see("#trouble span", "The server is busy. Trying again in 1 s …")
    visit.see("#translation", "two four")
    visit.expect(visit.find("#trouble")).to_be_hidden()
    visit.page.route("**/v1/translate", busy, times=2)
    visit.find("#text").fill("drei acht")
    visit.see("#trouble span", "The server is still busy. Your text is still here.")
    visit.forgive("503")


def test_a_token_is_asked_for_and_kept_in_the_tab(trained: Path, start: Any, go: Go) -> None:
    server = start("--model", trained, "--engine", "torch", env={"SEQ2SEE_TOKEN": TOKEN})
    visit = go(server.url, WIDTHS[1], focus="#token")
    visit.see("#trouble span", "This server asks for a token.")
    visit.page.keyboard.type("a wrong one")
    visit.page.keyboard.press("Enter")
    visit.see("#trouble span", "The server does not accept this token.")
    visit.find("#token").fill(TOKEN)
    visit.find("#access button").click()
    visit.expect(visit.find("#access")).to_be_hidden()
    assert visit.translated("zwei vier") == "two four"
    visit.forgive("401")
    visit.page.reload()
    assert visit.translated("zwei vier") == "two four"
    assert visit.read("JSON.stringify(localStorage)").count(TOKEN) == 0


def test_no_text_becomes_markup() -> None:
    for file in FILES.iterdir():
        if file.name.endswith(".js"):
            source = file.read_text(encoding="utf-8")
            for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
                assert way not in source, file.name


def test_the_files_are_revalidated_and_no_path_is_read(site: Any) -> None:
    tag = site.client.get("/").headers["etag"]
    assert site.client.get("/", headers={"if-none-match": tag}).status_code == 304
    for name in ("page.py", "..%2fpage.py", "%2e%2e/page.py", "nowhere.js"):
        assert site.client.get(f"/page/{name}").status_code == 404

"""Every page with its data, light and dark, English and Chinese: accessible, no console error, and a picture of it.

``make pictures`` writes the pictures of the documentation; otherwise it is only checked that they are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.all_pages import PAGES, DashboardPage
from tests.browser.pictures import BYTES_MAX, DIRECTORY, check_look
from tests.browser.shop import LOST_ORDER, Shop
from tests.browser.visitor import PHONE, Visitor

LOOKS = [*product(("light", "dark"), ("en", "zh"))]
ROOT = Path(__file__).parents[2]
LOW = 100
ONLY_THE_LISTENER = """(stacks, root) => {
    const threads = stacks.textContent.split("\\n\\n");
    stacks.textContent = threads.find((one) => one.includes("in remind")).replaceAll(root, "");
}"""
"""For the picture: the thread that matters, and no path of this machine."""
CUT_OFF = """() => [...document.querySelectorAll("main .table-scroll")]
    .filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => `${one.ariaLabel}: ${one.scrollWidth} > ${one.clientWidth}`)"""
"""Tables that are wider than their place, though this is no phone."""


@dataclass(frozen=True, slots=True)
class Look:
    theme: str
    language: str
    visitor: Visitor


@pytest.fixture(scope="module", params=LOOKS, ids=lambda look: "-".join(look))
def look(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Look]:
    theme, language = request.param
    visitor = Visitor.of(browser, address, theme=theme, language=language)
    yield Look(theme, language, visitor)
    visitor.context.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page(look: Look, the_shop: Shop, writes_pictures: bool, page: DashboardPage) -> None:
    visitor = look.visitor
    visitor.go(*(part.format(lost_id=the_shop.lost_id) for part in page.path), **page.params)
    visitor.sees(page.shows)
    expect(visitor.page.locator("main .notice.bad")).to_have_count(0)
    assert visitor.page.evaluate(CUT_OFF) == []
    check_look(visitor, page.name, look.theme, look.language, writes=writes_pictures)
    visitor.check()


def test_the_search(look: Look, writes_pictures: bool) -> None:
    look.visitor.go("overview")
    look.visitor.page.keyboard.press("/")
    look.visitor.page.get_by_role("combobox").press_sequentially(LOST_ORDER)
    expect(look.visitor.page.get_by_role("option", name=LOST_ORDER)).to_be_visible()
    check_look(look.visitor, "search", look.theme, look.language, writes=writes_pictures)
    look.visitor.page.keyboard.press("Escape")
    look.visitor.check()


def test_what_a_consumer_that_hangs_is_doing(look: Look, writes_pictures: bool) -> None:
    visitor = look.visitor
    visitor.go("groups", "mailer", tab="members")
    visitor.page.get_by_role("tabpanel").locator("tbody tr").first.get_by_role("button").click()
    visitor.dialog.locator(".dialog-foot button").first.click()
    stacks = visitor.dialog.locator("pre")
    expect(stacks).to_contain_text("remind")
    stacks.scroll_into_view_if_needed()
    assert stacks.evaluate("one => one.clientHeight") > LOW, "too low to read"
    stacks.evaluate(ONLY_THE_LISTENER, f"{ROOT}/")
    check_look(visitor, "stacks", look.theme, look.language, writes=writes_pictures)
    visitor.page.keyboard.press("Escape")
    visitor.check()


def test_dead_letters_that_are_delivered_again(look: Look, writes_pictures: bool) -> None:
    visitor = look.visitor
    visitor.go("dead-letters", "shipping")
    visitor.row(LOST_ORDER).get_by_role("checkbox").check()
    visitor.page.locator(".table-bar .button.primary").click()
    expect(visitor.dialog).to_contain_text(LOST_ORDER)
    check_look(visitor, "resend", look.theme, look.language, writes=writes_pictures)
    visitor.page.keyboard.press("Escape")
    visitor.check()


def test_the_preview_of_a_reset(look: Look, writes_pictures: bool) -> None:
    visitor = look.visitor
    visitor.go("groups", "billing")
    visitor.page.locator(".page-head .button.primary").click()
    visitor.dialog.locator("select").nth(1).select_option("beginning")
    visitor.dialog.locator(".dialog-foot .primary").click()
    expect(visitor.dialog.locator("tbody tr").first).to_be_visible()
    check_look(visitor, "reset", look.theme, look.language, writes=writes_pictures)
    visitor.page.keyboard.press("Escape")
    visitor.check()


def test_no_page_is_wider_than_a_phone(browser: Browser, address: str, the_shop: Shop) -> None:
    visitor = Visitor.of(browser, address, theme="dark", language="zh", size=PHONE)
    wide = {}
    for page in PAGES:
        visitor.go(*(part.format(lost_id=the_shop.lost_id) for part in page.path), **page.params)
        visitor.sees(page.shows)
        width = visitor.page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE[0]:
            wide[page.name] = width
    assert not wide
    visitor.context.close()
    visitor.check()


@pytest.mark.parametrize("name", ["overview", "group", "message"])
def test_a_page_on_a_phone(
    browser: Browser, address: str, the_shop: Shop, writes_pictures: bool, name: str
) -> None:
    page = next(one for one in PAGES if one.name == name)
    visitor = Visitor.of(browser, address, size=PHONE)
    visitor.go(*(part.format(lost_id=the_shop.lost_id) for part in page.path), **page.params)
    expect(visitor.page.locator("main").get_by_text(page.shows).first).to_be_visible()
    check_look(visitor, name, "phone", "en", writes=writes_pictures)
    visitor.context.close()
    visitor.check()


def test_every_picture_is_of_a_page_and_small() -> None:
    pictures = {path.name: path.stat().st_size for path in DIRECTORY.glob("*.png")}
    names = {page.name for page in PAGES} | {
        "login",
        "accounts",
        "reset",
        "search",
        "resend",
        "stacks",
    }
    assert {name.rsplit("-", 2)[0] for name in pictures} == names
    assert max(pictures.values()) <= BYTES_MAX

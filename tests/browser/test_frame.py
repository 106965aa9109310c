"""Around every page: search by keyboard, language, theme, a phone, and what happens when the dashboard is gone."""

from __future__ import annotations

from playwright.sync_api import Browser, expect
from tests.browser.serving import dashboard_of
from tests.browser.shop import Shop
from tests.browser.visitor import PHONE, Visitor


def test_the_search_is_used_by_keyboard_alone(visitor: Visitor) -> None:
    visitor.go("overview")
    visitor.page.keyboard.press("/")
    box = visitor.page.get_by_role("combobox")
    expect(box).to_be_focused()
    box.press_sequentially("bill")
    option = visitor.page.get_by_role("option", name="billing group")
    expect(option).to_have_attribute("aria-selected", "true")
    visitor.page.keyboard.press("Enter")
    expect(visitor.heading).to_have_text("billing")

    visitor.page.keyboard.press("Control+k")
    expect(box).to_be_focused()
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("Enter")
    expect(visitor.heading).to_have_text("Groups")
    visitor.page.keyboard.press("/")
    visitor.page.keyboard.press("Escape")
    expect(box).to_have_count(0)


def test_language_and_theme_are_switched_and_kept(visitor: Visitor) -> None:
    visitor.go("groups")
    visitor.press("Dark colours")
    assert visitor.page.evaluate("document.documentElement.dataset.theme") == "dark"
    visitor.press("中文")
    expect(visitor.heading).to_have_text("消费组")
    assert visitor.page.evaluate("document.documentElement.lang") == "zh-CN"


def test_the_menu_on_a_phone(browser: Browser, address: str) -> None:
    visitor = Visitor.of(browser, address, size=PHONE)
    visitor.go("overview")
    link = visitor.page.locator("nav").get_by_role("link", name="Topics")
    expect(link).not_to_be_visible()
    visitor.press("Menu")
    link.click()
    expect(visitor.heading).to_have_text("Topics")
    expect(link).not_to_be_visible()
    width = visitor.page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE[0], "the page is wider than the phone"
    visitor.context.close()
    visitor.check()


def test_several_sets_of_name_servers(browser: Browser, the_shop: Shop) -> None:
    servers = the_shop.servers
    sites = f"home={servers.name_servers},abroad=127.0.0.1:1"
    with dashboard_of(servers, name_servers=sites) as address:
        visitor = Visitor.of(browser, address)
        visitor.go("cluster")
        expect(visitor.row("standalone-2")).to_be_visible()
        visitor.page.get_by_label("Which name servers").select_option("abroad")
        visitor.settle()
        visitor.go("overview")
        visitor.sees("No name server answers")
        visitor.page.get_by_label("Which name servers").select_option("home")
        visitor.settle()
        visitor.go("cluster")
        expect(visitor.row("standalone-2")).to_be_visible()
        visitor.context.close()
        visitor.check()


def test_a_dialog_ends_with_its_page(visitor: Visitor) -> None:
    visitor.go("topics")
    visitor.go("groups")
    visitor.press("New group")
    expect(visitor.dialog).to_be_visible()
    visitor.page.go_back()
    expect(visitor.heading).to_have_text("Topics")
    expect(visitor.dialog).to_have_count(0)


def test_an_address_that_leads_nowhere(visitor: Visitor) -> None:
    visitor.go("nowhere")
    expect(visitor.heading).to_have_text("No such page")


def test_what_is_on_the_screen_stays_when_the_dashboard_is_gone(visitor: Visitor) -> None:
    visitor.go("topics")
    expect(visitor.row("Orders")).to_be_visible()
    visitor.page.route("**/api/v1/**", lambda route: route.abort())
    visitor.press("Hold the page as it is")
    visitor.press("Keep the page up to date")
    visitor.sees("The dashboard cannot be reached", "What you see is from")
    expect(visitor.row("Orders")).to_be_visible()
    visitor.complaints.clear()  # requests that fail are what this is about

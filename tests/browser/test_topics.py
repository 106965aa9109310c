"""Topics: create, send, change, delete by name; and what the server refuses is shown where it was typed."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.visitor import Visitor


def test_a_topic_from_its_creation_to_its_end(visitor: Visitor) -> None:
    visitor.go("topics")
    visitor.press("New topic")
    visitor.dialog.get_by_label("Name").fill("Parcels")
    visitor.dialog.get_by_label("Write queues").fill("2")
    visitor.dialog.get_by_label("Read queues").fill("2")
    visitor.press("Create", within=visitor.dialog)
    visitor.is_told("Topic Parcels is created")

    visitor.row("Parcels").get_by_role("link", name="Parcels").click()
    expect(visitor.heading).to_have_text("Parcels")
    visitor.press("Send a message")
    visitor.dialog.get_by_label("Body").fill('{"parcel": 17}')
    visitor.dialog.get_by_label("Keys").fill("parcel-17")
    visitor.dialog.get_by_label("Tag").fill("fragile")
    visitor.dialog.get_by_label("Properties").fill("region=eu")
    visitor.press("Send a message", within=visitor.dialog)
    visitor.is_told("Sent: SEND_OK")
    visitor.page.get_by_role("link", name="Look at messages").click()
    expect(visitor.row("parcel-17")).to_contain_text("fragile")
    visitor.row("parcel-17").get_by_role("link").click()
    visitor.sees('"parcel": 17', "region")

    visitor.go("topics", "Parcels", tab="definitions")
    visitor.press("Change…")
    visitor.dialog.get_by_label("Permission").select_option("r")
    visitor.press("Change", within=visitor.dialog)
    visitor.is_told("Topic Parcels is changed")
    expect(visitor.row("standalone", table="Definition")).to_contain_text("read only")

    visitor.press("Delete…")
    action = visitor.dialog.get_by_role("button", name="Delete topic")
    expect(action).to_be_disabled()
    visitor.dialog.get_by_role("textbox").fill("Parcels")
    action.click()
    visitor.is_told("Topic Parcels is deleted")
    expect(visitor.heading).to_have_text("Topics")


def test_a_name_that_is_refused_stays_to_be_mended(visitor: Visitor) -> None:
    visitor.expected = {400, 422}
    visitor.go("topics")
    visitor.press("New topic")
    name = visitor.dialog.get_by_label("Name")
    name.fill("no blanks here")
    visitor.press("Create", within=visitor.dialog)
    expect(visitor.dialog.locator(".notice.bad")).to_be_visible()
    expect(name).to_have_value("no blanks here")
    visitor.page.keyboard.press("Escape")
    expect(visitor.dialog).to_have_count(0)


def test_kinds_of_topics(visitor: Visitor) -> None:
    visitor.go("topics")
    expect(visitor.row("Orders")).to_be_visible()
    visitor.press("Retry")
    expect(visitor.row("%RETRY%shipping")).to_be_visible()
    expect(visitor.row("Orders")).to_have_count(0)
    visitor.press("Dead letters")
    expect(visitor.row("%DLQ%shipping")).to_be_visible()
    visitor.press("System")
    expect(visitor.row("RMQ_SYS_TRACE_TOPIC")).to_be_visible()


def test_who_consumes_a_topic_and_where_it_is(visitor: Visitor) -> None:
    visitor.go("topics", "Orders")
    expect(visitor.row("billing", table="Groups")).to_contain_text("offline")
    visitor.choose_tab("Queues")
    expect(visitor.page.get_by_role("region", name="Queues").locator("tbody tr")).to_have_count(8)
    visitor.choose_tab("Definition")
    expect(visitor.row("standalone-2", table="Definition")).to_contain_text("127.0.0.1")

"""Groups: from one that lags to the cause, and a reset that says first what it would do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import expect
from tests.browser.shop import Shop
from tests.browser.visitor import Visitor

from cometmq.client import LitePullConfig, Message
from cometmq.client.sync import LitePullConsumer, Producer


def test_from_a_group_that_lags_to_the_cause(visitor: Visitor) -> None:
    visitor.go("overview")
    problem = visitor.page.locator("#problems li").filter(has_text="group billing")
    expect(problem).to_contain_text("Nobody consumes for group billing")
    problem.get_by_role("link").click()

    expect(visitor.heading).to_have_text("billing")
    expect(visitor.page.locator("#stuck")).to_contain_text("No consumer of the group is online")
    row = visitor.row("Orders", table="Queues")
    expect(row).to_contain_text("nobody")
    visitor.page.get_by_role("link", name="What comes next").first.click()
    visitor.sees("order-10")


def test_what_a_consumer_that_hangs_is_doing(visitor: Visitor) -> None:
    visitor.go("groups", "mailer", tab="members")
    visitor.press("Details", exact=False)
    dialog = visitor.dialog
    expect(dialog.get_by_role("heading", name="Its queues")).to_be_visible()
    visitor.press("With stacks", within=dialog)
    expect(dialog.locator("pre")).to_contain_text("remind")


def test_lists_sort_filter_and_keep_their_state_in_the_address(visitor: Visitor) -> None:
    visitor.go("groups")
    rows = visitor.page.locator("tbody tr")
    expect(rows.first).to_contain_text("billing")
    visitor.page.get_by_role("searchbox", name="Filter by name").fill("analy")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("analytics")
    visitor.page.reload()
    visitor.settle()
    expect(rows).to_have_count(1)
    visitor.page.get_by_role("searchbox", name="Filter by name").fill("")
    expect(rows.filter(has_text="shipping")).to_have_count(1)
    visitor.press("Group")
    expect(rows.first).to_contain_text("analytics")
    visitor.press("Offline")
    expect(rows.filter(has_text="analytics")).to_have_count(0)
    expect(rows.filter(has_text="billing")).to_have_count(1)


def test_a_reset_shows_what_it_would_do_and_wants_the_name(
    visitor: Visitor, the_shop: Shop, aside: ThreadPoolExecutor
) -> None:
    aside.submit(_stopped_group, the_shop.name_servers, "resetting", "Resetting").result()
    visitor.go("groups", "resetting")
    visitor.press("Reset…")
    dialog = visitor.dialog
    expect(dialog.get_by_label("Topic")).to_have_value("Resetting")
    dialog.get_by_label("Go on at").select_option("beginning")
    visitor.press("Preview", within=dialog)
    expect(dialog).to_contain_text("5 messages are consumed again.")
    expect(dialog).to_contain_text("The group is offline")
    action = dialog.get_by_role("button", name="Reset offsets")
    expect(action).to_be_disabled()
    dialog.get_by_label("Type resetting to confirm").fill("resettin")
    expect(action).to_be_disabled()
    dialog.get_by_label("Type resetting to confirm").fill("resetting")
    action.click()
    visitor.is_told("Group resetting goes on at its new position")
    expect(visitor.page.locator(".figure-card").filter(has_text="Lag").first).to_contain_text("5")


def test_a_group_is_created_changed_and_deleted_by_name(visitor: Visitor) -> None:
    visitor.go("groups")
    visitor.press("New group")
    visitor.dialog.get_by_label("Name").fill("parcels")
    visitor.dialog.get_by_label("Retries", exact=True).fill("3")
    visitor.press("Create", within=visitor.dialog)
    visitor.is_told("Group parcels is created")

    visitor.go("groups", "parcels", tab="settings")
    expect(visitor.row("standalone", table="Settings")).to_contain_text("3")
    visitor.press("Change…")
    visitor.dialog.get_by_label("May consume").uncheck()
    visitor.press("Change", within=visitor.dialog)
    visitor.is_told("Group parcels is changed")
    expect(visitor.row("standalone", table="Settings")).to_contain_text("no")

    visitor.press("Delete…")
    visitor.dialog.get_by_role("textbox").fill("parcels")
    visitor.press("Delete group", within=visitor.dialog)
    visitor.is_told("Group parcels is deleted")
    expect(visitor.heading).to_have_text("Groups")
    expect(visitor.row("parcels")).to_have_count(0)


def _stopped_group(name_servers: str, group: str, topic: str) -> None:
    """A group that consumed all of its topic, and is offline since."""
    config = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET", auto_commit=False)
    with Producer("resetting-shop", name_servers=name_servers) as producer:
        for number in range(5):
            producer.send(Message(topic=topic, body=str(number).encode()))
    with LitePullConsumer(group, name_servers=name_servers, config=config) as consumer:
        consumer.subscribe(topic)
        seen = 0
        while seen < 5:
            seen += len(consumer.poll(timeout=5))
        consumer.commit()

"""Messages: from a customer's order number to the message, its way, its dead letter, and delivering it again."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Browser, expect
from tests.browser.serving import dashboard_of
from tests.browser.shop import LOST_ORDER, Shop
from tests.browser.visitor import Visitor

from cometmq.client import Message, Outcome, PushConsumerConfig, ReceivedMessage
from cometmq.client.sync import Producer, PushConsumer


def test_from_an_order_number_to_its_dead_letter_and_the_resend(visitor: Visitor) -> None:
    """As the how-to page tells it: from any page, with nothing but the number."""
    visitor.go("cluster")
    visitor.page.keyboard.press("/")
    visitor.page.get_by_role("combobox").press_sequentially(LOST_ORDER)
    expect(visitor.page.get_by_role("option", name="message by key")).to_be_visible()
    visitor.page.keyboard.press("Enter")
    visitor.row(LOST_ORDER, table="Messages").get_by_role("link").click()
    expect(visitor.heading).to_have_text(LOST_ORDER)
    visitor.sees('"customer"')
    way = visitor.page.locator(".timeline")
    expect(way).to_contain_text("Stored")
    expect(way).to_contain_text("Dead letter of")
    fate = visitor.row("billing", table="In each group")
    expect(fate).to_be_visible()

    given_up = way.locator("li").filter(has_text="Dead letter of")
    given_up.get_by_role("link", name="shipping").click()
    expect(visitor.heading).to_have_text("shipping")
    expect(visitor.row("Orders", table="What they have in common")).to_be_visible()
    letter = visitor.row(LOST_ORDER, table="Dead letters")
    letter.get_by_role("checkbox").check()
    visitor.press("Deliver one again…")
    expect(visitor.dialog).to_contain_text("They go to shipping, and to no other group.")
    visitor.press("Deliver again", within=visitor.dialog)
    visitor.is_told("One dead letter goes to shipping again")


def test_dead_letters_are_exported_and_deleted(
    visitor: Visitor, the_shop: Shop, aside: ThreadPoolExecutor
) -> None:
    aside.submit(_dead_letter, the_shop.name_servers, "returning", "Returns").result()
    visitor.go("dead-letters", "returning")
    expect(visitor.row("return-1", table="Dead letters")).to_be_visible()
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("link", name="Export").click()
    assert "return-1" in Path(download.value.path()).read_text()
    visitor.press("Delete…")
    visitor.dialog.get_by_role("textbox").fill("returning")
    visitor.press("Delete", within=visitor.dialog)
    visitor.is_told("The dead letters of returning are deleted")
    expect(visitor.heading).to_have_text("Dead letters")


def _dead_letter(name_servers: str, group: str, topic: str) -> None:
    given_up = threading.Event()

    def refuse(message: ReceivedMessage) -> Outcome:
        given_up.set()
        return Outcome.to_dlq()

    config = PushConsumerConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    with Producer("returning-shop", name_servers=name_servers) as producer:
        producer.send(Message(topic=topic, body=b"{}", keys=["return-1"]))
    consumer = PushConsumer(group, listener=refuse, name_servers=name_servers, config=config)
    consumer.subscribe(topic)
    with consumer:
        assert given_up.wait(30)


def test_a_message_goes_to_one_group_again(visitor: Visitor, the_shop: Shop) -> None:
    visitor.go("messages", the_shop.lost_id, topic="Orders")
    visitor.press("Deliver again…")
    visitor.dialog.get_by_label("Group").select_option("analytics")
    visitor.press("Deliver again", within=visitor.dialog)
    visitor.is_told(f"{LOST_ORDER} goes to group analytics again")


def test_a_message_is_found_by_its_id_alone(visitor: Visitor, the_shop: Shop) -> None:
    visitor.go("overview")
    visitor.page.keyboard.press("/")
    visitor.page.get_by_role("combobox").fill(the_shop.lost_id)
    expect(visitor.page.get_by_role("option", name="message by id")).to_be_visible()
    visitor.page.keyboard.press("Enter")
    visitor.row(LOST_ORDER, table="Messages").get_by_role("link").click()
    expect(visitor.heading).to_have_text(LOST_ORDER)


def test_filters_and_one_queue(visitor: Visitor) -> None:
    visitor.go("messages", topic="Orders")
    table = visitor.page.get_by_role("region", name="Messages")
    expect(table.locator("tbody tr").first).to_be_visible()
    visitor.page.get_by_label("Filter", exact=True).select_option("sql")
    visitor.page.get_by_label("Filter for").fill("region = 'eu' AND amount > 500")
    visitor.press("Search")
    expect(table.locator("tbody tr").first).to_be_visible()
    expect(table).not_to_contain_text("created")
    visitor.page.get_by_label("Filter for").fill("region = ")
    visitor.expected = {400, 422}
    visitor.press("Search")
    expect(visitor.page.locator(".notice.bad")).to_be_visible()


def test_a_masked_field_is_shown_nowhere(visitor: Visitor, the_shop: Shop) -> None:
    visitor.go("messages", the_shop.lost_id, topic="Orders")
    body = visitor.page.locator("pre.code")
    expect(body).to_contain_text('"card": "***"')
    visitor.page.get_by_label("Show the body as").select_option("hex")
    expect(body).to_contain_text('"card": "***"')
    expect(visitor.page.get_by_role("link", name="Download body")).to_have_count(0)
    visitor.go("messages", topic="Orders")
    expect(visitor.row("order-1")).to_contain_text("***")
    expect(visitor.page.locator("main")).not_to_contain_text("4111")


def test_a_body_in_another_format_and_as_a_file(browser: Browser, the_shop: Shop) -> None:
    with dashboard_of(the_shop.servers) as address:
        visitor = Visitor.of(browser, address)
        visitor.go("messages", the_shop.lost_id, topic="Orders")
        body = visitor.page.locator("pre.code")
        expect(body).to_contain_text("4111 1111")
        visitor.page.get_by_label("Show the body as").select_option("hex")
        expect(body).to_contain_text("7b 22")
        with visitor.page.expect_download() as download:
            visitor.page.get_by_role("link", name="Download body").click()
        assert json.loads(Path(download.value.path()).read_text())["order"] == LOST_ORDER
        visitor.context.close()
        visitor.check()


def test_messages_are_exported_as_json_lines(visitor: Visitor) -> None:
    visitor.go("messages", topic="Orders")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("link", name="Export").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == 200
    assert all(json.loads(line)["topic"] == "Orders" for line in lines)


def test_the_live_tail_shows_what_is_sent(
    visitor: Visitor, the_shop: Shop, aside: ThreadPoolExecutor
) -> None:
    visitor.go("messages", topic="Payments")
    visitor.press("Follow live")
    expect(visitor.page.locator(".badge").get_by_text("live", exact=True)).to_be_visible()
    # Payments come in all the time; the first one shows that the tail has begun.
    expect(visitor.row("card", table="Messages")).to_be_visible()
    aside.submit(_pay, the_shop.name_servers).result()
    expect(visitor.row("tail-1", table="Messages")).to_be_visible()
    visitor.press("Pause")
    visitor.page.get_by_role("link", name="Stop following").click()
    expect(visitor.page.get_by_role("button", name="Follow live")).to_be_visible()


def test_a_message_that_is_not_there(visitor: Visitor) -> None:
    visitor.expected = {404, 400, 422}
    visitor.go("messages", "7F000001000000000000000000000000", topic="Orders")
    visitor.sees("No such message")


def test_a_timed_message_is_taken_back(visitor: Visitor) -> None:
    visitor.go("delayed")
    visitor.row("later-5").get_by_role("button").click()
    expect(visitor.dialog).to_contain_text("later-5")
    visitor.press("Take back", within=visitor.dialog)
    visitor.is_told("later-5 is taken back")
    expect(visitor.row("later-5")).to_have_count(0)


def _pay(name_servers: str) -> None:
    with Producer("tail-shop", name_servers=name_servers) as producer:
        producer.send(Message(topic="Payments", body=b'{"from": "tail"}', keys=["tail-1"]))

"""What a broker sends to clients of its own accord reaches only accounts that may have it."""

from __future__ import annotations

from pathlib import Path

from tests.eventually import eventually
from tests.integration.signing_client import SigningClient
from tests.integration.test_access_accounts import ROOT, broker_at, entry, make_user
from tests.integration.test_reply import REPLIES

GROUP = "transfers"
HALF = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": "k"}
SOON = {"transactionTimeOut": "1", "transactionCheckInterval": "100"}


async def test_a_question_about_a_transaction_goes_to_who_may_publish_to_its_topic(
    tmp_path: Path,
) -> None:
    """The question has the message in it, and any account may call itself a producer of any group."""
    async with broker_at(tmp_path, **SOON) as broker:
        async with SigningClient(broker.address, "root", ROOT) as root:
            await make_user(root, "shop", entry("Topic:Transfers", "Pub"))
            await make_user(root, "spy", entry("Topic:Other", "Pub", "Sub"))
        async with (
            SigningClient(broker.address, "shop", "shop-pw") as shop,
            SigningClient(broker.address, "spy", "spy-pw") as spy,
        ):
            await spy.beat("spy@1", GROUP)
            for number in range(4):
                sent = await shop.send("Transfers", b"secret %d" % number, HALF)
                assert sent.code == 0, sent.remark
            # As long as nobody else is there, there is nobody to ask.
            assert broker.core.clients.producers.keys() == {GROUP}
            await shop.beat("shop@1", GROUP)
            # They take turns, so the spy's would have come.
            await eventually(lambda: shop.questions.qsize() >= 4, "the questions")
            assert spy.questions.empty()


async def test_every_producer_is_asked_where_rocketmqs_rules_apply(tmp_path: Path) -> None:
    async with broker_at(tmp_path, accessChecks="rocketmq", **SOON) as broker:
        async with SigningClient(broker.address, "root", ROOT) as root:
            await make_user(root, "other")
            assert (await root.send("Transfers", b"x", HALF)).code == 0
        async with SigningClient(broker.address, "other", "other-pw") as other:
            await other.beat("other@1", GROUP)
            await eventually(lambda: not other.questions.empty(), "the question")


async def test_a_clients_id_stays_with_the_account_that_has_it(tmp_path: Path) -> None:
    """Replies go to a client's id, and a request message tells everybody who reads it which that is."""
    async with broker_at(tmp_path) as broker, SigningClient(broker.address, "root", ROOT) as root:
        for name in ("asker", "spy"):
            await make_user(root, name)
        async with SigningClient(broker.address, "asker", "asker-pw") as asker:
            await asker.beat("asker@1", "Asking")
            async with SigningClient(broker.address, "spy", "spy-pw") as spy:
                await spy.beat("asker@1", "Asking")
                to_asker = {"REPLY_TO_CLIENT": "asker@1", "MSG_TYPE": "reply"}
                answer = await root.send(REPLIES, b"42", to_asker, code=325)
                assert answer.code == 0, answer.remark
                assert spy.replies.empty()
                assert bytes(asker.replies.get_nowait().body) == b"42"
            # A new connection of the same account takes the place of the old one.
            async with SigningClient(broker.address, "asker", "asker-pw") as again:
                await again.beat("asker@1", "Asking")
                answer = await root.send(REPLIES, b"43", to_asker, code=325)
                assert answer.code == 0, answer.remark
                assert bytes(again.replies.get_nowait().body) == b"43"

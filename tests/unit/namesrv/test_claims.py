"""Registrations that claim the place of another broker: refused as long as that one is alive."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cometmq.base.disk import SystemFiles
from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.namesrv.claims import ANSWER_SECONDS
from cometmq.namesrv.live_config import LiveConfig
from cometmq.namesrv.liveness import LiveBroker
from cometmq.namesrv.membership import Membership
from cometmq.namesrv.namesrv_config import NamesrvConfig
from cometmq.namesrv.registration import MinIdChange, Registration
from cometmq.namesrv.route_table import RouteTable
from cometmq.protocol.refusal import Refused
from cometmq.testing.fake_clock import FakeClock

REAL, EVIL = "10.0.0.1:10911", "6.6.6.6:10911"


class Line:
    """A connection as far as membership sees it."""

    def __init__(self, peer: str) -> None:
        self.peer = peer

    def close(self, reason: str) -> None:
        raise AssertionError(f"nobody is silent here: {reason}")


class Scene:
    """A broker ``a`` of topic T, and somebody who wants its clients."""

    def __init__(self, *, epoch: int = 0, takeover: bool = False) -> None:
        self.clock = FakeClock()
        self.table = RouteTable()
        self.asked: list[LiveBroker] = []
        self.answers = False
        self.can_ask = True
        config = LiveConfig(NamesrvConfig(broker_takeover=takeover), SystemFiles())
        self.membership = Membership(self.table, config, self.clock, self._changed, self._ask)
        self.real, self.evil = Line("10.0.0.1:5000"), Line("6.6.6.6:5000")
        self.register(self.real, REAL, epoch=epoch)

    def register(
        self,
        line: Line,
        address: str,
        *,
        name: str = "a",
        broker_id: int = 0,
        cluster: str = "C",
        epoch: int = 0,
    ) -> None:
        self.membership.register(
            Registration(
                cluster=cluster,
                broker_name=name,
                broker_id=broker_id,
                address=address,
                ha_address=address,
                topics={topic: TopicConfig(topic_name=topic) for topic in ("T", "U")},
                version=DataVersion(counter=1, state_version=epoch),
                connection=line,
            )
        )

    def refused(self, address: str = EVIL, **claim: str | int) -> None:
        with pytest.raises(Refused, match="is alive on the connection"):
            self.register(self.evil, address, **claim)  # type: ignore[arg-type]
        assert self.master() == REAL

    def master(self) -> str | None:
        route = self.table.route("T")
        addresses = (
            {data.broker_name: data.broker_addrs for data in route.broker_datas} if route else {}
        )
        return addresses.get("a", {}).get(0)

    def _ask(self, broker: LiveBroker) -> bool:
        if self.can_ask:
            self.asked.append(broker)
            if self.answers:
                self.membership.answered(broker)
        return self.can_ask

    def _changed(self, change: MinIdChange) -> None:
        pass


def test_the_place_of_a_broker_that_was_just_heard_of_is_kept() -> None:
    scene = Scene()
    scene.refused(epoch=99)
    assert not scene.asked


def test_a_silent_broker_is_asked_and_keeps_its_place_when_it_answers() -> None:
    """RocketMQ 4 registers every 30 s and says nothing between."""
    scene = Scene()
    scene.answers = True
    for _ in range(20):
        scene.clock.advance(ANSWER_SECONDS / 2)
        scene.refused()
    assert len(scene.asked) == 10, "once each ten seconds, not at every claim"


def test_a_broker_that_does_not_answer_for_ten_seconds_has_moved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    scene.clock.advance(30)
    scene.refused()
    scene.clock.advance(ANSWER_SECONDS - 0.1)
    scene.refused()
    scene.clock.advance(0.1)
    scene.register(scene.evil, EVIL)
    assert scene.master() == EVIL
    assert caplog.messages == [f"broker moved name=a id=0 from={REAL} to={EVIL} silent_seconds=40"]
    with pytest.raises(Refused, match=f"{EVIL} is alive"):
        scene.register(scene.real, REAL)
    scene.register(scene.evil, EVIL)
    assert scene.master() == EVIL


def test_a_broker_that_could_not_be_asked_keeps_its_place() -> None:
    scene = Scene()
    scene.can_ask = False
    for _ in range(5):
        scene.clock.advance(ANSWER_SECONDS)
        scene.refused()


def test_a_broker_whose_connection_is_gone_has_moved() -> None:
    scene = Scene()
    scene.membership.connection_lost(scene.real)
    scene.register(scene.evil, EVIL)
    assert scene.master() == EVIL


def test_a_broker_may_change_its_own_address_and_id() -> None:
    scene = Scene()
    scene.register(scene.real, "10.0.0.1:20911")
    assert scene.master() == "10.0.0.1:20911"
    scene.register(scene.real, "10.0.0.1:20911", broker_id=3)
    assert scene.table.member_addresses("C", "a") == {3: "10.0.0.1:20911"}


def test_under_a_controller_the_higher_epoch_wins() -> None:
    scene = Scene(epoch=4)
    scene.refused(epoch=4)
    scene.register(scene.evil, EVIL, epoch=3)
    assert scene.master() == REAL, "ignored, as in RocketMQ"
    scene.register(scene.evil, EVIL, epoch=5)
    assert scene.master() == EVIL
    scene.register(scene.evil, EVIL, epoch=5)
    assert scene.master() == EVIL
    scene.register(scene.real, REAL, epoch=5, broker_id=2)
    assert scene.table.member_addresses("C", "a") == {0: EVIL, 2: REAL}


def test_rocketmq_s_way_is_a_setting() -> None:
    scene = Scene(takeover=True)
    scene.register(scene.evil, EVIL)
    assert scene.master() == EVIL
    scene.membership.unregister("C", "a", EVIL, scene.real)
    assert scene.master() is None


def test_no_detour_leads_to_the_place_of_another() -> None:
    scene = Scene()
    scene.refused(broker_id=5, address=REAL)  # would take the address from id 0
    scene.refused(name="other", address=REAL)  # would be removed with it
    scene.refused(cluster="D")
    scene.refused(cluster="D", address=REAL)
    with pytest.raises(Refused, match=f"unregister broker failed: a id 0 at {REAL}"):
        scene.membership.unregister("C", "a", REAL, scene.evil)
    with pytest.raises(Refused, match="unregister"):
        scene.membership.unregister("D", "a", REAL, scene.evil)
    with pytest.raises(Refused, match="unregister"):
        scene.membership.unregister("C", "other", REAL, scene.evil)
    scene.refused(address=REAL, epoch=1)  # would make 2 the epoch to win by
    scene.register(scene.evil, REAL)  # as one who has reconnected
    scene.refused()
    scene.membership.connection_lost(scene.evil)
    scene.refused()
    scene.membership.unregister("C", "a", REAL, scene.real)
    assert scene.master() is None


def test_a_broker_that_reconnected_speaks_for_itself_once_the_old_connection_is_gone() -> None:
    scene, again = Scene(), Line("10.0.0.1:5001")
    scene.register(again, REAL)
    scene.membership.connection_lost(scene.real)
    assert scene.master() == REAL
    scene.refused()
    scene.membership.unregister("C", "a", REAL, again)
    assert scene.master() is None


NAMES, CLUSTERS = st.sampled_from(["a", "b"]), st.sampled_from(["C", "D"])
ADDRESSES = st.sampled_from([REAL, EVIL, "6.6.6.6:2"])
ATTACKS = st.lists(
    st.one_of(
        st.tuples(
            st.just("register"),
            NAMES,
            CLUSTERS,
            ADDRESSES,
            st.integers(0, 2),
            st.integers(0, 2),
            st.integers(0, 6),
        ),
        st.tuples(st.just("unregister"), NAMES, CLUSTERS, ADDRESSES, st.integers(0, 6)),
        st.tuples(st.just("hang up"), st.integers(0, 6)),
        st.tuples(st.just("wait"), st.floats(0, 25)),
    ),
    max_size=25,
)


@settings(max_examples=300, deadline=None)
@given(ATTACKS)
def test_whatever_others_send_a_live_broker_keeps_its_clients(attacks: list[tuple]) -> None:  # type: ignore[type-arg]
    scene = Scene()
    scene.answers = True
    lines = [Line(f"6.6.6.6:{port}") for port in range(7)]
    for attack in attacks:
        try:
            match attack:
                case "register", name, cluster, address, broker_id, epoch, line:
                    scene.register(
                        lines[line],
                        address,
                        name=name,
                        cluster=cluster,
                        broker_id=broker_id,
                        epoch=epoch if name == "a" and broker_id == 0 else 0,
                    )
                case "unregister", name, cluster, address, line:
                    scene.membership.unregister(cluster, name, address, lines[line])
                case "hang up", line:
                    scene.membership.connection_lost(lines[line])
                    lines[line] = Line(lines[line].peer)
                case "wait", seconds:
                    scene.clock.advance(seconds)
        except Refused:
            pass
        assert scene.master() == REAL

"""The rules; what fires; and who is told: the log, open tabs and a webhook. Rules, history and silences are kept."""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from typing import Final

import msgspec

from cometmq.base.ports import Clock
from cometmq.dashboard.alerts.conditions import conditions_of
from cometmq.dashboard.alerts.files import AlertFiles
from cometmq.dashboard.alerts.states import RESOLVED, AlertStates
from cometmq.dashboard.bodies.operations import Alert, NewRule, Rule
from cometmq.dashboard.problems import bad_request, not_found
from cometmq.dashboard.watch.hub import Hub
from cometmq.dashboard.watch.site import Site

log = logging.getLogger("cometmq.dashboard")

RULES_MAX: Final = 200
SILENCES_MAX: Final = 1000
POSTS_MAX: Final = 100
"""That wait for the webhook; of more, the oldest are dropped."""
POST_SECONDS: Final = 5.0
POST_TRIES: Final = 3


def _rule(name: str, kind: str, threshold: float, for_seconds: int) -> Rule:
    return Rule(
        name=name,
        kind=kind,
        threshold=threshold,
        pattern="*",
        for_seconds=for_seconds,
        enabled=True,
    )


DEFAULT_RULES: Final = (
    _rule("broker does not answer", "broker_silent", 0, 30),
    _rule("disk nearly full", "disk", 0.85, 60),
    _rule("group far behind", "lag_ms", 10 * 60_000, 60),
    _rule("nobody consumes", "no_consumer", 1, 300),
    _rule("dead letters grow", "dead_letters", 0, 0),
    _rule("certificate ends", "certificate", 14, 0),
    _rule("replica behind", "replication", 64 * 1024 * 1024, 60),
)


class AlertBook:
    """Owned by the event loop.

    Args:
        files: where rules, history and silences are kept.
        webhook: empty for none.
    """

    def __init__(self, files: AlertFiles, webhook: str, hub: Hub, clock: Clock) -> None:
        """Raises ConfigError: a file is damaged."""
        self.webhook = webhook
        self._files = files
        self._hub = hub
        self._clock = clock
        rules = files.rules()
        self._rules = {rule.name: rule for rule in (DEFAULT_RULES if rules is None else rules)}
        self._states = {site: AlertStates(past) for site, past in files.past().items()}
        self._posts: asyncio.Queue[bytes] = asyncio.Queue(POSTS_MAX)
        self._posting: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.webhook:
            self._posting = asyncio.create_task(self._post_all())

    async def stop(self) -> None:
        if self._posting is not None:
            self._posting.cancel()
            await asyncio.gather(self._posting, return_exceptions=True)

    @property
    def rules(self) -> list[Rule]:
        return sorted(self._rules.values(), key=lambda rule: rule.name)

    def states(self, site: str) -> AlertStates:
        return self._states.setdefault(site, AlertStates())

    async def look(self, site: Site) -> None:
        """After a round."""
        rules = self.rules
        for_seconds = {rule.name: rule.for_seconds for rule in rules}
        told = self.states(site.name).step(
            conditions_of(site, rules), for_seconds, self._clock.wall_ms()
        )
        for alert in told:
            log.warning(
                "alert state=%s site=%s rule=%r subject=%s text=%r",
                alert.state,
                site.name,
                alert.rule,
                alert.subject,
                alert.text,
            )
            self._hub.tell(site.name, "alert", alert)
            if self.webhook:
                self._queue(site.name, alert)
        if any(alert.state == RESOLVED for alert in told):
            await self._keep_past()

    async def put(self, given: NewRule) -> None:
        """Raises Problem: there are too many."""
        if given.name not in self._rules and len(self._rules) >= RULES_MAX:
            raise bad_request(f"there are {RULES_MAX} rules already; remove some", field="name")
        self._rules[given.name] = Rule(**msgspec.structs.asdict(given))
        await self._files.keep_rules(self.rules)

    async def remove(self, name: str) -> None:
        """Raises Problem: there is none of this name."""
        if self._rules.pop(name, None) is None:
            raise not_found("rule", name)
        await self._files.keep_rules(self.rules)

    async def silence(self, site: str, rule: str, subject: str, minutes: int) -> None:
        """Raises Problem: no such rule, or too many silences."""
        if rule not in self._rules:
            raise not_found("rule", rule)
        states, now_ms = self.states(site), self._clock.wall_ms()
        over = [key for key, until in states.silences.items() if until <= now_ms]
        for key in over:
            del states.silences[key]
        if len(states.silences) >= SILENCES_MAX:
            raise bad_request(f"there are {SILENCES_MAX} silences already; end some")
        states.silence(rule, subject, now_ms + minutes * 60_000 if minutes else 0)
        await self._keep_past()

    async def _keep_past(self) -> None:
        await self._files.keep_past({site: states.past for site, states in self._states.items()})

    def _queue(self, site: str, alert: Alert) -> None:
        body = msgspec.json.encode({"site": site, **msgspec.structs.asdict(alert)})
        while True:
            try:
                self._posts.put_nowait(body)
                return
            except asyncio.QueueFull:
                self._posts.get_nowait()
                log.warning("alert not posted, because too many wait webhook=%s", self.webhook)

    async def _post_all(self) -> None:
        while True:
            body = await self._posts.get()
            for attempt in range(POST_TRIES):
                try:
                    await asyncio.to_thread(_post, self.webhook, body)
                    break
                except (OSError, ValueError) as error:
                    log.warning("alert not posted webhook=%s reason=%s", self.webhook, error)
                    await asyncio.sleep(2**attempt)


def _post(url: str, body: bytes) -> None:
    """Raises OSError; a refusal is one, too."""
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=POST_SECONDS) as answer:
        answer.read(1024)

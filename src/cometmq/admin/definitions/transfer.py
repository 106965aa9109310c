"""Export of a cluster's definitions, and import: first the plan, broker by broker, then what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TypeVar

import msgspec

from cometmq.admin.accounts.users import Acls, Users
from cometmq.admin.calls import Calls
from cometmq.admin.definitions.document import (
    Definitions,
    DefinitionsError,
    GroupDefinition,
    TopicDefinition,
)
from cometmq.admin.errors import no_such
from cometmq.admin.fan_out import Listing
from cometmq.admin.groups.groups import Groups, define_groups, read_groups
from cometmq.admin.target import ALL_BROKERS, Place, Target
from cometmq.admin.topics.topics import Topics, define_topics, read_topics
from cometmq.base.errors import CometError
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    SYSTEM_GROUPS,
    SYSTEM_PREFIX,
    SYSTEM_TOPICS,
)
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.auth import Acl, User
from cometmq.protocol.bodies.topic import TopicList
from cometmq.protocol.codes import RequestCode

C = TypeVar("C", TopicConfig, SubscriptionGroupConfig)
D = TypeVar("D", TopicDefinition, GroupDefinition)


class Step(StrEnum):
    CREATE = "create"
    CHANGE = "change"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that an import does at one broker. ``kind`` is topic, group, user or acl; ``was`` is what changes."""

    address: str
    broker_name: str
    kind: str
    name: str
    step: Step
    was: str = ""

    def __str__(self) -> str:
        was = f" ({self.was})" if self.was else ""
        return f"{self.step} {self.kind} {self.name} at {self.broker_name} {self.address}{was}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What was done, and which brokers refused or did not answer: what is left for them is in ``left``."""

    done: list[Change]
    left: list[Change]
    failed: Mapping[str, CometError]

    @property
    def is_complete(self) -> bool:
        return not self.failed


class Transfer:
    """``admin.definitions``"""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._topics = Topics(calls)
        self._groups = Groups(calls)
        self._users = Users(calls)
        self._acls = Acls(calls)

    async def read(
        self, target: Target = ALL_BROKERS, *, with_accounts: bool = False
    ) -> Definitions:
        """The definitions of a cluster, without the system's own: an export. A broker that differs is named in it.

        Args:
            with_accounts: users and rules, too, with passwords if servers tell them.

        Raises:
            PartialFailure: a broker did not answer; half an export is worse than none.
        """
        places = await self._calls.places(target)
        addresses = [place.address for place in places]
        topics = await self._calls.fan_out.each(addresses, self._user_topics)
        topics.raise_failed("reading the topics")
        groups = await self._groups_at(addresses)
        definitions = Definitions(
            topics=_gathered(places, topics.done, TopicDefinition),
            groups=_gathered(places, groups, GroupDefinition),
        )
        if with_accounts:
            first = Target(address=addresses[0])
            users = (await self._users.all("", first)).raise_failed("reading the users")
            acls = (await self._acls.all("", "", first)).raise_failed("reading the rules")
            definitions.users = users.values()[0]
            definitions.acls = acls.values()[0]
        return definitions

    async def plan(self, definitions: Definitions, target: Target = ALL_BROKERS) -> Listing[Change]:
        """What an import would change, broker by broker; nothing is changed. What is there already is left out.

        Raises:
            DefinitionsError: a broker that is named is not there, or a new user has no password.
        """
        places = await self._calls.places(target, is_change=True)
        plans, failed = await self._plans(definitions, places)
        return Listing([change for plan in plans for change in plan.changes()], failed)

    async def write(self, definitions: Definitions, target: Target = ALL_BROKERS) -> ImportResult:
        """Import: create and change what ``plan`` tells; nothing is deleted. It may be repeated.

        Raises:
            DefinitionsError: as ``plan``; nothing was changed.
        """
        places = await self._calls.places(target, is_change=True)
        plans, failed = await self._plans(definitions, places)
        by_address = {plan.place.address: plan for plan in plans}

        async def carry_out(address: str) -> None:
            await self._carry_out(by_address[address])

        answers = await self._calls.fan_out.each(by_address, carry_out)
        return ImportResult(
            done=[change for plan in plans for change in plan.done],
            left=[change for plan in plans for change in plan.changes() if change not in plan.done],
            failed={**failed, **answers.failed},
        )

    async def _plans(
        self, definitions: Definitions, places: Sequence[Place]
    ) -> tuple[list[_Plan], dict[str, CometError]]:
        _check_brokers(definitions, places)
        by_address = {place.address: place for place in places}

        async def ask(address: str) -> _Plan:
            return await self._plan_of(definitions, by_address[address])

        answers = await self._calls.fan_out.each(by_address, ask)
        failed = dict(answers.failed)
        for error in failed.values():
            if isinstance(error, DefinitionsError):
                raise error
        return answers.values(), failed

    async def _plan_of(self, definitions: Definitions, place: Place) -> _Plan:
        plan = _Plan(place)
        target = Target(address=place.address)
        if definitions.topics:
            told = (await self._topics.definitions(target)).raise_failed("reading the topics")
            plan.add_topics(definitions.topics, told.done[place.address])
        if definitions.groups:
            tables = (await self._groups.definitions(target)).raise_failed("reading the groups")
            plan.add_groups(definitions.groups, tables.done[place.address])
        if definitions.users:
            users = (await self._users.all("", target)).raise_failed("reading the users")
            plan.add_users(definitions.users, users.done[place.address])
        if definitions.acls:
            acls = (await self._acls.all("", "", target)).raise_failed("reading the rules")
            plan.add_acls(definitions.acls, acls.done[place.address])
        return plan

    async def _carry_out(self, plan: _Plan) -> None:
        """Users come before their rules. What a request did is noted at once, so that a failure tells what was done."""
        address, target = plan.place.address, Target(address=plan.place.address)
        if plan.topics:
            await define_topics(self._calls, address, plan.topics)
            plan.note("topic")
        if plan.groups:
            await define_groups(self._calls, address, plan.groups)
            plan.note("group")
        for user in plan.users:
            if plan.step("user", user.username) is Step.CREATE:
                done = await self._users.create(
                    user.username,
                    user.password or "",
                    user_type=user.user_type or "Normal",
                    target=target,
                )
            else:
                done = await self._users.update(
                    user.username,
                    password=user.password,
                    user_type=user.user_type,
                    user_status=user.user_status,
                    target=target,
                )
            for error in done.failed.values():
                raise error
            plan.note("user", user.username)
        for acl in plan.acls:
            written = await self._acls.put(acl, target)
            for error in written.failed.values():
                raise error
            plan.note("acl", acl.subject or "")

    async def _groups_at(
        self, addresses: Sequence[str]
    ) -> dict[str, dict[str, SubscriptionGroupConfig]]:
        found: dict[str, dict[str, SubscriptionGroupConfig]] = {}
        tables = await self._calls.fan_out.each(addresses, partial(read_groups, self._calls))
        tables.raise_failed("reading the groups")
        for address, table in tables.done.items():
            found[address] = {
                name: config for name, config in table.items() if name not in SYSTEM_GROUPS
            }
        return found

    async def _user_topics(self, address: str) -> dict[str, TopicConfig]:
        """Without those that the broker makes for itself and for groups."""
        code = RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER
        system = set((await self._calls.table(address, code, TopicList)).topic_list)
        table = await read_topics(self._calls, address)
        return {
            name: config
            for name, config in table.items()
            if name not in system
            and name not in SYSTEM_TOPICS
            and not name.startswith((RETRY_PREFIX, DLQ_PREFIX, SYSTEM_PREFIX))
        }


class _Plan:
    """What is to be done at one broker."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.topics: list[TopicConfig] = []
        self.groups: list[SubscriptionGroupConfig] = []
        self.users: list[User] = []
        self.acls: list[Acl] = []
        self.done: list[Change] = []
        self._changes: dict[tuple[str, str], Change] = {}

    def changes(self) -> list[Change]:
        return list(self._changes.values())

    def step(self, kind: str, name: str) -> Step:
        return self._changes[kind, name].step

    def note(self, kind: str, name: str | None = None) -> None:
        """Done: all of a kind, or one."""
        self.done += [
            change
            for change in self._changes.values()
            if change.kind == kind and name in (None, change.name)
        ]

    def add_topics(
        self, wanted: Iterable[TopicDefinition], there: Mapping[str, TopicConfig]
    ) -> None:
        for one in _meant(wanted, self.place):
            config = _plain(one, TopicConfig)
            known = there.get(config.topic_name)
            old = (known.attributes or {}) if known else {}
            new = config.attributes or {}
            # Some attributes cannot change, so only those that differ are sent.
            config.attributes = {key: new[key] for key in new if old.get(key) != new[key]} or None
            was = _difference(config, known, ("attributes",))
            if known is not None and config.attributes:
                was = "; ".join(part for part in (was, f"attributes: {old}") if part)
            if known is None or was:
                self._add("topic", config.topic_name, known is None, was)
                self.topics.append(config)

    def add_groups(
        self, wanted: Iterable[GroupDefinition], there: Mapping[str, SubscriptionGroupConfig]
    ) -> None:
        for one in _meant(wanted, self.place):
            config = _plain(one, SubscriptionGroupConfig)
            known = there.get(config.group_name)
            was = _difference(config, known, ())
            if known is None or was:
                self._add("group", config.group_name, known is None, was)
                self.groups.append(config)

    def add_users(self, wanted: Iterable[User], there: Iterable[User]) -> None:
        known = {user.username: user for user in there}
        for user in wanted:
            before = known.get(user.username)
            if before is None and not user.password:
                raise DefinitionsError(
                    [
                        f"user {user.username!r}: is new at {self.place.address} and has no password; "
                        "put one in, or leave the user out"
                    ]
                )
            if before is None:
                self._add("user", user.username, True, "")
                self.users.append(user)
            elif _user_differs(user, before):
                was = f"userType: {before.user_type}, userStatus: {before.user_status}"
                self._add("user", user.username, False, was)
                self.users.append(user)

    def add_acls(self, wanted: Iterable[Acl], there: Iterable[Acl]) -> None:
        known = {acl.subject: acl for acl in there}
        for acl in wanted:
            before = known.get(acl.subject)
            if before is None or not _has_rules(before, acl):
                self._add("acl", acl.subject or "", before is None, "")
                self.acls.append(acl)

    def _add(self, kind: str, name: str, is_new: bool, was: str) -> None:
        self._changes[kind, name] = Change(
            address=self.place.address,
            broker_name=self.place.broker_name,
            kind=kind,
            name=name,
            step=Step.CREATE if is_new else Step.CHANGE,
            was=was,
        )


def _check_brokers(definitions: Definitions, places: Sequence[Place]) -> None:
    """Raises DefinitionsError if a definition is for a broker that is not there."""
    known = {place.broker_name for place in places}
    mistakes = [
        f"{kind} {name!r}: {no_such('broker', broker, sorted(known))}"
        for kind, name, brokers in [
            *(("topic", one.topic_name, one.brokers) for one in definitions.topics),
            *(("group", one.group_name, one.brokers) for one in definitions.groups),
        ]
        for broker in brokers or ()
        if broker not in known
    ]
    if mistakes:
        raise DefinitionsError(mistakes)


def _meant(wanted: Iterable[D], place: Place) -> list[D]:
    return [one for one in wanted if one.brokers is None or place.broker_name in one.brokers]


def _plain(definition: msgspec.Struct, kind: type[C]) -> C:
    """Without the list of brokers."""
    return kind(**{name: getattr(definition, name) for name in kind.__struct_fields__})


def _difference(wanted: C, known: C | None, ignored: Sequence[str]) -> str:
    """The fields that change, with the values that they have now. What the document leaves out stays."""
    if known is None:
        return ""
    names = zip(wanted.__struct_fields__, wanted.__struct_encode_fields__, strict=True)
    return ", ".join(
        f"{key}: {getattr(known, name)}"
        for name, key in names
        if name not in ignored
        and getattr(wanted, name) is not None
        and getattr(wanted, name) != getattr(known, name)
    )


def _user_differs(wanted: User, known: User) -> bool:
    if wanted.password and known.password is not None and wanted.password != known.password:
        return True
    return (wanted.user_type or known.user_type, wanted.user_status or known.user_status) != (
        known.user_type,
        known.user_status,
    )


def _has_rules(known: Acl, wanted: Acl) -> bool:
    there = [
        _rule(policy.policy_type, entry) for policy in known.policies for entry in policy.entries
    ]
    return all(
        _rule(policy.policy_type, entry) in there
        for policy in wanted.policies
        for entry in policy.entries
    )


def _rule(policy_type: str | None, entry: object) -> tuple[str, object]:
    return policy_type or "Custom", entry


def _gathered(
    places: Sequence[Place], tables: Mapping[str, Mapping[str, C]], kind: type[D]
) -> list[D]:
    """One definition for all brokers where they agree, else one for each way that some have it."""
    found: dict[str, list[tuple[C, list[str]]]] = {}
    for place in places:
        for name, config in tables[place.address].items():
            ways = found.setdefault(name, [])
            for known, brokers in ways:
                if known == config:
                    brokers.append(place.broker_name)
                    break
            else:
                ways.append((config, [place.broker_name]))
    return [
        kind(
            **{field: getattr(config, field) for field in config.__struct_fields__},
            brokers=None if len(brokers) == len(places) else brokers,
        )
        for name in sorted(found)
        for config, brokers in found[name]
    ]

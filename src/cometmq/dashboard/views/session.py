"""Login, search, and what the dashboard says about itself."""

from __future__ import annotations

from typing import Final

from cometmq import __version__
from cometmq.admin.admin import Admin
from cometmq.base.errors import CometError
from cometmq.dashboard.bodies.common import SiteQuery
from cometmq.dashboard.bodies.session import Health, Hit, Hits, Login, Me, SearchQuery
from cometmq.dashboard.bodies.session import Site as SiteBody
from cometmq.dashboard.call import Call, WithCookie
from cometmq.dashboard.contract.route import Role
from cometmq.dashboard.contract.table import ROUTES
from cometmq.dashboard.door.caller import Caller
from cometmq.dashboard.door.login import Roles, check_password, is_super, with_account
from cometmq.dashboard.door.sessions import Session
from cometmq.dashboard.problems import Problem, problem_of
from cometmq.dashboard.watch.site import CALL_SECONDS, Site

HITS_MAX: Final = 20
_FEATURES: Final = tuple(sorted({route.name for route in ROUTES}))


async def me(call: Call[SiteQuery, None]) -> Me:
    return _me(call, call.caller)


async def log_in(call: Call[SiteQuery, Login]) -> WithCookie:
    desk, given = call.desk, call.body
    desk.guard.limit_login(call.caller.peer, given.name)
    site = desk.site(given.site) if given.site else call.site
    try:
        places = await site.admin.brokers.places()
        await check_password(site.client, places, given.name, given.password)
    except CometError as error:
        raise problem_of(error) from None
    role = await _role(desk.guard.roles, site, given.name)
    if role is Role.ANYBODY:
        raise Problem(
            403,
            "no_role",
            f"account {given.name!r} has no role in this dashboard",
            hint="name it in viewers, operators or admins of the dashboard's settings",
        )
    own = Admin(
        config=with_account(site.client, given.name, given.password),
        controllers=site.controllers,
        timeout=CALL_SECONDS,
    )
    await own.start()
    session = Session(user=given.name, role=role, site=site.name, admins={site.name: own})
    key = desk.guard.sessions.begin(session, desk.clock.monotonic())
    caller = Caller(user=given.name, role=role, peer=call.caller.peer, session=session)
    return WithCookie(answer=_me(call, caller), key=key)


async def log_out(call: Call[SiteQuery, None]) -> WithCookie:
    if call.caller.session is not None:
        call.desk.guard.sessions.end_session(call.caller.session)
    nobody = Caller(user="", role=Role.ANYBODY, peer=call.caller.peer)
    return WithCookie(answer=_me(call, nobody), key="")


async def search(call: Call[SearchQuery, None]) -> Hits:
    """What begins with the text first, then what has it inside."""
    snapshot = await call.site.seen()
    text = call.query.q.lower()
    brokers = sorted({one.place.broker_name for one in snapshot.brokers})
    named = [("broker", name, "") for name in brokers]
    named += [("group", name, "") for name in sorted(snapshot.groups)]
    named += [("topic", name, "") for name in sorted(snapshot.topics)]
    named += [
        ("client", client, group)
        for group in snapshot.groups
        if (found := call.site.members.get(group)) is not None
        for client in found.value.clients
    ]
    hits = [hit for hit in named if text in hit[1].lower()]
    hits.sort(key=lambda hit: (not hit[1].lower().startswith(text), len(hit[1])))
    return Hits(
        rows=[Hit(type=kind, name=name, group=group) for kind, name, group in hits[:HITS_MAX]]
    )


async def health(call: Call[SiteQuery, None]) -> Health:
    return Health(ok=True, version=__version__)


async def _role(roles: Roles, site: Site, name: str) -> Role:
    role = roles.role(name, is_super=False)
    if role is Role.ADMIN:
        return role
    return roles.role(name, is_super=await is_super(site.admin, name))


def _me(call: Call[SiteQuery, object], caller: Caller) -> Me:
    desk = call.desk
    shows_sites = bool(caller.user) or not desk.guard.is_login_required
    return Me(
        user=caller.user or None,
        role=caller.role.word,
        login_required=desk.guard.is_login_required,
        read_only=desk.config.is_read_only,
        csrf_token=desk.guard.csrf_token(caller),
        sites=[
            SiteBody(name=one.name, name_servers=list(one.name_servers) if shows_sites else [])
            for one in desk.sites.values()
        ],
        site=caller.session.site if caller.session else call.site.name,
        version=__version__ if shows_sites else "",
        features=list(_FEATURES),
    )


HANDLERS: Final = {
    "me": me,
    "log_in": log_in,
    "log_out": log_out,
    "search": search,
    "health": health,
}

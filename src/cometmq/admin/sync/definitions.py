"""The blocking face of ``cometmq.admin.definitions``. Written by tools/admin_sync.py; do not edit."""

from __future__ import annotations

from cometmq.admin.definitions.document import Definitions
from cometmq.admin.definitions.transfer import Change, ImportResult
from cometmq.admin.definitions.transfer import Transfer as AsyncTransfer
from cometmq.admin.fan_out import Listing
from cometmq.admin.sync.room import Room
from cometmq.admin.target import ALL_BROKERS, Target


class Transfer(Room[AsyncTransfer]):
    """``admin.definitions``"""

    def read(self, target: Target = ALL_BROKERS, *, with_accounts: bool = False) -> Definitions:
        """The definitions of a cluster, without the system's own: an export. A broker that differs is named in it.

        Args:
            with_accounts: users and rules, too, with passwords if servers tell them.

        Raises:
            PartialFailure: a broker did not answer; half an export is worse than none.
        """
        return self._run(self._aio.read, target, with_accounts=with_accounts)

    def plan(self, definitions: Definitions, target: Target = ALL_BROKERS) -> Listing[Change]:
        """What an import would change, broker by broker; nothing is changed. What is there already is left out.

        Raises:
            DefinitionsError: a broker that is named is not there, or a new user has no password.
        """
        return self._run(self._aio.plan, definitions, target)

    def write(self, definitions: Definitions, target: Target = ALL_BROKERS) -> ImportResult:
        """Import: create and change what ``plan`` tells; nothing is deleted. It may be repeated.

        Raises:
            DefinitionsError: as ``plan``; nothing was changed.
        """
        return self._run(self._aio.write, definitions, target)

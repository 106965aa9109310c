"""One call of a subcommand: what was asked, the library to ask, and where the answer goes."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cometmq.base.errors import ConfigError, UsageError
from cometmq.cli.client_command import client_config
from cometmq.cli.mqadmin.arguments import Arguments
from cometmq.cli.mqadmin.output import Output

if TYPE_CHECKING:
    from cometmq.admin import Admin, Target
    from cometmq.client.client_config import ClientConfig, Credentials

NO_TARGET: Final = "expected a broker (-b ADDRESS) or a cluster (-c NAME)"
HOME_VARIABLE: Final = "ROCKETMQ_HOME"
FILE_VARIABLE: Final = "COMETMQ_CLIENT_CONFIG"


@dataclass(frozen=True, slots=True)
class Call:
    args: Arguments
    admin: Admin
    out: Output

    def target(self, *, with_slaves: bool = False, is_needed: bool = True) -> Target:
        """What ``-b ADDRESS`` or ``-c CLUSTER`` means; as in RocketMQ's tool, an address wins over a cluster.

        Raises:
            UsageError: neither is given, and the subcommand needs one.
        """
        from cometmq.admin import Target

        address, cluster = self.args.text("b"), self.args.text("c")
        if address:
            return Target(address=address)
        if cluster:
            return Target(cluster=cluster, with_slaves=with_slaves)
        if is_needed:
            raise UsageError(NO_TARGET)
        return Target(with_slaves=with_slaves)


def config_of(args: Arguments) -> ClientConfig:
    """Name servers, account and TLS: from options, the file of ``cometmq init``, the environment, or ``tools.yml``.

    Raises:
        ConfigError: a file that cannot be used.
    """
    file = args.text("config") or os.environ.get(FILE_VARIABLE)
    config = client_config(args.text("n"), file)
    home = os.environ.get(HOME_VARIABLE)
    if file or not home or config.credentials.is_set:
        return config
    tools = Path(home) / "conf" / "tools.yml"
    if not tools.is_file():
        return config
    return dataclasses.replace(config, credentials=_account_of(tools))


def _account_of(tools: Path) -> Credentials:
    """The account in RocketMQ's ``tools.yml``."""
    from cometmq.access.plain.plain_files import read_content
    from cometmq.client.client_config import Credentials

    content = read_content(tools)
    known = ("accessKey", "secretKey", "securityToken")
    values = [str(content.get(key) or "") for key in known]
    if bool(values[0]) != bool(values[1]):
        raise ConfigError(f"{tools}: expected both accessKey and secretKey")
    return Credentials(access_key=values[0], secret_key=values[1], security_token=values[2])

"""Settings of a broker under a controller, with RocketMQ's keys."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.model.address import split_address, split_addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Who decides which broker of a name is its master. Then brokerRole and brokerId mean nothing."""

    is_enabled: bool = setting(
        "enableControllerMode",
        "Let the controllers of controllerAddr decide which broker of a name is the master, and elect another when it "
        "is lost. brokerRole and brokerId are not looked at then.",
        default=False,
    )
    addresses: str = setting("controllerAddr", "Controllers, separated by semicolons.", default="")
    heartbeat_timeout_ms: int = setting(
        "controllerHeartBeatTimeoutMills",
        "Milliseconds without a heartbeat after which the controller takes the broker for lost. A master that has not "
        "reached its controller for so long steps down.",
        default=10_000,
        low=1000,
    )
    poll_ms: int = setting(
        "syncBrokerMetadataPeriod",
        "Most milliseconds between two questions to the controller who the master is. They are asked three times "
        "within controllerHeartBeatTimeoutMills in any case.",
        default=5000,
        low=100,
    )
    behind_ms_max: int = setting(
        "haMaxTimeSlaveNotCatchup",
        "A slave that did not catch up for so many milliseconds leaves the SyncStateSet: sends do not wait for it, and "
        "it cannot be elected.",
        default=15_000,
        low=1000,
        live=True,
    )
    election_priority: int = setting(
        "brokerElectionPriority",
        "Of several brokers with the same log, the one with the lowest number is elected.",
        default=2_147_483_647,
        low=0,
        high=2_147_483_647,
    )
    is_learner: bool = setting(
        "asyncLearner",
        "Copy the log, but never be waited for or elected.",
        default=False,
    )
    epoch_path: str = setting(
        "storePathEpochFile",
        "File with the epochs of the log; empty: epochFileCheckpoint in storePathRootDir.",
        default="",
    )
    identity_path: str = setting(
        "storePathBrokerIdentity",
        "File with the id that the controller gave; empty: brokerIdentity in storePathRootDir.",
        default="",
    )

    def __post_init__(self) -> None:
        if self.is_enabled and not self.addresses:
            raise ConfigError("enableControllerMode=true needs controllerAddr")
        for address in split_addresses(self.addresses):
            split_address(address)

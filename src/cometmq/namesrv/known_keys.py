"""RocketMQ's name-server keys that mean nothing here: accepted in a file, and logged once as having no effect.

They are the fields of its NamesrvConfig, NettyServerConfig, NettyClientConfig, ControllerConfig and JraftConfig, 4.9
and 5.x, that are not rows of ``namesrv_config.NamesrvConfig``. Keys that ask for something that does not exist here
are refused.
"""

from __future__ import annotations

from typing import Final

from cometmq.base.setting_keys import OtherKeys
from cometmq.base.settings import rows
from cometmq.controller.etcd.etcd_config import EtcdConfig
from cometmq.controller.known_keys import OTHER_KEYS as CONTROLLER_KEYS
from cometmq.remoting.tls import unmet_outside_tls_file

# The second part means something to a controller in the same process. What means nothing there either is in its list.
_NAMES: Final = """
    productEnvName clusterTest
    clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity
    defaultThreadPoolNums defaultThreadPoolQueueCapacity unRegisterBrokerQueueCapacity
    notifyMinBrokerIdChangeTimeoutMillis

    controllerType controllerDLegerGroup controllerDLegerPeers controllerDLegerSelfId controllerStorePath
    enableElectUncleanMaster notifyBrokerRoleChanged scanInactiveMasterInterval
"""

OTHER_KEYS: Final = OtherKeys(
    without_effect=frozenset(_NAMES.split())
    | {row.key for row in rows(EtcdConfig)}
    | CONTROLLER_KEYS.without_effect,
    unmet=unmet_outside_tls_file("name server"),
)

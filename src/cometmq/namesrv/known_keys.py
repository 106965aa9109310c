"""RocketMQ's name-server keys that mean nothing here: accepted in a file, and logged once as having no effect.

They are the fields of its NamesrvConfig, NettyServerConfig, NettyClientConfig, ControllerConfig and JraftConfig, 4.9
and 5.x, that are not rows of ``namesrv_config.NamesrvConfig``. Keys that ask for something that does not exist here
are refused.
"""

from __future__ import annotations

from typing import Final

from cometmq.base.setting_keys import OtherKeys
from cometmq.base.settings import rows
from cometmq.remoting.tls import TlsConfig

_NAMES: Final = """
    rocketmqHome productEnvName clusterTest configBlackList
    clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity
    defaultThreadPoolNums defaultThreadPoolQueueCapacity unRegisterBrokerQueueCapacity
    notifyMinBrokerIdChangeTimeoutMillis

    serverWorkerThreads serverCallbackExecutorThreads serverSelectorThreads serverOnewaySemaphoreValue
    serverPooledByteBufAllocatorEnable serverNettyWorkerGroupEnable useEpollNativeSelector
    enableShutdownGracefully shutdownWaitTimeSeconds

    clientWorkerThreads clientCallbackExecutorThreads clientOnewaySemaphoreValue clientAsyncSemaphoreValue
    connectTimeoutMillis channelNotActiveInterval scanAvailableNameSrv circuitBreakerEnable
    circuitBreakerRecoverSecond circuitBreakerDegradeRuleCount circuitBreakerDegradeRuleSecond
    clientChannelMaxIdleTimeSeconds clientSocketSndBufSize clientSocketRcvBufSize
    clientPooledByteBufAllocatorEnable clientCloseSocketIfTimeout socksProxyConfig
    disableCallbackExecutor disableNettyWorkerGroup maxReconnectIntervalTimeSeconds
    enableReconnectForGoAway enableTransparentRetry

    controllerType controllerThreadPoolNums controllerRequestThreadPoolQueueCapacity
    controllerDLegerGroup controllerDLegerPeers controllerDLegerSelfId controllerStorePath mappedFileSize
    electMasterMaxRetryCount enableElectUncleanMaster processReadEvent isProcessReadEvent
    notifyBrokerRoleChanged scanInactiveMasterInterval jraftConfig
    jRaftControllerRPCAddr jRaftElectionTimeoutMs jRaftGroupId jRaftInitConf jRaftScanWaitTimeoutMs jRaftServerId
    jRaftSnapshotIntervalSecs
    metricsExporterType metricsGrpcExporterTarget metricsGrpcExporterHeader
    metricGrpcExporterTimeOutInMills metricGrpcExporterIntervalInMills
    metricLoggingExporterIntervalInMills metricsPromExporterPort metricsPromExporterHost
    metricsLabel metricsInDelta
"""

_IN_TLS_FILE = "a name server takes its TLS settings from the file that tls.config.file names"

_UNMET: Final = {
    "useTLS": _IN_TLS_FILE,
    "tls.ciphers": "ciphers cannot be chosen; OpenSSL's defaults are used",
    "tls.protocols": "protocols cannot be chosen; TLS 1.2 and newer are spoken",
    **{row.key: _IN_TLS_FILE for row in rows(TlsConfig)},
}

OTHER_KEYS: Final = OtherKeys(without_effect=frozenset(_NAMES.split()), unmet=_UNMET)

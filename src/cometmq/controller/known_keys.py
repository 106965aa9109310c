"""RocketMQ's controller keys that mean nothing here: accepted in a file, and logged once as having no effect.

They are the fields of its ControllerConfig, JraftConfig, NettyServerConfig and NettyClientConfig that are not rows of
``controller_config.ControllerConfig``. Keys that ask for something that does not exist here are refused.
"""

from __future__ import annotations

from typing import Final

from cometmq.base.setting_keys import OtherKeys
from cometmq.remoting.tls import unmet_outside_tls_file

_NAMES: Final = """
    rocketmqHome configBlackList
    controllerThreadPoolNums controllerRequestThreadPoolQueueCapacity mappedFileSize electMasterMaxRetryCount
    processReadEvent isProcessReadEvent jraftConfig
    jRaftControllerRPCAddr jRaftElectionTimeoutMs jRaftGroupId jRaftInitConf jRaftScanWaitTimeoutMs jRaftServerId
    jRaftSnapshotIntervalSecs
    metricsExporterType metricsGrpcExporterTarget metricsGrpcExporterHeader
    metricGrpcExporterTimeOutInMills metricGrpcExporterIntervalInMills
    metricLoggingExporterIntervalInMills metricsPromExporterPort metricsPromExporterHost
    metricsLabel metricsInDelta

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
"""

OTHER_KEYS: Final = OtherKeys(
    without_effect=frozenset(_NAMES.split()), unmet=unmet_outside_tls_file("controller")
)

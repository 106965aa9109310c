"""RocketMQ's name-server keys that mean nothing here: accepted in a file, named once in the log as without effect.

They are the fields of its NamesrvConfig, NettyServerConfig, NettyClientConfig and ControllerConfig, 4.9 and 5.x,
which are not rows of ``config.NamesrvConfig``.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
    rocketmqHome productEnvName clusterTest configBlackList
    clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity
    defaultThreadPoolNums defaultThreadPoolQueueCapacity unRegisterBrokerQueueCapacity
    notifyMinBrokerIdChangeTimeoutMillis enableControllerInNamesrv

    serverWorkerThreads serverCallbackExecutorThreads serverSelectorThreads serverOnewaySemaphoreValue
    serverPooledByteBufAllocatorEnable serverNettyWorkerGroupEnable useEpollNativeSelector
    enableShutdownGracefully shutdownWaitTimeSeconds

    clientWorkerThreads clientCallbackExecutorThreads clientOnewaySemaphoreValue clientAsyncSemaphoreValue
    connectTimeoutMillis channelNotActiveInterval scanAvailableNameSrv circuitBreakerEnable
    circuitBreakerRecoverSecond circuitBreakerDegradeRuleCount circuitBreakerDegradeRuleSecond
    clientChannelMaxIdleTimeSeconds clientSocketSndBufSize clientSocketRcvBufSize
    clientPooledByteBufAllocatorEnable clientCloseSocketIfTimeout useTLS socksProxyConfig
    disableCallbackExecutor disableNettyWorkerGroup maxReconnectIntervalTimeSeconds
    enableReconnectForGoAway enableTransparentRetry

    controllerType controllerThreadPoolNums controllerRequestThreadPoolQueueCapacity
    controllerDLegerGroup controllerDLegerPeers controllerDLegerSelfId controllerStorePath mappedFileSize
    electMasterMaxRetryCount enableElectUncleanMaster processReadEvent isProcessReadEvent
    notifyBrokerRoleChanged scanInactiveMasterInterval jraftConfig
    metricsExporterType metricsGrpcExporterTarget metricsGrpcExporterHeader
    metricGrpcExporterTimeOutInMills metricGrpcExporterIntervalInMills
    metricLoggingExporterIntervalInMills metricsPromExporterPort metricsPromExporterHost
    metricsLabel metricsInDelta
"""

WITHOUT_EFFECT: Final = frozenset(_NAMES.split())

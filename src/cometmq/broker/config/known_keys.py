"""Every key that a RocketMQ broker takes in ``broker.conf``: the bean settings of its config objects, 3.2 to 5.5.

The list answers one question: is a key that means nothing here a setting of RocketMQ (accepted, named once as without
effect) or a mistake (refused with the nearest real key)? A key that gains a meaning gets a row in a config slice and
may stay here; rows win. Keys that ask for protection stand in a list of their own, with the reason of their refusal.
"""

from __future__ import annotations

from typing import Final

from cometmq.base.setting_keys import OtherKeys

_ALIASES: Final = {
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
    "mapedFileSizeConsumeQueueExt": "mappedFileSizeConsumeQueueExt",
    "isEnableBatchPush": "enableBatchPush",
}
"""Older spellings, read as the newer ones."""

_KEYS = """
    accessMessageInMemoryHotRatio accessMessageInMemoryMaxRatio accountStatsEnable
    accountStatsPrintZeroValues ackMessageThreadPoolNums ackThreadPoolQueueCapacity
    aclCacheExpiredSecond aclCacheMaxNum aclCacheRefreshSecond adminBrokerThreadPoolNums
    adminBrokerThreadPoolQueueCapacity allAckInSyncStateSet allowRecallWhenBrokerNotWriteable
    appendAckAsync appendCkAsync appendTopicForTimerDeleteKey asyncLearner asyncSendEnable
    authConfigPath authenticationMetadataProvider authenticationProvider authenticationStrategy
    authenticationWhitelist authorizationMetadataProvider authorizationProvider
    authorizationStrategy authorizationWhitelist autoCreateSubscriptionGroup
    autoCreateTopicEnable autoDeleteUnusedStats autoMessageVersionOnTopicLen
    batchDispatchRequestThreadPoolNums batchWriteKvCqSize bindAddress
    bitMapLengthConsumeQueueExt bottomMostCompressionTypeForConsumeQueueStore
    broadcastOffsetExpireMaxSecond broadcastOffsetExpireSecond brokerClusterName
    brokerConfigPath brokerElectionPriority brokerFastFailureEnable brokerHeartbeatInterval
    brokerIP1 brokerIP2 brokerId brokerName brokerNotActiveTimeoutMillis brokerPermission
    brokerRole brokerTopicEnable cgColdReadThreshold channelExpiredTimeout
    channelNotActiveInterval checkCRCOnRecover checkCommitLogOffsetOnRecover
    checkSyncStateSetPeriod cleanFileForciblyEnable cleanOfflineBrokerInterval
    cleanResourceInterval cleanRocksDBDirtyCQIntervalMin cleanSwapedMapInterval
    clearRetryTopicWhenDeleteTopic clientAsyncSemaphoreValue clientCallbackExecutorThreads
    clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout clientManageThreadPoolNums
    clientManagerThreadPoolQueueCapacity clientOnewaySemaphoreValue
    clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
    clientWorkerThreads clusterName clusterTopicEnable coldCtrStrategyEnable
    coldDataFlowControlEnable coldDataScanEnable combineAssignOffsetCQType
    combineCQEnableCheckSelf combineCQLoadingCQTypes combineCQMaxExtraSearchCommitLogFiles
    combineCQPreferCQType combineCQUseRocksdbForLmq commercialBaseCount commercialBigCount
    commercialEnable commercialSizePerMsg commercialTimerCount commercialTransCount
    commitCommitLogLeastPages commitCommitLogThoroughInterval commitIntervalCommitLog
    commitLogForceSwapMapInterval commitLogRecoverMaxNum commitLogRollingInterval
    commitLogRollingMinimumSize commitLogSwapMapInterval commitLogSwapMapReserveFileNum
    compactionCqMappedFileSize compactionMappedFileSize compactionScheduleInternal
    compactionThreadNum compatibleWithOldNameSrv compressedRegister configBlackList
    configManagerVersion configName connectTimeoutMillis consumerFallbehindThreshold
    consumerManageThreadPoolNums consumerManagerThreadPoolQueueCapacity
    consumerOffsetUpdateVersionStep controllerAddr controllerHeartBeatTimeoutMills
    correctLogicMinOffsetForceInterval correctLogicMinOffsetSleepInterval dLegerGroup
    dLegerPeers dLegerSelfId dataReadAheadEnable debugLockEnable defaultMessageRequestMode
    defaultPopShareQueueNum defaultQueryMaxNum defaultTopicQueueNums
    delayOffsetUpdateVersionStep deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval
    deleteFileBatchMax deleteWhen destroyMapedFileIntervalForcibly disableCallbackExecutor
    disableConsumeIfConsumerReadSlowly disableNettyWorkerGroup disappearTimeAfterStart
    diskFallRecorded diskMaxUsedSpaceRatio diskSpaceCleanForciblyRatio
    diskSpaceWarningLevelRatio dispatchCqCacheNum dispatchCqThreads dispatchFromSenderThread
    duplicationEnable enableAcceleratedRecovery enableAsyncReput enableAutoInSyncReplicas
    enableBatchPush enableBroadcastOffsetStore enableBuildConsumeQueueConcurrently
    enableCalcFilterBitMap enableCleanExpiredOffset enableCompaction enableConnectionMetrics
    enableConsumeQueueExt enableCreateSysGroup enableDetailStat enableFastChannelEventProcess
    enableLagAndDlqMetrics enableLiteEventMode enableLitePopLog enableLmq enableLmqQuota
    enableLmqStats enableLogConsumeQueueRepeatedlyBuildWhenRecover enableMessageStoreMetrics
    enableMixedMessageType enableMultiDispatch enableNetWorkFlowControl
    enableNotifyAfterPopOrderLockRelease enableNotifyBeforePopCalculateLag enablePopBatchAck
    enablePopBufferMerge enablePopLog enablePopMessageThreshold enablePopMetrics
    enablePropertyFilter enableReconnectForGoAway enableRegisterProducer enableRemoteEscape
    enableRemotingMetrics enableRequestMetrics enableRetryTopicV2 enableRocksDBLog
    enableRunningFlagsInFlush enableScheduleAsyncDeliver enableScheduleMessageStats
    enableShutdownGracefully enableSingleTopicRegister enableSkipLongAwaitingAck
    enableSlaveActingMaster enableSplitMetadata enableSplitRegistration enableStatsMetrics
    enableTransactionMetrics enableTransparentRetry endTransactionPoolQueueCapacity
    endTransactionThreadPoolNums estimateAccumulation expectConsumerNumUseFilter
    fastFailIfNoBufferInStorePool fetchControllerAddrByDnsLookup fetchNameSrvAddrByDnsLookup
    fetchNamesrvAddrByAddressServer fetchNamesrvAddrInterval fileReservedTime
    filterDataCleanTimeSpan filterServerNums filterSupportRetry flushCommitLogLeastPages
    flushCommitLogThoroughInterval flushCommitLogTimed flushConsumeQueueLeastPages
    flushConsumeQueueThoroughInterval flushConsumerOffsetHistoryInterval
    flushConsumerOffsetInterval flushDelayOffsetInterval flushDiskType flushIntervalCommitLog
    flushIntervalConsumeQueue flushLeastPagesWhenWarmMapedFile forceRegister forwardTimeout
    globalColdReadThreshold haFlowControlEnable haHousekeepingInterval haListenPort
    haMasterAddress haMaxGapNotInSync haMaxTimeSlaveNotCatchup haSendHeartbeatInterval
    haSlaveFallbehindMax haTransferBatchSize heartbeatThreadPoolNums
    heartbeatThreadPoolQueueCapacity highSpeedMode inBrokerContainer inSyncReplicas
    indexFileReadEnable indexFileWriteEnable indexRocksDBEnable initAuthenticationUser
    initPopOffsetByCheckMsgInMem innerClientAuthenticationCredentials isBrokerContainer
    isEnableBatchPush isInBrokerContainer isScanAvailableNameSrv isolateLogEnable
    iteratorWhenUseRocksdbConsumeQueue listenPort liteEventCheckInterval
    liteEventFullDispatchDelayTime liteEventFullDispatchDelayTimeForWildcardGroup
    liteLagCountMetricsEnable liteLagLatencyCollectEnable liteLagLatencyMetricsEnable
    liteLagLatencyTopK litePullMessageEnable litePullMessageThreadPoolNums
    litePullThreadPoolQueueCapacity liteSubscriptionCheckInterval
    liteSubscriptionCheckTimeoutMills liteTtlCheckInterval loadBalancePollNameServerInterval
    loadBalanceProcessorThreadPoolNums loadBalanceThreadPoolQueueCapacity lockInStrictMode
    logicQueueForceSwapMapInterval logicQueueSwapMapInterval logicQueueSwapMapReserveFileNum
    logicalDiskSpaceCleanForciblyThreshold longPollingEnable mapedFileSizeCommitLog
    mapedFileSizeConsumeQueue mapedFileSizeConsumeQueueExt mappedFileSizeCommitLog
    mappedFileSizeConsumeQueue mappedFileSizeConsumeQueueExt mappedFileSizeTimerLog
    mappedFileSwapEnable mapperFileSizeBatchConsumeQueue maxAsyncPutMessageRequests
    maxBatchDeleteFilesNum maxChecksumRange maxClientEventCount maxCommitJitter
    maxConsumeQueueScan maxDelayTime maxErrorRateOfBloomFilter maxFilterMessageSize
    maxHaTransferByteInSecond maxHashSlotNum maxIndexNum maxLiteSubscriptionCount
    maxLmqConsumeQueueNum maxMessageFilterNumForNotification maxMessageSize maxMsgsNumBatch
    maxOffsetMapSize maxPopPollingSize maxReconnectIntervalTimeSeconds maxRecoveryCommitlogFiles
    maxRocksDBIndexQueryDays maxSlaveResendLength maxStatsIdleTimeInMinutes maxTopicLength
    maxTransferBytesOnMessageInDisk maxTransferBytesOnMessageInMemory
    maxTransferCountOnMessageInDisk maxTransferCountOnMessageInMemory memTableFlushInterval
    memTableFlushIntervalMs messageDelayLevel messageIndexEnable messageIndexSafe
    messageStorePlugIn metricGrpcExporterIntervalInMills metricGrpcExporterTimeOutInMills
    metricLoggingExporterIntervalInMills metricsExportBatchMaxDataPoints metricsExporterType
    metricsGrpcExporterHeader metricsGrpcExporterTarget metricsInDelta metricsLabel
    metricsOtelCardinalityLimit metricsPromExporterHost metricsPromExporterPort
    migrateAuthFromV1Enabled minInSyncReplicas minLiteTTl msgTraceTopicName namesrvAddr
    notifyConsumerIdsChangedEnable objectStoreAccessKey objectStoreBucket objectStoreEndpoint
    objectStoreSecretKey offsetCheckInSlave osPageCacheBusyTimeOutMills
    persistConsumerOffsetIncrementally popCkMaxBufferSize popCkOffsetMaxQueueSize
    popCkStayBufferTime popCkStayBufferTimeOut popConsumerFSServiceInit
    popConsumerKVServiceEnable popConsumerKVServiceInit popConsumerKVServiceLog
    popFromRetryProbability popFromRetryProbabilityForPriority popInflightMessageThreshold
    popLongPollingForceNotifyInterval popPollingMapExpireTimeSeconds popPollingMapSize
    popPollingSize popResponseReturnActualRetryTopic popReviveConcurrency
    popReviveMaxAttemptTimes popReviveMaxReturnSizePerRead popReviveSkipIfGroupAbsent
    preferredLeaderId printChannelGroups printChannelGroupsMinNum priorityOrderAsc
    processReplyMessageThreadPoolNums pullBatchMaxMessageCount pullMessageThreadPoolNums
    pullThreadPoolQueueCapacity putConsumeQueueDataByFileChannel putMessageFutureThreadPoolNums
    putMessageTimeout putMsgIndexHightWater putThreadPoolQueueCapacity
    queryMessageThreadPoolNums queryThreadPoolQueueCapacity readAheadCacheEnable
    readAheadCacheExpireDuration readAheadCacheSizeThresholdRate readAheadMessageCountThreshold
    readAheadMessageSizeThreshold readOnlyCommitLogStorePaths readUnCommitted
    realTimeNotifyConsumerChange realTimePersistRocksDBConfig recallMessageEnable
    recheckReputOffsetFromCq recordGetMessageResult recoverConcurrently recoverThreadPoolNums
    redeleteHangedFileInterval regionId registerBrokerTimeoutMills registerNameServerPeriod
    rejectPullConsumerEnable rejectTransactionMessage replicasPerDiskPartition
    replyThreadPoolQueueCapacity retrieveMessageFromPopRetryTopicV1 reviveAckWaitMs
    reviveInterval reviveMaxSlow reviveQueueNum reviveScanTime rocketmqHome
    rocksdbCQDoubleWriteEnable rocksdbCompressionType rocksdbFlushWalFrequency
    rocksdbWalFileRollingThreshold sampleCountThreshold sampleSteps scanAvailableNameSrv
    scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked
    searchBcqByCacheEnable sendHeartbeatTimeoutMillis sendMessageThreadPoolNums
    sendThreadPoolQueueCapacity serverAsyncSemaphoreValue serverCallbackExecutorThreads
    serverChannelMaxIdleTimeSeconds serverLoadBalancerEnable serverLoadBalancerEnabled
    serverNettyWorkerGroupEnable serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable
    serverSelectorThreads serverSocketBacklog serverSocketRcvBufSize serverSocketSndBufSize
    serverWorkerThreads sharedByteBufferNum shortPollingTimeMills shutdownWaitTimeSeconds
    skipPreOnline skipWhenCKRePutReachMaxTimes slaveReadEnable slaveTimeout socksProxyConfig
    spinLockCollisionRetreatOptimalDegree splitMetadataSize splitRegistrationSize
    startAcceptSendRequestTimeStamp statRocksDBCQIntervalSec
    statefulAuthenticationCacheExpiredSecond statefulAuthenticationCacheMaxNum
    statefulAuthorizationCacheExpiredSecond statefulAuthorizationCacheMaxNum
    storePathBrokerIdentity storePathCommitLog storePathDLedgerCommitLog storePathEpochFile
    storePathRootDir storeReplyMessageEnable storeType subscriptionExpiredTimeout
    syncBrokerMemberGroupPeriod syncBrokerMetadataPeriod syncControllerMetadataPeriod
    syncFlushTimeout syncFromLastFile syncMasterFlushOffsetWhenStartup
    tieredBackendServiceProvider tieredMetadataServiceProvider tieredStorageLevel
    tieredStoreCommitLogMaxSize tieredStoreConsumeQueueMaxSize tieredStoreCrcCheckEnable
    tieredStoreDeleteFileEnable tieredStoreDeleteFileInterval tieredStoreFilePath
    tieredStoreFileReservedTime tieredStoreGroupCommit tieredStoreGroupCommitCount
    tieredStoreGroupCommitSize tieredStoreGroupCommitTimeout tieredStoreIndexFileMaxHashSlotNum
    tieredStoreIndexFileMaxIndexNum tieredStoreIndexFileRollingIdleInterval
    tieredStoreMaxFallBehindSize tieredStoreMaxGroupCommitCount tieredStoreMaxPendingLimit
    timerCheckMetricsWhen timerColdDataCheckIntervalMs timerCongestNumEachSlot
    timerEnableCheckMetrics timerEnableDisruptor timerEnableRetryUntilSuccess
    timerFlushIntervalMs timerGetMessageThreadNum timerInterceptDelayLevel timerMaxDelaySec
    timerMetricSmallThreshold timerPrecisionMs timerProgressLogIntervalMs
    timerPutMessageThreadNum timerRecallToTimeWheelEnable timerRecallToTimelineEnable
    timerReputServiceCorePoolSize timerReputServiceMaxPoolSize timerReputServiceQueueCapacity
    timerRocksDBEnable timerRocksDBPrecisionMs timerRocksDBRollIntervalHours
    timerRocksDBRollMaxTps timerRocksDBRollRangeHours timerRocksDBStopScan
    timerRocksDBTimeExpiredMaxTps timerRollWindowSlot timerSkipUnknownError timerStopDequeue
    timerStopEnqueue timerWarmEnable timerWheelEnable timerWheelSnapshotFlush
    timerWheelSnapshotIntervalMs topicQueueLockNum totalReplicas traceOn traceTopicEnable
    transRocksDBEnable transWriteOriginTransHalfEnable transactionCheckInterval
    transactionCheckMax transactionCheckRocksdbCoreThreads transactionCheckRocksdbMaxThreads
    transactionCheckRocksdbQueueCapacity transactionMetricFlushInterval
    transactionOpBatchInterval transactionOpMsgMaxSize transactionTimeOut
    transferMetadataJsonToRocksdb transferMsgByHeap transferOffsetJsonToRocksdb
    transientStorePoolEnable transientStorePoolSize travelCqFileNumWhenGetMessage
    updateNameServerAddrPeriod useABSLock useEpollNativeSelector useMessageFilterForNotification
    usePIDColdCtrStrategy useReentrantLockWhenPutMessage useSeparateRetryQueue
    useSeparateStorePathForRocksdbCQ useServerSideResetOffset useSingleRocksDBForAllConfigs
    useStaticSubscription userCacheExpiredSecond userCacheMaxNum userCacheRefreshSecond
    validateSystemTopicWhenUpdateTopic waitTimeMillsInAckQueue waitTimeMillsInAdminBrokerQueue
    waitTimeMillsInHeartbeatQueue waitTimeMillsInLitePullQueue waitTimeMillsInPullQueue
    waitTimeMillsInSendQueue waitTimeMillsInTransactionQueue wakeCommitWhenPutMessage
    wakeFlushWhenPutMessage warmMapedFileEnable writeBufferHighWaterMark writeBufferLowWaterMark
    writeWithoutMmap
"""

# RocketMQ 3 knew these, and many a broker.conf still has them. The places are below storePathRootDir since RocketMQ 4.
_OLD_KEYS = """
    storePathConsumeQueue storePathIndex storeCheckpoint abortFile checkTransactionMessageEnable
"""

_NO_REPLICAS = "this broker has no Raft log; remove the key, and set brokerRole or enableControllerMode for replicas"
_NO_ESCAPE = (
    "a slave that stands in for its master writes nothing, here or elsewhere: delayed and timed messages, transactions "
    "and pops wait for the master; remove the key"
)
_NO_PROPERTY_CRC = (
    "the checksum in the log covers the body of a message, not its properties; remove the key"
)

_UNMET: Final = {
    "enableDLegerCommitLog": _NO_REPLICAS,
    "enableRemoteEscape": _NO_ESCAPE,
    "enabledAppendPropCRC": _NO_PROPERTY_CRC,
    "useTLS": "the key here is tls.enable, with tls.client.* for certificates",
}

OTHER_KEYS: Final = OtherKeys(
    without_effect=frozenset(_KEYS.split()) | frozenset(_OLD_KEYS.split()),
    unmet=_UNMET,
    aliases=_ALIASES,
)

"""Error replies as exceptions: one small class per response code.

``error_for`` picks the class by code; the table is built from the classes, so a new code only needs a class.
``retryable`` follows what RocketMQ's producer retries; ``route_is_stale`` tells when to ask the name server first.
"""

from __future__ import annotations

from typing import ClassVar

from cometmq.base.errors import CometError
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command


class BrokerReplyError(CometError):
    """A server answered with an error code."""

    CODE: ClassVar[ResponseCode | None] = None

    def __init__(self, code: int, remark: str | None, address: str) -> None:
        super().__init__(code, remark, address)
        self.code = code
        self.remark = remark
        self.address = address

    def __str__(self) -> str:
        name = self.CODE.name if self.CODE is not None else "unknown code"
        return f"{self.address} answered {self.code} ({name}): {self.remark or 'no remark'}"


class UnknownReply(BrokerReplyError):
    """A code that this version does not know. Never retried, because the effect is unknown."""


def error_for(reply: Command, address: str) -> BrokerReplyError:
    """The exception for an error reply from ``address``."""
    error_class = ERRORS.get(reply.code, UnknownReply)
    return error_class(reply.code, reply.remark, address)


class SystemFault(BrokerReplyError):
    """The peer failed; its remark is the only hint at the cause."""

    CODE = ResponseCode.SYSTEM_ERROR
    retryable = True


class SystemBusy(BrokerReplyError):
    """Flow control: the peer asks for back-off. The remark names the rule."""

    CODE = ResponseCode.SYSTEM_BUSY
    retryable = True


class RequestCodeNotSupported(BrokerReplyError):
    """The peer is too old or too new for this request."""

    CODE = ResponseCode.REQUEST_CODE_NOT_SUPPORTED


class TransactionFailed(BrokerReplyError):
    """A transaction step could not be carried out."""

    CODE = ResponseCode.TRANSACTION_FAILED


class FlushDiskTimeout(BrokerReplyError):
    """Stored in memory, not on disk in time. A send result rather than an error."""

    CODE = ResponseCode.FLUSH_DISK_TIMEOUT


class SlaveNotAvailable(BrokerReplyError):
    """Stored, but no replica was available; or a request that only a master answers."""

    CODE = ResponseCode.SLAVE_NOT_AVAILABLE


class FlushSlaveTimeout(BrokerReplyError):
    """Stored, not replicated in time. A send result rather than an error."""

    CODE = ResponseCode.FLUSH_SLAVE_TIMEOUT


class MessageIllegal(BrokerReplyError):
    """Body, properties or topic exceed a limit."""

    CODE = ResponseCode.MESSAGE_ILLEGAL


class ServiceNotAvailable(BrokerReplyError):
    """Shutting down, disk full, or a replica asked to write."""

    CODE = ResponseCode.SERVICE_NOT_AVAILABLE
    retryable = True
    route_is_stale = True


class VersionNotSupported(BrokerReplyError):
    """Something in the request needs another version."""

    CODE = ResponseCode.VERSION_NOT_SUPPORTED


class NoPermission(BrokerReplyError):
    """Topic, group, broker or account forbids it; another broker may allow it."""

    CODE = ResponseCode.NO_PERMISSION
    retryable = True


class TopicNotExist(BrokerReplyError):
    """The topic does not exist; the cached route is out of date."""

    CODE = ResponseCode.TOPIC_NOT_EXIST
    retryable = True
    route_is_stale = True


class TopicExistAlready(BrokerReplyError):
    """The topic to create exists already."""

    CODE = ResponseCode.TOPIC_EXIST_ALREADY


class PullNotFound(BrokerReplyError):
    """No message at the offset yet. A pull result rather than an error."""

    CODE = ResponseCode.PULL_NOT_FOUND


class PullRetryImmediately(BrokerReplyError):
    """Nothing matched up to the next offset. A pull result rather than an error."""

    CODE = ResponseCode.PULL_RETRY_IMMEDIATELY


class PullOffsetMoved(BrokerReplyError):
    """The offset is outside the queue. A pull result rather than an error."""

    CODE = ResponseCode.PULL_OFFSET_MOVED


class QueryNotFound(BrokerReplyError):
    """What was asked for does not exist."""

    CODE = ResponseCode.QUERY_NOT_FOUND


class SubscriptionParseFailed(BrokerReplyError):
    """The filter expression cannot be parsed."""

    CODE = ResponseCode.SUBSCRIPTION_PARSE_FAILED


class SubscriptionNotExist(BrokerReplyError):
    """The broker does not know this subscription of the group; a heartbeat will announce it."""

    CODE = ResponseCode.SUBSCRIPTION_NOT_EXIST


class SubscriptionNotLatest(BrokerReplyError):
    """The broker knows an older subscription; a heartbeat will bring the new one."""

    CODE = ResponseCode.SUBSCRIPTION_NOT_LATEST


class SubscriptionGroupNotExist(BrokerReplyError):
    """The group does not exist and may not be created."""

    CODE = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


class FilterDataNotExist(BrokerReplyError):
    """The broker has no compiled filter of the group."""

    CODE = ResponseCode.FILTER_DATA_NOT_EXIST


class FilterDataNotLatest(BrokerReplyError):
    """The broker's compiled filter is older than the subscription."""

    CODE = ResponseCode.FILTER_DATA_NOT_LATEST


class InvalidParameter(BrokerReplyError):
    """A header field has an invalid value."""

    CODE = ResponseCode.INVALID_PARAMETER


class TransactionShouldCommit(BrokerReplyError):
    """Historical answer to a transaction check."""

    CODE = ResponseCode.TRANSACTION_SHOULD_COMMIT


class TransactionShouldRollback(BrokerReplyError):
    """Historical answer to a transaction check."""

    CODE = ResponseCode.TRANSACTION_SHOULD_ROLLBACK


class TransactionStateUnknow(BrokerReplyError):
    """Historical answer to a transaction check."""

    CODE = ResponseCode.TRANSACTION_STATE_UNKNOW


class TransactionStateGroupWrong(BrokerReplyError):
    """The producer group is not the one that sent the half message."""

    CODE = ResponseCode.TRANSACTION_STATE_GROUP_WRONG


class NoBuyerId(BrokerReplyError):
    """Unit routing: the message lacks its buyer id."""

    CODE = ResponseCode.NO_BUYER_ID
    retryable = True


class NotInCurrentUnit(BrokerReplyError):
    """Unit routing: the message belongs elsewhere."""

    CODE = ResponseCode.NOT_IN_CURRENT_UNIT
    retryable = True


class ConsumerNotOnline(BrokerReplyError):
    """No client of the group is connected."""

    CODE = ResponseCode.CONSUMER_NOT_ONLINE


class ConsumeMsgTimeout(BrokerReplyError):
    """The client asked by the broker did not answer in time."""

    CODE = ResponseCode.CONSUME_MSG_TIMEOUT


class NoMessage(BrokerReplyError):
    """There is no such message."""

    CODE = ResponseCode.NO_MESSAGE


class PollingFull(BrokerReplyError):
    """Too many waiting polls. From a 4.9 broker: the ACL change failed."""

    CODE = ResponseCode.POLLING_FULL


class PollingTimeout(BrokerReplyError):
    """The poll ended without a message. From a 4.9 broker: the ACL deletion failed."""

    CODE = ResponseCode.POLLING_TIMEOUT


class BrokerNotExist(BrokerReplyError):
    """No such broker. From a 4.9 broker: the change of the global white list failed."""

    CODE = ResponseCode.BROKER_NOT_EXIST
    route_is_stale = True


class BrokerDispatchNotComplete(BrokerReplyError):
    """The broker has not yet indexed what it has stored."""

    CODE = ResponseCode.BROKER_DISPATCH_NOT_COMPLETE


class BroadcastConsumption(BrokerReplyError):
    """The group consumes by broadcast, so the broker knows nothing of its offsets."""

    CODE = ResponseCode.BROADCAST_CONSUMPTION


class FlowControl(BrokerReplyError):
    """Too many requests of this kind; try later."""

    CODE = ResponseCode.FLOW_CONTROL
    retryable = True


class NotLeaderForQueue(BrokerReplyError):
    """A static topic's queue lives on another broker."""

    CODE = ResponseCode.NOT_LEADER_FOR_QUEUE
    route_is_stale = True


class IllegalOperation(BrokerReplyError):
    """Not allowed on this peer."""

    CODE = ResponseCode.ILLEGAL_OPERATION


class GoAway(BrokerReplyError):
    """The peer is about to stop; use another connection."""

    CODE = ResponseCode.GO_AWAY
    retryable = True
    route_is_stale = True


class FencedMasterEpoch(BrokerReplyError):
    """The master that asks has been replaced: its epoch is not the present one."""

    CODE = ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH


class FencedSyncStateSetEpoch(BrokerReplyError):
    """The set of in-sync replicas has changed since the master read it."""

    CODE = ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH


class InvalidMaster(BrokerReplyError):
    """The broker that asks is not the master of its group."""

    CODE = ResponseCode.CONTROLLER_INVALID_MASTER


class InvalidReplicas(BrokerReplyError):
    """The set names brokers that the controller does not know."""

    CODE = ResponseCode.CONTROLLER_INVALID_REPLICAS


class MasterNotAvailable(BrokerReplyError):
    """No broker of the group can be its master now."""

    CODE = ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE


class InvalidControllerRequest(BrokerReplyError):
    """The controller cannot read the request."""

    CODE = ResponseCode.CONTROLLER_INVALID_REQUEST


class ReplicaNotAlive(BrokerReplyError):
    """The set names brokers that send no heartbeats."""

    CODE = ResponseCode.CONTROLLER_BROKER_NOT_ALIVE


class NotLeadingController(BrokerReplyError):
    """Another controller decides; ask any for its address (1005)."""

    CODE = ResponseCode.CONTROLLER_NOT_LEADER


class BrokerMetadataNotExist(BrokerReplyError):
    """The controller does not know the group."""

    CODE = ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST


class InvalidCleanBrokerMetadata(BrokerReplyError):
    """A broker to forget is alive, or not known."""

    CODE = ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA


class BrokerNeedToBeRegistered(BrokerReplyError):
    """The broker has no id at this controller."""

    CODE = ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


class MasterStillExist(BrokerReplyError):
    """The old master is alive, so there was no election."""

    CODE = ResponseCode.CONTROLLER_MASTER_STILL_EXIST


class ElectMasterFailed(BrokerReplyError):
    """The broker that asks cannot be made master now."""

    CODE = ResponseCode.CONTROLLER_ELECT_MASTER_FAILED


class AlterSyncStateSetFailed(BrokerReplyError):
    """The set cannot be changed like that, or is like that already."""

    CODE = ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED


class BrokerIdInvalid(BrokerReplyError):
    """The id belongs to another broker, or is not the next one."""

    CODE = ResponseCode.CONTROLLER_BROKER_ID_INVALID


class UserNotExist(BrokerReplyError):
    """No such user."""

    CODE = ResponseCode.USER_NOT_EXIST


class PolicyNotExist(BrokerReplyError):
    """No such access policy."""

    CODE = ResponseCode.POLICY_NOT_EXIST


ERRORS: dict[int, type[BrokerReplyError]] = {
    int(error_class.CODE): error_class
    for error_class in BrokerReplyError.__subclasses__()
    if error_class.CODE is not None
}
"""Class by code."""

"""The commands of mqadmin that are tried, in their order, with the words that each needs.

Words in braces are filled in for the cluster at hand; see ``mqadmin_cluster``.
"""

from __future__ import annotations

from dataclasses import dataclass

TOPIC = "admin-topic"
CLUSTER_TOPIC = "admin-cluster-topic"
GROUP = "admin-group"
ONLINE_GROUP = "admin-online"
PRODUCERS = "admin-producers"

START_CLIENTS = "@start"
COMMAND_LIST = "@list"

BOTH = ("4.9.8", "5.5.0")
OLD = BOTH[:1]
NEW = BOTH[1:]


@dataclass(frozen=True)
class Step:
    """One call: words separated by blanks. ``is_refused``: RocketMQ's own cluster answers it with an error, too."""

    line: str
    versions: tuple[str, ...] = BOTH
    is_refused: bool = False

    @property
    def command(self) -> str:
        return self.line.split()[0]

    def words(self, values: dict[str, str]) -> list[str]:
        return [word.format(**values) for word in self.line.split()]


SCRIPT = (
    Step(COMMAND_LIST),
    Step(f"updateTopic -b {{broker}} -t {CLUSTER_TOPIC}-b -r 2 -w 2"),
    Step(f"updateTopic -c {{cluster}} -t {CLUSTER_TOPIC} -r 3 -w 3 -p 6"),
    Step(f"updateTopic -b {{broker}} -t {CLUSTER_TOPIC}-o -r 1 -w 1 -o true", is_refused=True),
    Step(f"updateTopicPerm -b {{broker}} -t {CLUSTER_TOPIC} -p 4"),
    Step(f"updateTopicPerm -c {{cluster}} -t {CLUSTER_TOPIC} -p 4"),
    Step(f"topicRoute -t {CLUSTER_TOPIC}"),
    Step(f"topicRoute -t {CLUSTER_TOPIC} -l", NEW),
    Step("topicRoute -t nobody-made-this", is_refused=True),
    Step(f"topicStatus -t {TOPIC}"),
    Step(f"topicClusterList -t {TOPIC}"),
    Step("topicList"),
    Step("topicList -c"),
    Step(f"allocateMQ -t {TOPIC} -i 10.0.0.1,10.0.0.2,10.0.0.3"),
    Step(f"updateSubGroup -b {{broker}} -g {GROUP}-b -r 3 -q 2"),
    Step(f"updateSubGroup -c {{cluster}} -g {GROUP}-c -s false"),
    Step(f"getConsumerConfig -g {GROUP}-b"),
    Step("clusterList"),
    Step("clusterList -m"),
    Step("brokerStatus -b {broker}"),
    Step("brokerStatus -c {cluster}"),
    Step("getBrokerConfig -b {broker}"),
    Step("getBrokerConfig -c {cluster}"),
    Step("updateBrokerConfig -b {broker} -k defaultTopicQueueNums -v 6"),
    Step("updateBrokerConfig -c {cluster} -k defaultTopicQueueNums -v 8"),
    Step("getNamesrvConfig"),
    Step("updateNamesrvConfig -k orderMessageEnable -v true"),
    Step("updateKvConfig -s admin-space -k admin-key -v admin-value"),
    Step("deleteKvConfig -s admin-space -k admin-key"),
    Step(f"updateOrderConf -t {TOPIC} -m put -v {{name}}:4"),
    Step(f"updateOrderConf -t {TOPIC} -m get"),
    Step(f"updateOrderConf -t {TOPIC} -m delete"),
    Step("wipeWritePerm -b {name}"),
    Step("addWritePerm -b {name}"),
    Step("queryMsgById -i {offset_id}", OLD),
    Step(f"queryMsgById -i {{offset_id}} -t {TOPIC}", NEW),
    Step("queryMsgById -i {missing_id}", OLD, is_refused=True),
    Step(f"queryMsgById -i {{missing_id}} -t {TOPIC}", NEW, is_refused=True),
    Step(f"queryMsgByKey -t {TOPIC} -k key-3"),
    Step(f"queryMsgByUniqueKey -t {TOPIC} -i {{message_id}}"),
    Step(f"queryMsgByOffset -t {TOPIC} -b {{name}} -i 1 -o 2"),
    Step("queryMsgTraceById -i {message_id}", is_refused=True),
    Step(f"printMsg -t {TOPIC} -d true"),
    Step(f"printMsgByQueue -t {TOPIC} -a {{name}} -i 1 -p true -d true -f true"),
    Step(f"consumeMessage -t {TOPIC} -b {{name}} -i 2 -o 1 -c 3"),
    Step(f"queryCq -t {TOPIC} -q 0 -i 0 -c 5 -b {{broker}}"),
    Step(f"queryCq -t {TOPIC} -q 0 -i 0 -c 5 -b {{broker}} -g {GROUP}"),
    Step(f"sendMessage -t {TOPIC}-sent -p hello -k key-s -c tag-s"),
    Step("sendMsgStatus -b {name} -s 10 -c 2"),
    Step(f"checkMsgSendRT -t {TOPIC}-sent -a 2 -s 10"),
    Step(f"consumerProgress -g {GROUP}"),
    Step("brokerConsumeStats -b {broker} -o false"),
    Step(f"cloneGroupOffset -s {GROUP} -d {GROUP}-clone -t {TOPIC}"),
    Step(f"consumerProgress -g {GROUP}-clone"),
    Step(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0"),
    Step(f"skipAccumulatedMessage -g {GROUP} -t {TOPIC}"),
    Step(f"consumerConnection -g {GROUP}", is_refused=True),
    Step("cleanExpiredCQ -b {broker}"),
    Step("cleanExpiredCQ -c {cluster}"),
    Step("cleanUnusedTopic -b {broker}"),
    Step("cleanUnusedTopic -c {cluster}"),
    Step("deleteExpiredCommitLog -b {broker}"),
    Step("exportMetadata -c {cluster} -f {directory}"),
    Step("exportConfigs -c {cluster} -f {directory}"),
    Step("exportMetrics -c {cluster} -f {directory}"),
    Step("updateTopicList -b {broker} -f {topics_file}", NEW),
    Step("updateSubGroupList -b {broker} -f {groups_file}", NEW),
    Step(f"setConsumeMode -b {{broker}} -t {TOPIC} -g {GROUP} -m POP -q 4", NEW),
    Step("haStatus -b {broker}", NEW),
    Step("getColdDataFlowCtrInfo -b {broker}", NEW),
    Step(f"updateColdDataFlowCtrGroupConfig -b {{broker}} -g {GROUP} -v 100", NEW),
    Step(f"removeColdDataFlowCtrGroupConfig -b {{broker}} -g {GROUP}", NEW),
    Step("setCommitLogReadAheadMode -b {broker} -m 0", NEW),
    Step("getBrokerLiteInfo -b {broker}", NEW),
    Step("updateStaticTopic -c {cluster} -t admin-static -qn 2", NEW),
    Step(f"deleteSubGroup -b {{broker}} -g {GROUP}-b"),
    Step(f"deleteSubGroup -c {{cluster}} -g {GROUP}-c -r true"),
    Step(f"deleteTopic -c {{cluster}} -t {CLUSTER_TOPIC}"),
    Step(f"topicRoute -t {CLUSTER_TOPIC}", is_refused=True),
    Step(START_CLIENTS),
    Step(f"producerConnection -g {PRODUCERS} -t {TOPIC}"),
    Step("producer -b {broker}"),
    Step(f"consumerConnection -g {ONLINE_GROUP}"),
    Step(f"consumerProgress -g {ONLINE_GROUP}"),
    Step(f"consumerProgress -g {ONLINE_GROUP} -s true"),
    Step(f"consumerStatus -g {ONLINE_GROUP}"),
    Step("consumerProgress"),
    Step(f"statsAll -t {TOPIC}"),
    Step(f"resetOffsetByTime -g {ONLINE_GROUP} -t {TOPIC} -s now"),
)

GROUP_SCRIPT = (
    Step("clusterList"),
    Step("clusterList -m"),
    Step(f"topicRoute -t {TOPIC}"),
    Step(f"topicRoute -t {TOPIC} -l", NEW),
    Step(f"topicStatus -t {TOPIC}"),
    Step(f"topicClusterList -t {TOPIC}"),
    Step(f"consumerProgress -g {GROUP}"),
    Step("brokerStatus -b {broker}"),
    Step("brokerStatus -b {slave}"),
    Step("brokerStatus -c {cluster}"),
    Step("haStatus -b {broker}", NEW),
    Step("haStatus -b {slave}", NEW),
    Step("haStatus -c {cluster}", NEW),
    Step("updateBrokerConfig -b {slave} -k defaultTopicQueueNums -v 6"),
    Step("updateBrokerConfig -c {cluster} -k defaultTopicQueueNums -v 8"),
    Step(f"updateSubGroup -c {{cluster}} -g {GROUP}-c -s false"),
    Step(f"updateTopic -c {{cluster}} -t {CLUSTER_TOPIC} -r 3 -w 3 -p 6"),
    Step(f"topicRoute -t {CLUSTER_TOPIC}"),
    Step("cleanUnusedTopic -c {cluster}"),
    Step(f"deleteTopic -c {{cluster}} -t {CLUSTER_TOPIC}"),
    Step(f"topicRoute -t {CLUSTER_TOPIC}", is_refused=True),
)
"""The commands that look at a master and its slave, or go to both."""

CONTROLLER_SCRIPT = (
    Step("getControllerMetaData -a {controller}"),
    Step("getControllerConfig -a {controller}"),
    Step("updateControllerConfig -a {controller} -k scanNotActiveBrokerInterval -v 4000"),
    Step("getSyncStateSet -a {controller} -b {name}"),
    Step("getSyncStateSet -a {controller} -c {cluster}"),
    Step("getSyncStateSet -a {controller} -b nobody"),
    Step("getBrokerEpoch -b {name}"),
    Step("getBrokerEpoch -c {cluster}"),
    Step("clusterList"),
    Step("electMaster -a {controller} -b 1 -bn {name} -c {cluster}", is_refused=True),
    Step("electMaster -a {controller} -b 9 -bn {name} -c {cluster}", is_refused=True),
    Step("electMaster -a {controller} -b 1 -bn nobody -c {cluster}", is_refused=True),
    Step("cleanBrokerMetadata -a {controller} -bn {name} -b 1;2 -c {cluster}", is_refused=True),
    Step("cleanBrokerMetadata -a {controller} -bn nobody -c {cluster}", is_refused=True),
    # Elected it is: the tool cannot read the answer, RocketMQ's own neither.
    Step("electMaster -a {controller} -b 2 -bn {name} -c {cluster}", is_refused=True),
    Step("getSyncStateSet -a {controller} -b {name}"),
    # Without -b: with it, and -l, RocketMQ forgets the whole group, not the brokers that are named.
    Step("cleanBrokerMetadata -a {controller} -bn {name} -c {cluster} -l"),
    Step("getSyncStateSet -a {controller} -b {name}"),
)
"""The commands about a controller and the brokers under it: 1 is the master, 2 its slave."""

CONTROLLER_COMMANDS = frozenset(step.command for step in CONTROLLER_SCRIPT) - {"clusterList"}
"""Not tried with brokers that are under none."""

PLAIN_ACCOUNT_SCRIPT = (
    Step(
        "updateAclConfig -b {broker} -a account123 -s secret123 -t Open=PUB|SUB,Closed=DENY -g readers=SUB "
        "-i DENY -u SUB -w 10.1.2.3 -m false"
    ),
    Step("updateAclConfig -c {cluster} -a account123 -s secret456 -m true"),
    Step("updateAclConfig -b {broker} -a account456 -s secret456"),
    Step("updateAclConfig -b {broker} -a account123 -s secret123 -t Open=ALL", is_refused=True),
    Step("updateAclConfig -b {broker} -a account123 -s secret123 -t Open", is_refused=True),
    Step("updateAclConfig -b {broker} -a account123 -s secret123 -w 1.2", is_refused=True),
    Step("clusterAclConfigVersion -b {broker}"),
    Step("clusterAclConfigVersion -c {cluster}"),
    Step("updateGlobalWhiteAddr -b {broker} -g 10.10.154.1,10.10.154.*"),
    Step("updateGlobalWhiteAddr -c {cluster} -g 10.10.154.2"),
    Step("updateGlobalWhiteAddr -b {broker} -g 10.10.154.3 -p {file}"),
    Step("deleteAclConfig -b {broker} -a account123"),
    Step("deleteAclConfig -b {broker} -a account123", is_refused=True),
    Step("deleteAclConfig -c {cluster} -a account456"),
    Step("clusterAclConfigVersion -c {cluster}"),
)
"""The commands of 4.9.8 about accounts; the tool itself is one of an administrator."""

USER_ACCOUNT_SCRIPT = (
    Step("createUser -b {broker} -u {user} -p password-1"),
    Step("createUser -b {broker} -u {user} -p password-1", is_refused=True),
    Step("createUser -c {cluster} -u {user}-2 -p password-2 -t Super"),
    Step("getUser -b {broker} -u {user}"),
    Step("getUser -c {cluster} -u {user}-2"),
    Step("getUser -b {broker} -u nobody-made-this"),
    Step("updateUser -b {broker} -u {user} -p password-3"),
    Step("updateUser -c {cluster} -u {user}-2 -t Normal"),
    Step("updateUser -b {broker} -u {user}-2 -s disable"),
    Step("updateUser -b {broker} -u nobody-made-this -p password", is_refused=True),
    Step("listUser -b {broker} -f {user}"),
    Step("listUser -c {cluster} -f {user}"),
    Step("listUser -b {broker} -f nobody-made-this"),
    Step("createAcl -b {broker} -s User:{user} -r Topic:Open,Group:readers -a Pub,Sub -d Allow"),
    Step(
        "createAcl -c {cluster} -s User:{user}-2 -r Topic:Open* -a all -d deny -i 10.0.0.0/8,127.0.0.1"
    ),
    Step("createAcl -b {broker} -s User:nobody -r Topic:Open -a Pub -d Allow", is_refused=True),
    Step("createAcl -b {broker} -s User:{user} -r Thing:Open -a Pub -d Allow", is_refused=True),
    Step("createAcl -b {broker} -s User:{user} -r Topic:Open -a Fly -d Allow", is_refused=True),
    Step("createAcl -b {broker} -s User:{user} -r Topic:Open -a Any -d Allow", is_refused=True),
    Step("createAcl -b {broker} -s User:{user} -r Topic:Open -a Pub -d Maybe", is_refused=True),
    Step(
        "createAcl -b {broker} -s User:{user} -r Topic:Open -a Pub -d Allow -i here",
        is_refused=True,
    ),
    Step("updateAcl -b {broker} -s User:{user} -r Topic:Open -a Pub -d Deny"),
    Step("updateAcl -c {cluster} -s User:{user} -r Cluster:* -a Get,List -d Allow"),
    Step("getAcl -b {broker} -s User:{user}"),
    Step("getAcl -c {cluster} -s User:{user}-2"),
    Step("getAcl -b {broker} -s User:nobody-made-this", is_refused=True),
    Step("listAcl -b {broker} -s {user}"),
    Step("listAcl -c {cluster} -s {user} -r Topic:"),
    Step("copyUser -f {broker} -t {other} -u {user},{user}-2"),
    Step("copyUser -f {broker} -t {other} -u {user}"),
    Step("copyAcl -f {broker} -t {other} -s User:{user},User:{user}-2"),
    Step("copyAcl -f {broker} -t {other} -s User:{user}"),
    Step("listUser -b {other} -f {user}"),
    Step("listAcl -b {other} -s {user}"),
    Step("deleteAcl -b {broker} -s User:{user} -r Topic:Open"),
    Step("getAcl -b {broker} -s User:{user}"),
    Step("deleteAcl -c {cluster} -s User:{user}"),
    Step("getAcl -b {broker} -s User:{user}"),
    Step("deleteAcl -b {broker} -s User:{user}", is_refused=True),
    Step("deleteUser -b {broker} -u {user}"),
    Step("deleteUser -c {cluster} -u {user}-2"),
    Step("deleteUser -b {broker} -u nobody-made-this"),
    Step("listUser -b {broker} -f {user}"),
)
"""The commands of 5.5.0 about accounts; the tool itself is one of a super user. Copies go to the rival's broker."""

ACCOUNT_COMMANDS = {
    version: frozenset(step.command for step in script)
    for version, script in zip(BOTH, (PLAIN_ACCOUNT_SCRIPT, USER_ACCOUNT_SCRIPT), strict=True)
}
"""Not tried with brokers that have no accounts."""

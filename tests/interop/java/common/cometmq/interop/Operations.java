package cometmq.interop;

import java.util.Map;
import java.util.Properties;
import java.util.Set;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.admin.TopicOffset;
import org.apache.rocketmq.common.admin.TopicStatsTable;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.body.ClusterInfo;
import org.apache.rocketmq.common.protocol.body.Connection;
import org.apache.rocketmq.common.protocol.body.ConsumerConnection;
import org.apache.rocketmq.common.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.common.subscription.SubscriptionGroupConfig;

/** What an operator sees and sets through the admin API. */
final class Operations {
    private Operations() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("admin-cluster", Operations::clusterView);
        all.put("admin-topic-stats", Operations::topicStats);
        all.put("admin-connections", Operations::connections);
        all.put("admin-groups", Operations::groups);
        all.put("admin-key-values", Operations::keyValues);
        all.put("admin-write-permission", Operations::writePermission);
    }

    private static void clusterView(Cluster cluster) throws Exception {
        ClusterInfo info = cluster.admin.examineBrokerClusterInfo();
        Check.equal(Map.of(cluster.clusterName, Set.of(cluster.brokerName)), info.getClusterAddrTable(), "clusters");
        Check.equal(Map.of(MixAll.MASTER_ID, cluster.brokerAddress),
            info.getBrokerAddrTable().get(cluster.brokerName).getBrokerAddrs(), "addresses of the broker");
        Map<String, String> runtime = cluster.admin.fetchBrokerRuntimeStats(cluster.brokerAddress).getTable();
        for (String key : new String[] {"bootTimestamp", "brokerVersionDesc", "putTps", "commitLogMaxOffset"}) {
            Check.that(runtime.containsKey(key), key + " in the broker's figures " + runtime.keySet());
        }
        Properties config = cluster.admin.getBrokerConfig(cluster.brokerAddress);
        Check.equal(cluster.brokerName, config.getProperty("brokerName"), "name in the broker's config");
    }

    private static void topicStats(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("stats", 3);
        Ledger ledger = new Ledger();
        for (int i = 0; i < 5; i++) {
            cluster.producer.send(ledger.write(topic, "s"), cluster.queue(topic, 1));
        }
        ledger.requireExactly(Cluster.flatten(cluster.readTopic(topic, 5)));
        TopicStatsTable stats = cluster.admin.examineTopicStats(topic);
        Check.equal(3, stats.getOffsetTable().size(), "queues in the figures");
        for (Map.Entry<MessageQueue, TopicOffset> entry : stats.getOffsetTable().entrySet()) {
            boolean used = entry.getKey().getQueueId() == 1;
            Check.equal(used ? 5L : 0L, entry.getValue().getMaxOffset(), "end of " + entry.getKey());
            Check.equal(0L, entry.getValue().getMinOffset(), "start of " + entry.getKey());
            Check.equal(used, entry.getValue().getLastUpdateTimestamp() > 0, "a time of change in " + entry.getKey());
        }
    }

    private static void connections(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("connected", 2);
        String group = cluster.name("connected-group");
        DefaultMQPushConsumer consumer = cluster.startConsumer(group, topic, "a || b", new Inbox());
        Check.eventually("one consumer at the broker", () -> {
            int found = cluster.admin.examineConsumerConnectionInfo(group).getConnectionSet().size();
            return found == 1 ? null : found + " connections";
        });
        ConsumerConnection connection = cluster.admin.examineConsumerConnectionInfo(group);
        Check.equal(ConsumeType.CONSUME_PASSIVELY, connection.getConsumeType(), "type");
        Check.equal(MessageModel.CLUSTERING, connection.getMessageModel(), "model");
        Check.equal("a || b", connection.getSubscriptionTable().get(topic).getSubString(), "subscription");
        Check.equal(Set.of("a", "b"), connection.getSubscriptionTable().get(topic).getTagsSet(), "tags");
        Connection only = connection.getConnectionSet().iterator().next();
        Check.equal(consumer.buildMQClientId(), only.getClientId(), "client id");
        Check.that(cluster.admin.queryTopicConsumeByWho(topic).getGroupList().contains(group), "the group as reader");

        String producerGroup = cluster.producer.getProducerGroup();
        cluster.producer.send(new Ledger().write(topic, "c"));
        Check.eventually("the producer at the broker", () -> {
            int found = cluster.admin.examineProducerConnectionInfo(producerGroup, topic).getConnectionSet().size();
            return found == 1 ? null : found + " connections";
        });

        consumer.shutdown();
        Check.eventually("no consumer at the broker", () -> {
            try {
                return "still " + cluster.admin.examineConsumerConnectionInfo(group).getConnectionSet();
            } catch (MQBrokerException e) {
                return e.getResponseCode() == 206 ? null : e.toString();
            }
        });
    }

    private static void groups(Cluster cluster) throws Exception {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(cluster.name("made-group"));
        config.setRetryMaxTimes(5);
        config.setConsumeBroadcastEnable(false);
        cluster.admin.createAndUpdateSubscriptionGroupConfig(cluster.brokerAddress, config);
        Check.equal(config, cluster.admin.examineSubscriptionGroupConfig(cluster.brokerAddress, config.getGroupName()),
            "group config");
        cluster.admin.deleteSubscriptionGroup(cluster.brokerAddress, config.getGroupName());
        Check.that(!cluster.admin.getAllSubscriptionGroup(cluster.brokerAddress, Check.PATIENCE_MS)
            .getSubscriptionGroupTable().containsKey(config.getGroupName()), "a deleted group to be gone");
    }

    private static void keyValues(Cluster cluster) throws Exception {
        String space = cluster.name("space");
        cluster.admin.createAndUpdateKvConfig(space, "Größe", "値 = {1; 2}");
        cluster.admin.createAndUpdateKvConfig(space, "other", "x");
        Check.equal("値 = {1; 2}", cluster.admin.getKVConfig(space, "Größe"), "value");
        Check.equal(Map.of("Größe", "値 = {1; 2}", "other", "x"),
            cluster.admin.getKVListByNamespace(space).getTable(), "values of the namespace");
        cluster.admin.deleteKvConfig(space, "other");
        Check.refused(MQClientException.class, "a deleted key", () -> cluster.admin.getKVConfig(space, "other"));
    }

    private static void writePermission(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("wiped", 1);
        int wiped = cluster.admin.wipeWritePermOfBroker(cluster.nameServer, cluster.brokerName);
        Check.that(wiped > 0, "topics that lost write permission, got " + wiped);
        Check.equal(4, permission(cluster, topic), "permission after the wipe");
        int restored = cluster.admin.addWritePermOfBroker(cluster.nameServer, cluster.brokerName);
        Check.equal(wiped, restored, "topics that got it back");
        Check.equal(6, permission(cluster, topic), "permission given back");
    }

    private static int permission(Cluster cluster, String topic) throws Exception {
        return cluster.admin.examineTopicRouteInfo(topic).getQueueDatas().get(0).getPerm();
    }
}

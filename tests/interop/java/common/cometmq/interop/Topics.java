package cometmq.interop;

import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.constant.PermName;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.route.BrokerData;
import org.apache.rocketmq.common.protocol.route.QueueData;
import org.apache.rocketmq.common.protocol.route.TopicRouteData;
import org.apache.rocketmq.common.topic.TopicValidator;

/** How topics come into being, are found, change and go. */
final class Topics {
    private static final int READ_WRITE = PermName.PERM_READ | PermName.PERM_WRITE;

    private Topics() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("topic-auto-creation", Topics::autoCreation);
        all.put("topic-creation-by-admin", Topics::creationByAdmin);
        all.put("topic-creation-by-producer", Topics::creationByProducer);
        all.put("topic-permission", Topics::permission);
        all.put("topic-deletion", Topics::deletion);
    }

    private static void autoCreation(Cluster cluster) throws Exception {
        String topic = cluster.name("born-by-send");
        MQClientException unknown = Check.refused(MQClientException.class, "route of a topic that nobody made",
            () -> cluster.admin.examineTopicRouteInfo(topic));
        Check.equal(17, unknown.getResponseCode(), "code for a topic that nobody made");

        Ledger ledger = new Ledger();
        for (int i = 0; i < 8; i++) {
            Check.equal(SendStatus.SEND_OK, cluster.producer.send(ledger.write(topic, "t")).getSendStatus(), "status");
        }
        // The client asks for 4 queues, TBW102 offers 8: the smaller number wins, and the inherit bit does not pass on.
        cluster.awaitRoute(topic);
        requireQueues(cluster, topic, 4, 4, READ_WRITE);
        Map<Integer, List<MessageExt>> stored = cluster.readTopic(topic, 8);
        Check.equal(Set.of(0, 1, 2, 3), stored.keySet(), "queues");
        stored.values().forEach(queue -> Check.equal(2, queue.size(), "messages a queue, sent in turn"));
        ledger.requireExactly(Cluster.flatten(stored));
        Check.that(cluster.admin.fetchAllTopicList().getTopicList().contains(topic), "the new topic in the topic list");
    }

    private static void creationByAdmin(Cluster cluster) throws Exception {
        String topic = cluster.name("by-admin");
        TopicConfig config = new TopicConfig(topic, 5, 3, READ_WRITE);
        cluster.admin.createAndUpdateTopicConfig(cluster.brokerAddress, config);
        cluster.awaitRoute(topic);
        requireQueues(cluster, topic, 5, 3, READ_WRITE);
        // 5.x answers with a subclass, which never equals its parent, so it is reduced to the parent's own text.
        TopicConfig found = new TopicConfig();
        found.decode(cluster.admin.examineTopicConfig(cluster.brokerAddress, topic).encode());
        Check.equal(config, found, "topic config");
        Check.equal(3, cluster.producer.fetchPublishMessageQueues(topic).size(), "queues to send to");
        for (MessageQueue queue : cluster.producer.fetchPublishMessageQueues(topic)) {
            Check.equal(0L, cluster.producer.maxOffset(queue), "end of an empty queue");
            Check.equal(0L, cluster.producer.minOffset(queue), "start of an empty queue");
        }

        config.setReadQueueNums(6);
        config.setWriteQueueNums(6);
        cluster.admin.createAndUpdateTopicConfig(cluster.brokerAddress, config);
        Check.eventually("the larger topic in its route", () -> {
            int queues = route(cluster, topic).getWriteQueueNums();
            return queues == 6 ? null : queues + " queues";
        });
        requireQueues(cluster, topic, 6, 6, READ_WRITE);

        Check.refused(MQClientException.class, "a system topic by hand", () -> cluster.admin.createAndUpdateTopicConfig(
            cluster.brokerAddress, new TopicConfig(TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC, 1, 1, READ_WRITE)));
    }

    /** The plain client's way: no tool, only a producer that knows the key topic. */
    private static void creationByProducer(Cluster cluster) throws Exception {
        String topic = cluster.name("by-producer");
        Dialect.createTopic(cluster.producer, TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC, topic, 7);
        cluster.awaitRoute(topic);
        requireQueues(cluster, topic, 7, 7, READ_WRITE);
    }

    private static void permission(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("read-only", 2);
        Ledger ledger = new Ledger();
        cluster.producer.send(ledger.write(topic, "t"), cluster.queue(topic, 1));
        TopicConfig readOnly = new TopicConfig(topic, 2, 2, PermName.PERM_READ);
        cluster.admin.createAndUpdateTopicConfig(cluster.brokerAddress, readOnly);
        Check.eventually("the new permission in the route", () -> {
            int perm = route(cluster, topic).getPerm();
            return perm == PermName.PERM_READ ? null : "permission " + perm;
        });
        // A producer of its own, since the shared one may hold the old route for another 30 seconds.
        var late = cluster.newProducer("late-producer");
        late.start();
        cluster.atEnd(late::shutdown);
        Check.refused(MQClientException.class, "a send to a topic without write permission",
            () -> late.send(new Ledger().write(topic, "t")));
        ledger.requireExactly(Cluster.flatten(cluster.readTopic(topic, 1)));
    }

    private static void deletion(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("short-lived", 2);
        cluster.producer.send(new Ledger().write(topic, "t"), cluster.queue(topic, 0));
        cluster.admin.deleteTopicInBroker(Set.of(cluster.brokerAddress), topic);
        Dialect.deleteTopicInNameServer(cluster.admin, cluster.nameServer, topic, cluster.clusterName);
        Check.eventually("no route after deletion", () -> {
            try {
                return "a route: " + cluster.admin.examineTopicRouteInfo(topic);
            } catch (MQClientException e) {
                return e.getResponseCode() == 17 ? null : e.toString();
            }
        });
        Check.that(!cluster.admin.getAllTopicConfig(cluster.brokerAddress, Check.PATIENCE_MS)
            .getTopicConfigTable().containsKey(topic), "the broker to have forgotten " + topic);

        // Made again under the same name, it starts empty.
        cluster.createTopic("short-lived", 2);
        Check.equal(0L, cluster.admin.maxOffset(cluster.queue(topic, 0)), "end of a queue made anew");
    }

    private static void requireQueues(Cluster cluster, String topic, int read, int write, int perm) throws Exception {
        QueueData queues = route(cluster, topic);
        Check.equal(read, queues.getReadQueueNums(), topic + " read queues");
        Check.equal(write, queues.getWriteQueueNums(), topic + " write queues");
        Check.equal(perm, queues.getPerm(), topic + " permission");
        Check.equal(cluster.brokerName, queues.getBrokerName(), topic + " broker");
    }

    private static QueueData route(Cluster cluster, String topic) throws Exception {
        TopicRouteData route = cluster.admin.examineTopicRouteInfo(topic);
        Check.equal(1, route.getQueueDatas().size(), "brokers with queues of " + topic);
        Check.equal(1, route.getBrokerDatas().size(), "brokers of " + topic);
        BrokerData broker = route.getBrokerDatas().get(0);
        Check.equal(cluster.clusterName, broker.getCluster(), "cluster of " + topic);
        Check.equal(Map.of(MixAll.MASTER_ID, cluster.brokerAddress), broker.getBrokerAddrs(), "addresses of " + topic);
        return route.getQueueDatas().get(0);
    }
}

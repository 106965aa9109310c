package cometmq.interop;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListener;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.admin.OffsetWrapper;
import org.apache.rocketmq.common.constant.PermName;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.body.ClusterInfo;
import org.apache.rocketmq.common.protocol.route.BrokerData;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * One name server with one master broker, as the Java client sees it: shared producer, reader and admin tool for the
 * whole run, consumers for one scenario. Closing ends the consumers; {@link #shutdown} ends the rest.
 */
final class Cluster implements AutoCloseable {
    /**
     * The 5.x client changes the version of its subscription when it gets queues, tells the broker in a heartbeat, and
     * skips that one when its timer sends another at the same moment. Until the next heartbeat the broker then refuses
     * its pulls, so that one should not be 30 seconds away.
     */
    static final int HEARTBEAT_MS = 2_000;

    private static final int PULL_MESSAGES_MAX = 32;

    final String nameServer;
    final String clusterName;
    final String brokerName;
    final String brokerAddress;
    final DefaultMQProducer producer;
    final DefaultMQAdminExt admin;

    private final String prefix;
    private final DefaultMQPullConsumer reader;
    private final Deque<Runnable> endings = new ArrayDeque<>();

    /** @param prefix starts every topic and group name, so that several runs can share one set of servers */
    Cluster(String nameServer, String prefix) throws Exception {
        this.nameServer = nameServer;
        this.prefix = prefix;
        admin = new DefaultMQAdminExt(name("admin"));
        admin.setNamesrvAddr(nameServer);
        admin.start();
        producer = newProducer("producer");
        producer.start();
        reader = new DefaultMQPullConsumer(name("reader"));
        reader.setNamesrvAddr(nameServer);
        reader.start();

        ClusterInfo info = admin.examineBrokerClusterInfo();
        Check.equal(1, info.getBrokerAddrTable().size(), "brokers in " + info.getBrokerAddrTable());
        BrokerData broker = info.getBrokerAddrTable().values().iterator().next();
        brokerName = broker.getBrokerName();
        brokerAddress = broker.getBrokerAddrs().get(0L);
        clusterName = info.getClusterAddrTable().keySet().iterator().next();
    }

    private Cluster(Cluster other) {
        nameServer = other.nameServer;
        prefix = other.prefix;
        admin = other.admin;
        producer = other.producer;
        reader = other.reader;
        brokerName = other.brokerName;
        brokerAddress = other.brokerAddress;
        clusterName = other.clusterName;
    }

    /** The same clients for a scenario that runs beside others: closing it ends the consumers of that scenario alone. */
    Cluster share() {
        return new Cluster(this);
    }

    String name(String stem) {
        return prefix + "-" + stem;
    }

    /** Creates a topic by the admin API and waits until clients can find it. */
    String createTopic(String stem, int queues) throws Exception {
        String topic = name(stem);
        TopicConfig config = new TopicConfig(topic, queues, queues, PermName.PERM_READ | PermName.PERM_WRITE);
        admin.createAndUpdateTopicConfig(brokerAddress, config);
        awaitRoute(topic);
        return topic;
    }

    void awaitRoute(String topic) throws Exception {
        Check.eventually("route of " + topic, () -> {
            int queues = admin.examineTopicRouteInfo(topic).getQueueDatas().size();
            return queues > 0 ? null : "a route without queues";
        });
    }

    MessageQueue queue(String topic, int id) {
        return new MessageQueue(topic, brokerName, id);
    }

    DefaultMQProducer newProducer(String stem) {
        DefaultMQProducer made = new DefaultMQProducer(name(stem));
        made.setNamesrvAddr(nameServer);
        // A slow machine is not what these tests are after.
        made.setSendMsgTimeout(10_000);
        return made;
    }

    DefaultMQPushConsumer newConsumer(String group, String topic, String tags, MessageListener listener)
            throws Exception {
        DefaultMQPushConsumer made = new DefaultMQPushConsumer(group);
        made.setNamesrvAddr(nameServer);
        made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        made.subscribe(topic, tags);
        made.setMessageListener(listener);
        made.setHeartbeatBrokerInterval(HEARTBEAT_MS);
        // The default of 20 threads a consumer is a lot of start-up on a small machine.
        made.setConsumeThreadMin(4);
        made.setConsumeThreadMax(4);
        return made;
    }

    DefaultMQPushConsumer startConsumer(String group, String topic, String tags, MessageListener listener)
            throws Exception {
        DefaultMQPushConsumer made = newConsumer(group, topic, tags, listener);
        start(made);
        return made;
    }

    void start(DefaultMQPushConsumer consumer) throws Exception {
        consumer.start();
        atEnd(consumer::shutdown);
    }

    /** Runs when the scenario is over, however it ended. Every client's shutdown may be called twice. */
    void atEnd(Runnable ending) {
        endings.push(ending);
    }

    /** Every stored message of a topic, queue by queue, in order of the queue; waits until there are that many. */
    Map<Integer, List<MessageExt>> readTopic(String topic, int count) throws Exception {
        Check.eventually(count + " messages in " + topic, () -> {
            long stored = 0;
            for (MessageQueue queue : sortedQueues(topic)) {
                stored += reader.maxOffset(queue);
            }
            return stored == count ? null : stored + " of them";
        });
        Map<Integer, List<MessageExt>> byQueue = new TreeMap<>();
        for (MessageQueue queue : sortedQueues(topic)) {
            byQueue.put(queue.getQueueId(), readQueue(queue));
        }
        return byQueue;
    }

    List<MessageExt> readQueue(MessageQueue queue) throws Exception {
        List<MessageExt> messages = new ArrayList<>();
        long end = reader.maxOffset(queue);
        while (messages.size() < end) {
            PullResult pulled = reader.pull(queue, "*", messages.size(), PULL_MESSAGES_MAX);
            Check.equal(PullStatus.FOUND, pulled.getPullStatus(), "pull at " + messages.size() + " of " + queue);
            for (MessageExt message : pulled.getMsgFoundList()) {
                Check.equal((long) messages.size(), message.getQueueOffset(), "queue offset in " + queue);
                Check.equal(queue.getQueueId(), message.getQueueId(), "queue id in " + queue);
                messages.add(message);
            }
            Check.equal((long) messages.size(), pulled.getNextBeginOffset(), "next offset in " + queue);
        }
        return messages;
    }

    static List<MessageExt> flatten(Map<Integer, List<MessageExt>> byQueue) {
        return byQueue.values().stream().flatMap(List::stream).collect(Collectors.toList());
    }

    /** Queues of a topic that a consumer holds at this moment, by the client's own books. */
    static Set<Integer> ownedQueues(DefaultMQPushConsumer consumer, String topic) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
            .filter(queue -> queue.getTopic().equals(topic))
            .map(MessageQueue::getQueueId)
            .collect(Collectors.toCollection(TreeSet::new));
    }

    /** What a consumer has pulled of a topic's queues and holds in memory. */
    static List<ProcessQueue> pulledQueues(DefaultMQPushConsumer consumer, String topic) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().entrySet().stream()
            .filter(entry -> entry.getKey().getTopic().equals(topic))
            .map(Map.Entry::getValue)
            .collect(Collectors.toList());
    }

    /** What the broker holds as committed, queue id to offset. */
    Map<Integer, Long> committed(String group, String topic) throws Exception {
        Map<Integer, Long> offsets = new TreeMap<>();
        for (Map.Entry<MessageQueue, OffsetWrapper> entry
                : admin.examineConsumeStats(group, topic).getOffsetTable().entrySet()) {
            offsets.put(entry.getKey().getQueueId(), entry.getValue().getConsumerOffset());
        }
        return offsets;
    }

    /** Hands a group's positions to the broker now, not at its next timer, and waits until they are there. */
    void commitNow(String topic, Map<Integer, Long> expected, DefaultMQPushConsumer... members) throws Exception {
        String group = members[0].getConsumerGroup();
        Check.eventually("offsets of " + group + " committed as " + expected, () -> {
            // Repeated, because a listener returns a moment before its client moves the position.
            for (DefaultMQPushConsumer member : members) {
                member.getDefaultMQPushConsumerImpl().persistConsumerOffset();
            }
            Map<Integer, Long> found = committed(group, topic);
            return found.equals(expected) ? null : found.toString();
        });
    }

    @Override
    public void close() {
        while (!endings.isEmpty()) {
            endings.pop().run();
        }
    }

    void shutdown() {
        reader.shutdown();
        producer.shutdown();
        admin.shutdown();
    }

    private List<MessageQueue> sortedQueues(String topic) throws Exception {
        List<MessageQueue> queues = new ArrayList<>(reader.fetchSubscribeMessageQueues(topic));
        queues.sort(Comparator.comparingInt(MessageQueue::getQueueId));
        return queues;
    }
}

package cometmq.interop;

import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/**
 * Where a group that was never there before begins to read.
 *
 * <p>As long as the first message of a queue is in memory, a broker lets every new group begin with it, whatever the
 * group asks for. So these scenarios need a broker that takes nothing to be in memory
 * ({@code accessMessageInMemoryMaxRatio=0}).
 */
final class Beginnings {
    private static final int QUEUES = 2;
    private static final int EARLY = 20;
    private static final int LATE = 10;

    private Beginnings() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("from-first", Beginnings::fromFirst);
        all.put("from-last", Beginnings::fromLast);
        all.put("from-timestamp", Beginnings::fromTimestamp);
    }

    private static void fromFirst(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("first", QUEUES);
        Ledger ledger = new Ledger();
        send(cluster, ledger, topic, EARLY);
        Inbox inbox = new Inbox();
        start(cluster, topic, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, null, inbox);
        send(cluster, ledger, topic, LATE);
        ledger.requireExactly(Inbox.await(EARLY + LATE, inbox));
    }

    private static void fromLast(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("last", QUEUES);
        Ledger ledger = new Ledger();
        send(cluster, ledger, topic, EARLY);
        Inbox inbox = new Inbox();
        // The client has asked for the ends of the queues by the time it holds them.
        start(cluster, topic, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, null, inbox);
        send(cluster, ledger, topic, LATE);
        ledger.require(Inbox.await(LATE, inbox), late());
    }

    private static void fromTimestamp(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("timestamp", QUEUES);
        Ledger ledger = new Ledger();
        send(cluster, ledger, topic, EARLY);
        // The client's timestamps are whole seconds. A second in which nothing happens lies between the two halves,
        // because 4.9 servers take the nearest message, be it before or after.
        long moment = (System.currentTimeMillis() / 1_000 + 2) * 1_000;
        Check.eventually("a later second", () -> System.currentTimeMillis() >= moment ? null : "the same");
        send(cluster, ledger, topic, LATE);
        Inbox inbox = new Inbox();
        start(cluster, topic, ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, moment, inbox);
        ledger.require(Inbox.await(LATE, inbox), late());
    }

    private static void start(Cluster cluster, String topic, ConsumeFromWhere where, Long moment, Inbox inbox)
            throws Exception {
        DefaultMQPushConsumer consumer = cluster.newConsumer(topic + "-group", topic, "*", inbox);
        consumer.setConsumeFromWhere(where);
        if (moment != null) {
            consumer.setConsumeTimestamp(new SimpleDateFormat("yyyyMMddHHmmss").format(new Date(moment)));
        }
        cluster.start(consumer);
        Check.eventually("all queues", () -> {
            Set<Integer> owned = Cluster.ownedQueues(consumer, topic);
            return owned.size() == QUEUES ? null : owned.toString();
        });
    }

    private static void send(Cluster cluster, Ledger ledger, String topic, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            cluster.producer.send(ledger.write(topic, "b"), cluster.queue(topic, i % QUEUES));
        }
    }

    private static Set<Integer> late() {
        Set<Integer> numbers = new TreeSet<>();
        for (int i = EARLY; i < EARLY + LATE; i++) {
            numbers.add(i);
        }
        return numbers;
    }
}

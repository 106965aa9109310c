package cometmq.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A restart of the broker in the middle of the work, seen from two processes.
 *
 * <p>The first sends 300 messages (message n goes to queue n mod 4), consumes a part and ends. The driver restarts the
 * broker. The second, a new process with the same groups, must get exactly the rest. Message content follows from n,
 * so nothing but the names passes from one to the other.
 */
final class Restart {
    private static final int QUEUES = 4;
    private static final int FIRST_HALF = 200;
    private static final int ALL = 300;
    /** Messages of each queue that the orderly consumer takes before it stops in the middle. */
    private static final int TAKEN = 30;

    private Restart() {}

    static Map<String, Main.Scenario> before(PrintStream out) {
        Map<String, Main.Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("before-restart-concurrent", Restart::consumeFirstHalf);
        scenarios.put("before-restart-orderly", Restart::consumeAPartOfEachQueue);
        scenarios.put("during-restart", cluster -> rideThrough(cluster, out));
        return scenarios;
    }

    static Map<String, Main.Scenario> after() {
        Map<String, Main.Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("after-restart-store", Restart::storeIsWhole);
        scenarios.put("after-restart-concurrent", Restart::consumeSecondHalf);
        scenarios.put("after-restart-orderly", Restart::consumeTheRestOfEachQueue);
        return scenarios;
    }

    private static void consumeFirstHalf(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("restart", QUEUES);
        Ledger ledger = ledger(topic);
        send(cluster, topic, 0, FIRST_HALF);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = cluster.startConsumer(cluster.name("concurrent"), topic, "*", inbox);
        ledger.require(Inbox.await(FIRST_HALF, inbox), numbers(0, FIRST_HALF));
        // Stopping alone must leave the positions behind; nothing is committed by hand here.
        consumer.shutdown();
        send(cluster, topic, FIRST_HALF, ALL);
        requireCommitted(cluster, "concurrent", FIRST_HALF / QUEUES);
    }

    private static void consumeAPartOfEachQueue(Cluster cluster) throws Exception {
        String topic = cluster.name("restart");
        Ledger ledger = ledger(topic);
        Share share = new Share(TAKEN);
        DefaultMQPushConsumer consumer = cluster.startConsumer(cluster.name("orderly"), topic, "*", share);
        share.await(QUEUES, TAKEN);
        consumer.shutdown();
        ledger.require(share.all(), numbers(0, TAKEN * QUEUES));
        requireCommitted(cluster, "orderly", TAKEN);
    }

    /** A producer and a consumer that stay up find the broker again by themselves. */
    private static void rideThrough(Cluster cluster, PrintStream out) throws Exception {
        String topic = cluster.createTopic("ride", 2);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = cluster.newConsumer(cluster.name("ride"), topic, "*", inbox);
        // The defaults of 30 s would only make the test longer.
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.setPollNameServerInterval(1_000);
        cluster.start(consumer);
        DefaultMQProducer producer = cluster.newProducer("ride-producer");
        producer.setHeartbeatBrokerInterval(1_000);
        producer.setPollNameServerInterval(1_000);
        producer.start();
        cluster.atEnd(producer::shutdown);

        Ledger ledger = ledger(topic);
        for (int i = 0; i < 20; i++) {
            producer.send(ledger.write(topic, "r", i), cluster.queue(topic, i % 2));
        }
        ledger.require(Inbox.await(20, inbox), numbers(0, 20));
        cluster.commitNow(topic, Pushes.offsets(2, 10), consumer);

        out.println("waiting");
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();

        for (int i = 20; i < 40; i++) {
            int number = i;
            // A refused send was not stored here, because the connection or the route was not there yet.
            Check.eventually("send " + i + " accepted", () -> {
                SendResult receipt = producer.send(ledger.write(topic, "r", number), cluster.queue(topic, number % 2));
                Check.equal(number / 2L, receipt.getQueueOffset(), "offsets that go on where they were");
                return null;
            });
        }
        // When a broker drops a waiting pull instead of answering it, this client notices only after 31 seconds.
        Check.within(2 * Check.PATIENCE_MS, "messages after the restart", () ->
            inbox.size() >= 40 ? null : inbox.size() + " of 40");
        ledger.require(inbox.messages(), numbers(0, 40));
    }

    private static void storeIsWhole(Cluster cluster) throws Exception {
        String topic = cluster.name("restart");
        Ledger ledger = ledger(topic);
        requireCommitted(cluster, "concurrent", FIRST_HALF / QUEUES);
        requireCommitted(cluster, "orderly", TAKEN);
        Map<Integer, List<MessageExt>> stored = cluster.readTopic(topic, ALL);
        ledger.requireExactly(Cluster.flatten(stored));
        Check.equal(QUEUES, stored.size(), "queues of the topic");
        stored.forEach((queue, messages) -> Check.equal(inQueue(queue, 0, ALL), order(messages), "queue " + queue));

        MessageClientExt one = (MessageClientExt) stored.get(2).get(17);
        int number = Ledger.numberOf(one);
        for (String id : new String[] {one.getMsgId(), one.getOffsetMsgId()}) {
            Check.equal(number, ledger.requireUnaltered(cluster.admin.viewMessage(topic, id)), "message of id " + id);
        }
        List<MessageExt> byKey = cluster.producer.queryMessage(topic, Ledger.secondKey(number), 32,
            one.getStoreTimestamp() - 1_000, one.getStoreTimestamp() + 1_000).getMessageList();
        Check.equal(List.of(number), order(byKey), "by key");
    }

    private static void consumeSecondHalf(Cluster cluster) throws Exception {
        String topic = cluster.name("restart");
        Ledger ledger = ledger(topic);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = cluster.startConsumer(cluster.name("concurrent"), topic, "*", inbox);
        ledger.require(Inbox.await(ALL - FIRST_HALF, inbox), numbers(FIRST_HALF, ALL));
        cluster.commitNow(topic, Pushes.offsets(QUEUES, ALL / QUEUES), consumer);
        ledger.require(inbox.messages(), numbers(FIRST_HALF, ALL));
    }

    private static void consumeTheRestOfEachQueue(Cluster cluster) throws Exception {
        String topic = cluster.name("restart");
        Ledger ledger = ledger(topic);
        Share share = new Share(ALL);
        DefaultMQPushConsumer consumer = cluster.startConsumer(cluster.name("orderly"), topic, "*", share);
        share.await(QUEUES, ALL / QUEUES - TAKEN);
        cluster.commitNow(topic, Pushes.offsets(QUEUES, ALL / QUEUES), consumer);
        ledger.require(share.all(), numbers(TAKEN * QUEUES, ALL));
        share.byQueue.forEach((queue, messages) ->
            Check.equal(inQueue(queue, TAKEN * QUEUES, ALL), order(messages), "order of queue " + queue));
    }

    private static Ledger ledger(String topic) {
        Ledger ledger = new Ledger();
        for (int i = 0; i < ALL; i++) {
            ledger.write(topic, "r", i);
        }
        return ledger;
    }

    private static void send(Cluster cluster, String topic, int from, int to) throws Exception {
        Ledger ledger = new Ledger();
        for (int i = from; i < to; i++) {
            cluster.producer.send(ledger.write(topic, "r", i), cluster.queue(topic, i % QUEUES));
        }
    }

    private static void requireCommitted(Cluster cluster, String group, long offset) throws Exception {
        // A client that stops sends its positions one-way, so they may arrive a moment later.
        Check.eventually("offset " + offset + " in each queue for group " + group, () -> {
            Map<Integer, Long> found = cluster.committed(cluster.name(group), cluster.name("restart"));
            return found.equals(Pushes.offsets(QUEUES, offset)) ? null : found.toString();
        });
    }

    private static Set<Integer> numbers(int from, int to) {
        return IntStream.range(from, to).boxed().collect(Collectors.toCollection(TreeSet::new));
    }

    private static List<Integer> inQueue(int queue, int from, int to) {
        return IntStream.range(from, to).filter(n -> n % QUEUES == queue).boxed().collect(Collectors.toList());
    }

    private static List<Integer> order(List<MessageExt> messages) {
        return messages.stream().map(Ledger::numberOf).collect(Collectors.toList());
    }

    /** Takes so many messages of each queue, in order, and then lets the queue wait. */
    private static final class Share implements MessageListenerOrderly {
        final Map<Integer, List<MessageExt>> byQueue = new ConcurrentHashMap<>();
        private final int limit;

        Share(int limit) {
            this.limit = limit;
        }

        @Override
        public ConsumeOrderlyStatus consumeMessage(List<MessageExt> messages, ConsumeOrderlyContext context) {
            List<MessageExt> taken = byQueue.computeIfAbsent(
                context.getMessageQueue().getQueueId(), id -> new CopyOnWriteArrayList<>());
            if (taken.size() >= limit) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            taken.addAll(messages);
            return ConsumeOrderlyStatus.SUCCESS;
        }

        void await(int queues, int each) throws InterruptedException {
            Check.eventually(each + " messages of each of " + queues + " queues", () -> {
                Map<Integer, Integer> sizes = new TreeMap<>();
                byQueue.forEach((queue, messages) -> sizes.put(queue, messages.size()));
                boolean enough = sizes.size() == queues && sizes.values().stream().allMatch(size -> size >= each);
                return enough ? null : sizes.toString();
            });
        }

        List<MessageExt> all() {
            List<MessageExt> all = new ArrayList<>();
            byQueue.values().forEach(all::addAll);
            return all;
        }
    }
}

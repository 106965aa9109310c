package cometmq.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.common.protocol.body.UnlockBatchRequestBody;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;

/** Push consumption: shared queues, filters, order, broadcast. */
final class Pushes {
    /**
     * A client looks for a new distribution every 20 seconds by itself. What happens within this limit was caused by
     * the broker's notification.
     */
    private static final long NOTIFIED_MS = 10_000;

    private static final long CALL_MS = 10_000;

    private Pushes() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("push-two-consumers", Pushes::twoConsumers);
        all.put("push-tag-filter", Pushes::tagFilter);
        all.put("push-orderly", Pushes::orderly);
        all.put("push-broadcast", Pushes::broadcast);
        all.put("push-backlog", Pushes::backlog);
    }

    private static void twoConsumers(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("shared", 8);
        String group = cluster.name("shared-group");
        Inbox leftInbox = new Inbox();
        Inbox rightInbox = new Inbox();
        DefaultMQPushConsumer left = cluster.startConsumer(group, topic, "*", leftInbox);
        DefaultMQPushConsumer right = cluster.startConsumer(group, topic, "*", rightInbox);
        Check.within(NOTIFIED_MS, "half of the queues for each consumer", () -> {
            Set<Integer> ofLeft = Cluster.ownedQueues(left, topic);
            Set<Integer> ofRight = Cluster.ownedQueues(right, topic);
            Set<Integer> both = new TreeSet<>(ofLeft);
            both.addAll(ofRight);
            boolean shared = ofLeft.size() == 4 && ofRight.size() == 4 && both.size() == 8;
            return shared ? null : ofLeft + " and " + ofRight;
        });

        Ledger ledger = new Ledger();
        int count = 240;
        for (int i = 0; i < count; i++) {
            cluster.producer.send(ledger.write(topic, "Größe-" + i % 4), cluster.queue(topic, i % 8));
        }
        ledger.requireExactly(Inbox.await(count, leftInbox, rightInbox));
        requireOnlyFrom(Cluster.ownedQueues(left, topic), leftInbox);
        requireOnlyFrom(Cluster.ownedQueues(right, topic), rightInbox);
        Check.equal(count / 2, leftInbox.size(), "messages of the first consumer");

        // One leaves; the other is told and goes on where the first one stopped.
        cluster.commitNow(topic, offsets(8, count / 8), left, right);
        left.shutdown();
        Check.within(NOTIFIED_MS, "all queues for the consumer that stayed", () -> {
            Set<Integer> owned = Cluster.ownedQueues(right, topic);
            return owned.size() == 8 ? null : owned.toString();
        });
        int more = 40;
        for (int i = 0; i < more; i++) {
            cluster.producer.send(ledger.write(topic, "late"), cluster.queue(topic, i % 8));
        }
        ledger.requireExactly(Inbox.await(count + more, leftInbox, rightInbox));
        Check.equal(count / 2, leftInbox.size(), "messages of a consumer that left");
    }

    private static void tagFilter(Cluster cluster) throws Exception {
        // One queue and one thread: when the last message is in, none can come after it.
        String topic = cluster.createTopic("filtered", 1);
        // "AaAa" and "BBBB" have the same hash code, so a broker that filters by hash ships both and the client drops
        // one. "polygenelubricants" has the smallest hash code there is.
        String expression = "red || grün || AaAa || polygenelubricants || end";
        List<String> tags = new ArrayList<>(
            List.of("red", "blue", "grün", "AaAa", "BBBB", "polygenelubricants", "redder", "RED"));
        tags.add(null);
        Set<String> wanted = Set.of("red", "grün", "AaAa", "polygenelubricants", "end");

        Inbox early = new Inbox();
        cluster.start(singleThreaded(cluster, "filter-early", topic, expression, early));
        Ledger ledger = new Ledger();
        Set<Integer> expected = new TreeSet<>();
        for (int i = 0; i < 90; i++) {
            String tag = i == 89 ? "end" : tags.get(i % tags.size());
            cluster.producer.send(ledger.write(topic, tag));
            if (tag != null && wanted.contains(tag)) {
                expected.add(i);
            }
        }
        // The first consumer waited in a long poll, the second finds everything stored.
        Inbox late = new Inbox();
        cluster.start(singleThreaded(cluster, "filter-late", topic, expression, late));
        ledger.require(Inbox.await(expected.size(), early), expected);
        ledger.require(Inbox.await(expected.size(), late), expected);
    }

    private static DefaultMQPushConsumer singleThreaded(
            Cluster cluster, String group, String topic, String expression, Inbox inbox) throws Exception {
        DefaultMQPushConsumer consumer = cluster.newConsumer(cluster.name(group), topic, expression, inbox);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        return consumer;
    }

    private static void orderly(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("orderly", 4);
        String group = cluster.name("orderly-group");
        Sequence sequence = new Sequence();
        DefaultMQPushConsumer left = cluster.startConsumer(group, topic, "*", sequence);
        DefaultMQPushConsumer right = cluster.startConsumer(group, topic, "*", sequence);
        Check.eventually("two locked queues for each consumer", () -> {
            // A lock that the other has not given up yet is asked for again only after 20 seconds; ask now.
            left.getDefaultMQPushConsumerImpl().doRebalance();
            right.getDefaultMQPushConsumerImpl().doRebalance();
            Set<Integer> ofLeft = Cluster.ownedQueues(left, topic);
            Set<Integer> ofRight = Cluster.ownedQueues(right, topic);
            return ofLeft.size() == 2 && ofRight.size() == 2 ? null : ofLeft + " and " + ofRight;
        });

        Ledger ledger = new Ledger();
        int keys = 10;
        int rounds = 12;
        for (int i = 0; i < keys * rounds; i++) {
            String key = "account-" + i % keys;
            cluster.producer.send(ledger.write(topic, key), new SelectMessageQueueByHash(), key);
        }
        Check.eventually("every message accepted", () ->
            sequence.accepted.size() >= keys * rounds ? null : sequence.accepted.size() + " of them");
        Check.that(sequence.faults.isEmpty(), "strict order, but " + sequence.faults);
        Map<String, List<Integer>> byKey = new HashMap<>();
        for (MessageExt message : sequence.accepted) {
            byKey.computeIfAbsent(message.getTags(), key -> new ArrayList<>()).add(Ledger.numberOf(message));
        }
        for (int k = 0; k < keys; k++) {
            List<Integer> numbers = new ArrayList<>();
            for (int r = 0; r < rounds; r++) {
                numbers.add(k + r * keys);
            }
            Check.equal(numbers, byKey.get("account-" + k), "order of account-" + k);
        }

        requireLocked(cluster, left, topic, Cluster.ownedQueues(left, topic));
        requireLocked(cluster, left, topic, Cluster.ownedQueues(right, topic));
        // A timer of the 5.x client may renew locks that its shutdown has just given back, so they are given back again.
        Set<MessageQueue> all = Set.of(
            cluster.queue(topic, 0), cluster.queue(topic, 1), cluster.queue(topic, 2), cluster.queue(topic, 3));
        String leftId = left.buildMQClientId();
        left.shutdown();
        unlockAs(cluster, leftId, group, all);
        // A consumer that ends while it takes a queue over may leave the lock behind.
        Check.within(NOTIFIED_MS, "all queues locked by the consumer that stayed", () -> {
            Set<Integer> owned = Cluster.ownedQueues(right, topic);
            return owned.size() == 4 ? null : owned.toString();
        });
        String rightId = right.buildMQClientId();
        right.shutdown();
        unlockAs(cluster, rightId, group, all);
        MessageQueue queue = cluster.queue(topic, 0);
        Check.equal(Set.of(queue), lockAs(cluster, "stranger", group, Set.of(queue)), "locks free after shutdown");
        Check.equal(Set.of(), lockAs(cluster, "other", group, Set.of(queue)), "locks of a second stranger");
        unlockAs(cluster, "stranger", group, Set.of(queue));
        Check.equal(Set.of(queue), lockAs(cluster, "other", group, Set.of(queue)), "locks after they were given back");
    }

    /** A queue that a consumer holds can be locked again by itself and by nobody else. */
    private static void requireLocked(
            Cluster cluster, DefaultMQPushConsumer member, String topic, Set<Integer> ids) throws Exception {
        Set<MessageQueue> queues = ids.stream().map(id -> cluster.queue(topic, id)).collect(Collectors.toSet());
        String group = member.getConsumerGroup();
        Check.equal(Set.of(), lockAs(cluster, "stranger", group, queues), "locks that a stranger got");
        boolean own = Cluster.ownedQueues(member, topic).equals(ids);
        Check.equal(own ? queues : Set.of(), lockAs(cluster, member.buildMQClientId(), group, queues), "locks renewed");
    }

    private static Set<MessageQueue> lockAs(Cluster cluster, String clientId, String group, Set<MessageQueue> queues)
            throws Exception {
        LockBatchRequestBody request = new LockBatchRequestBody();
        request.setClientId(clientId);
        request.setConsumerGroup(group);
        request.setMqSet(queues);
        return api(cluster).lockBatchMQ(cluster.brokerAddress, request, CALL_MS);
    }

    private static void unlockAs(Cluster cluster, String clientId, String group, Set<MessageQueue> queues)
            throws Exception {
        UnlockBatchRequestBody request = new UnlockBatchRequestBody();
        request.setClientId(clientId);
        request.setConsumerGroup(group);
        request.setMqSet(queues);
        api(cluster).unlockBatchMQ(cluster.brokerAddress, request, CALL_MS, false);
    }

    private static MQClientAPIImpl api(Cluster cluster) {
        return cluster.producer.getDefaultMQProducerImpl().getmQClientFactory().getMQClientAPIImpl();
    }

    /** Accepts in order, but asks for every twentieth message a second time first. */
    private static final class Sequence implements MessageListenerOrderly {
        final ConcurrentLinkedQueue<MessageExt> accepted = new ConcurrentLinkedQueue<>();
        final ConcurrentLinkedQueue<String> faults = new ConcurrentLinkedQueue<>();
        private final Map<Integer, AtomicInteger> busy = new ConcurrentHashMap<>();
        private final Set<Integer> postponed = ConcurrentHashMap.newKeySet();

        @Override
        public ConsumeOrderlyStatus consumeMessage(List<MessageExt> messages, ConsumeOrderlyContext context) {
            int queue = context.getMessageQueue().getQueueId();
            AtomicInteger inside = busy.computeIfAbsent(queue, id -> new AtomicInteger());
            if (inside.incrementAndGet() != 1) {
                faults.add("two threads in queue " + queue);
            }
            try {
                int number = Ledger.numberOf(messages.get(0));
                if (number % 20 == 7 && postponed.add(number)) {
                    context.setSuspendCurrentQueueTimeMillis(20);
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                accepted.addAll(messages);
                return ConsumeOrderlyStatus.SUCCESS;
            } finally {
                inside.decrementAndGet();
            }
        }
    }

    private static void broadcast(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("broadcast", 3);
        Inbox[] inboxes = {new Inbox(), new Inbox()};
        for (int i = 0; i < inboxes.length; i++) {
            DefaultMQPushConsumer consumer =
                cluster.newConsumer(cluster.name("broadcast-group"), topic, "*", inboxes[i]);
            consumer.setMessageModel(MessageModel.BROADCASTING);
            // A broadcasting client keeps the instance name it is given, and two of one name cannot share a process.
            consumer.setInstanceName(cluster.name("listener-" + i));
            cluster.start(consumer);
        }
        Ledger ledger = new Ledger();
        for (int i = 0; i < 60; i++) {
            cluster.producer.send(ledger.write(topic, "all"));
        }
        for (Inbox inbox : inboxes) {
            ledger.requireExactly(Inbox.await(60, inbox));
        }
    }

    /** More than fits into one pull, in batches to the listener, and the offsets that the broker holds at the end. */
    private static void backlog(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("backlog", 2);
        String group = cluster.name("backlog-group");
        Ledger ledger = new Ledger();
        int batches = 20;
        int size = 50;
        for (int b = 0; b < batches; b++) {
            List<Message> batch = new ArrayList<>();
            for (int i = 0; i < size; i++) {
                batch.add(ledger.write(topic, "stock"));
            }
            cluster.producer.send(batch, cluster.queue(topic, b % 2));
        }
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = cluster.newConsumer(group, topic, "*", inbox);
        consumer.setConsumeMessageBatchMaxSize(16);
        cluster.start(consumer);
        ledger.requireExactly(Inbox.await(batches * size, inbox));
        cluster.commitNow(topic, offsets(2, batches * size / 2), consumer);
        Check.equal(0L, cluster.admin.examineConsumeStats(group, topic).computeTotalDiff(), "lag");
    }

    static Map<Integer, Long> offsets(int queues, long offset) {
        Map<Integer, Long> offsets = new TreeMap<>();
        for (int id = 0; id < queues; id++) {
            offsets.put(id, offset);
        }
        return offsets;
    }

    private static void requireOnlyFrom(Set<Integer> queues, Inbox inbox) {
        for (MessageExt message : inbox.messages()) {
            Check.that(queues.contains(message.getQueueId()), "messages of queues " + queues + " only, got " + message);
        }
    }
}

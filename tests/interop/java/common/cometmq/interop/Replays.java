package cometmq.interop;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.admin.ConsumeStats;
import org.apache.rocketmq.common.admin.OffsetWrapper;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.body.Connection;
import org.apache.rocketmq.common.protocol.body.ConsumerConnection;
import org.apache.rocketmq.common.protocol.body.QueueTimeSpan;

/** Groups whose positions an operator moves, copies and reads, while their consumers run and while none does. */
final class Replays {
    /** A consumer of Java before 5.x stands still for ten seconds when it is told of a reset. */
    private static final long PATIENCE_MS = 60_000;

    /** Between two halves of a topic: 4.9 takes the message nearest to a time, so the other one must be far. */
    private static final long PAUSE_MS = 500;

    private static final long DAY_MS = 24 * 3_600_000L;
    private static final int QUEUES = 2;
    private static final int HALF = 10;

    private Replays() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("reset-back-while-running", Replays::backWhileRunning);
        all.put("reset-before-the-first", Replays::beforeTheFirst);
        all.put("reset-after-the-last", Replays::afterTheLast);
        all.put("reset-skip-backlog", Replays::skipBacklog);
        all.put("reset-while-offline", Replays::whileOffline);
        all.put("reset-refused", Replays::refused);
        all.put("clone-offsets", Replays::cloneOffsets);
        all.put("consume-time-span", Replays::timeSpan);
        all.put("consume-stats", Replays::consumeStats);
        all.put("subscription-mismatch", Replays::mismatch);
    }

    private static void backWhileRunning(Cluster cluster) throws Exception {
        History history = new History(cluster, "back");
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = history.start(inbox);
        history.ledger.requireExactly(Inbox.await(2 * HALF, inbox));
        cluster.commitNow(history.topic, offsets(HALF), consumer);

        Check.equal(offsets(HALF / 2), byQueue(history.reset(history.middleMs)), "where queues go on");
        // What came again is the second half, once, and nothing else.
        await(3 * HALF, inbox);
        List<MessageExt> again = inbox.messages().subList(2 * HALF, inbox.size());
        history.ledger.require(again, history.second());
        // The group goes on as before.
        history.send(1);
        await(3 * HALF + 1, inbox);
        Check.equal(3 * HALF + 1, inbox.size(), "messages in all");
    }

    private static void beforeTheFirst(Cluster cluster) throws Exception {
        History history = new History(cluster, "first");
        Inbox left = new Inbox();
        Inbox right = new Inbox();
        DefaultMQPushConsumer one = history.start(left);
        DefaultMQPushConsumer other = history.consumer(right);
        other.setInstanceName("other");
        cluster.start(other);
        Check.eventually("one queue each", () -> {
            Set<Integer> owned = new HashSet<>(Cluster.ownedQueues(one, history.topic));
            owned.retainAll(Cluster.ownedQueues(other, history.topic));
            int count = Cluster.ownedQueues(other, history.topic).size();
            return count == 1 && owned.isEmpty() ? null : count + " queues, shared " + owned;
        });
        Check.eventually("every message", () -> {
            Set<Integer> seen = Inbox.numbers(left.messages());
            seen.addAll(Inbox.numbers(right.messages()));
            return seen.size() == 2 * HALF ? null : seen.toString();
        });
        cluster.commitNow(history.topic, offsets(HALF), one, other);
        int leftBefore = left.size();
        int rightBefore = right.size();

        Check.equal(offsets(0), byQueue(history.reset(history.firstMs - DAY_MS)), "where queues go on");
        // Both are told: each gets all of its own queue again.
        await(leftBefore + HALF, left);
        await(rightBefore + HALF, right);
        List<MessageExt> again = left.messages().subList(leftBefore, left.size());
        again.addAll(right.messages().subList(rightBefore, right.size()));
        history.ledger.requireExactly(again);
    }

    private static void afterTheLast(Cluster cluster) throws Exception {
        History history = new History(cluster, "last");
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = history.start(inbox);
        history.ledger.requireExactly(Inbox.await(2 * HALF, inbox));
        cluster.commitNow(history.topic, offsets(HALF), consumer);
        // 4.9 answers with the last message of a queue, ours and 5.x with its end.
        for (long offset : history.reset(System.currentTimeMillis() + DAY_MS).values()) {
            Check.that(offset == HALF || offset == HALF - 1, "the end of a queue, got " + offset);
        }
    }

    private static void skipBacklog(Cluster cluster) throws Exception {
        History history = new History(cluster, "skip");
        Jam jam = new Jam();
        DefaultMQPushConsumer consumer = history.consumer(jam);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        cluster.start(consumer);
        Check.eventually("a message in work", () -> jam.inbox.size() == 1 ? null : jam.inbox.size() + " of them");
        cluster.commitNow(history.topic, offsets(0), consumer);
        List<ProcessQueue> pulled = Cluster.pulledQueues(consumer, history.topic);
        Check.equal(QUEUES, pulled.size(), "queues that were pulled");

        Check.equal(offsets(HALF), byQueue(history.reset(-1)), "where queues go on");
        // The client forgets what it has pulled; one before 5.x then waits for ten seconds.
        Check.within(PATIENCE_MS, "the client forgets what it has pulled", () ->
            pulled.stream().allMatch(ProcessQueue::isDropped) ? null : pulled.toString());
        Check.within(PATIENCE_MS, "the end committed", () -> {
            Map<Integer, Long> found = cluster.committed(history.group, history.topic);
            return found.equals(offsets(HALF)) ? null : found.toString();
        });
        jam.open();
        history.send(QUEUES);
        await(1 + QUEUES, jam.inbox);
        Set<Integer> rest = Inbox.numbers(jam.inbox.messages().subList(1, jam.inbox.size()));
        Check.equal(Set.of(2 * HALF, 2 * HALF + 1), rest, "what came after the jump");
    }

    private static void whileOffline(Cluster cluster) throws Exception {
        History history = new History(cluster, "offline");
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = history.start(inbox);
        Inbox.await(2 * HALF, inbox);
        cluster.commitNow(history.topic, offsets(HALF), consumer);
        consumer.shutdown();
        if (resetsByItself(cluster)) {
            Check.equal(offsets(HALF / 2), byQueue(history.reset(history.middleMs)), "where queues go on");
        } else {
            Check.eventually("the answer that nobody is online", () -> {
                try {
                    return "offsets " + history.reset(history.middleMs);
                } catch (MQClientException e) {
                    return e.getResponseCode() == 206 ? null : e.toString();
                }
            });
            // What mqadmin does then: it moves the positions itself.
            cluster.admin.resetOffsetByTimestampOld(history.group, history.topic, history.middleMs, true);
        }
        Check.equal(offsets(HALF / 2), cluster.committed(history.group, history.topic), "positions");
        Inbox second = new Inbox();
        history.start(second);
        await(HALF, second);
        history.ledger.require(second.messages(), history.second());
    }

    private static void refused(Cluster cluster) throws Exception {
        History history = new History(cluster, "refused");
        MQClientException unknown = Check.refused(MQClientException.class, "an unknown topic",
            () -> cluster.admin.resetOffsetByTimestamp(cluster.name("nowhere"), history.group, 0, true));
        Check.equal(17, unknown.getResponseCode(), "code for an unknown topic");
        MQClientException nobody = Check.refused(MQClientException.class, "an unknown group", () -> history.reset(0));
        Check.equal(resetsByItself(cluster) ? 26 : 1, nobody.getResponseCode(), "code for an unknown group");
        Check.that(nobody.getErrorMessage().contains("not exist"), "a reason, got " + nobody.getErrorMessage());
    }

    private static void cloneOffsets(Cluster cluster) throws Exception {
        History history = new History(cluster, "cloned");
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = history.start(inbox);
        Inbox.await(2 * HALF, inbox);
        cluster.commitNow(history.topic, offsets(HALF), consumer);
        String clone = cluster.name("clone-group");
        cluster.admin.cloneGroupOffset(history.group, clone, history.topic, false);
        history.send(QUEUES);
        Inbox second = new Inbox();
        cluster.startConsumer(clone, history.topic, "*", second);
        await(QUEUES, second);
        Check.equal(Set.of(2 * HALF, 2 * HALF + 1), Inbox.numbers(second.messages()), "what the clone consumes");
        Check.equal(QUEUES, second.size(), "how much the clone consumes");
    }

    private static void timeSpan(Cluster cluster) throws Exception {
        History history = new History(cluster, "span");
        history.consumeAllAndStop();
        cluster.producer.send(history.ledger.write(history.topic, "r"), cluster.queue(history.topic, 1));
        Map<Integer, List<MessageExt>> stored = cluster.readTopic(history.topic, 2 * HALF + 1);
        List<QueueTimeSpan> spans = cluster.admin.queryConsumeTimeSpan(history.topic, history.group);
        Check.equal(QUEUES, spans.size(), "queues with a span");
        for (QueueTimeSpan span : spans) {
            List<MessageExt> queue = stored.get(span.getMessageQueue().getQueueId());
            Check.equal(queue.get(0).getStoreTimestamp(), span.getMinTimeStamp(), "first of " + span);
            Check.equal(queue.get(queue.size() - 1).getStoreTimestamp(), span.getMaxTimeStamp(), "last of " + span);
            Check.equal(queue.get(HALF - 1).getStoreTimestamp(), span.getConsumeTimeStamp(), "consumed of " + span);
            boolean isBehind = queue.size() > HALF;
            Check.equal(isBehind, span.getDelayTime() > 0, "a delay of " + span);
        }
        MQClientException unknown = Check.refused(MQClientException.class, "an unknown topic",
            () -> cluster.admin.queryConsumeTimeSpan(cluster.name("nowhere"), history.group));
        Check.equal(17, unknown.getResponseCode(), "code for an unknown topic");
    }

    private static void consumeStats(Cluster cluster) throws Exception {
        History history = new History(cluster, "stats");
        history.consumeAllAndStop();
        history.send(2 * QUEUES);
        Map<Integer, List<MessageExt>> stored = cluster.readTopic(history.topic, 2 * HALF + 2 * QUEUES);
        ConsumeStats stats = cluster.admin.examineConsumeStats(history.group, history.topic);
        Check.equal(2L * QUEUES, stats.computeTotalDiff(), "messages behind");
        for (Map.Entry<MessageQueue, OffsetWrapper> entry : stats.getOffsetTable().entrySet()) {
            List<MessageExt> queue = stored.get(entry.getKey().getQueueId());
            Check.equal((long) queue.size(), entry.getValue().getBrokerOffset(), "end of " + entry.getKey());
            Check.equal((long) HALF, entry.getValue().getConsumerOffset(), "position in " + entry.getKey());
            Check.equal(queue.get(HALF - 1).getStoreTimestamp(), entry.getValue().getLastTimestamp(),
                "time of the last consumed of " + entry.getKey());
        }
    }

    /** Members that want different things: RocketMQ keeps the newest wish for all. The connections stay readable. */
    private static void mismatch(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("mismatch", QUEUES);
        String group = cluster.name("mismatch-group");
        DefaultMQPushConsumer red = cluster.newConsumer(group, topic, "red", new Inbox());
        DefaultMQPushConsumer blue = cluster.newConsumer(group, topic, "blue || green", new Inbox());
        blue.setInstanceName("blue");
        cluster.start(red);
        cluster.start(blue);
        Set<String> ids = Set.of(red.buildMQClientId(), blue.buildMQClientId());
        Check.eventually("two members", () -> {
            Set<String> found = cluster.admin.examineConsumerConnectionInfo(group).getConnectionSet().stream()
                .map(Connection::getClientId).collect(Collectors.toSet());
            return found.equals(ids) ? null : found.toString();
        });
        ConsumerConnection connection = cluster.admin.examineConsumerConnectionInfo(group);
        String wish = connection.getSubscriptionTable().get(topic).getSubString();
        Check.that(Set.of("red", "blue || green").contains(wish), "one of the two wishes, got " + wish);
    }

    private static void await(int count, Inbox inbox) throws InterruptedException {
        Check.within(PATIENCE_MS, count + " messages consumed", () -> {
            int size = inbox.size();
            return size >= count ? null : size + " of them";
        });
    }

    /** Whether the broker resets positions as 5.x does: without a client that is online. */
    private static boolean resetsByItself(Cluster cluster) throws Exception {
        Properties config = cluster.admin.getBrokerConfig(cluster.brokerAddress);
        return "true".equals(config.getProperty("useServerSideResetOffset"));
    }

    private static Map<Integer, Long> offsets(long each) {
        Map<Integer, Long> offsets = new TreeMap<>();
        for (int queue = 0; queue < QUEUES; queue++) {
            offsets.put(queue, each);
        }
        return offsets;
    }

    private static Map<Integer, Long> byQueue(Map<MessageQueue, Long> offsets) {
        Map<Integer, Long> found = new TreeMap<>();
        offsets.forEach((queue, offset) -> found.put(queue.getQueueId(), offset));
        return found;
    }

    /** A topic with messages from before and after a moment, as many in each queue. */
    private static final class History {
        final String topic;
        final String group;
        final Ledger ledger = new Ledger();
        final long firstMs = System.currentTimeMillis();
        final long middleMs;

        private final Cluster cluster;
        private int next;

        History(Cluster cluster, String stem) throws Exception {
            this.cluster = cluster;
            topic = cluster.createTopic("replay-" + stem, QUEUES);
            group = cluster.name("replay-" + stem + "-group");
            send(HALF);
            Thread.sleep(PAUSE_MS);
            middleMs = System.currentTimeMillis();
            send(HALF);
            cluster.readTopic(topic, 2 * HALF);
        }

        void send(int count) throws Exception {
            for (int i = 0; i < count; i++) {
                cluster.producer.send(ledger.write(topic, "r"), cluster.queue(topic, next++ % QUEUES));
            }
        }

        Set<Integer> second() {
            return IntStream.range(HALF, 2 * HALF).boxed().collect(Collectors.toSet());
        }

        DefaultMQPushConsumer consumer(MessageListenerConcurrently listener) throws Exception {
            DefaultMQPushConsumer made = cluster.newConsumer(group, topic, "*", listener);
            made.setPersistConsumerOffsetInterval(500);
            return made;
        }

        DefaultMQPushConsumer start(MessageListenerConcurrently listener) throws Exception {
            DefaultMQPushConsumer made = consumer(listener);
            cluster.start(made);
            return made;
        }

        void consumeAllAndStop() throws Exception {
            Inbox inbox = new Inbox();
            DefaultMQPushConsumer consumer = start(inbox);
            Inbox.await(2 * HALF, inbox);
            cluster.commitNow(topic, offsets(HALF), consumer);
            consumer.shutdown();
        }

        Map<MessageQueue, Long> reset(long timeMs) throws Exception {
            return cluster.admin.resetOffsetByTimestamp(topic, group, timeMs, true);
        }
    }

    /** Holds its first message until it is opened. */
    private static final class Jam implements MessageListenerConcurrently {
        final Inbox inbox = new Inbox();
        private final CountDownLatch latch = new CountDownLatch(1);

        @Override
        public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
            ConsumeConcurrentlyStatus status = inbox.consumeMessage(messages, context);
            try {
                latch.await(2 * PATIENCE_MS, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return status;
        }

        void open() {
            latch.countDown();
        }
    }
}

package cometmq.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullCallback;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that ask by themselves: plain pull with every status, long polling, lite pull. */
final class Pulls {
    /** The broker looks through waiting pulls every 5 seconds anyway; sooner means that the append woke the pull. */
    private static final long WOKEN_MS = 4_000;

    private Pulls() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("pull-consumer", Pulls::pull);
        all.put("pull-long-polling", Pulls::longPolling);
        all.put("lite-pull-consumer", Pulls::litePull);
    }

    private static void pull(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("pull", 2);
        DefaultMQPullConsumer consumer = start(cluster, "pull-group");
        MessageQueue full = cluster.queue(topic, 0);
        MessageQueue empty = cluster.queue(topic, 1);
        Check.equal(Set.of(full, empty), consumer.fetchSubscribeMessageQueues(topic), "queues of the topic");

        Ledger ledger = new Ledger();
        for (int i = 0; i < 40; i++) {
            cluster.producer.send(ledger.write(topic, i < 20 ? "first" : "second"), full);
        }
        ledger.requireExactly(Cluster.flatten(cluster.readTopic(topic, 40)));

        PullResult some = consumer.pull(full, "*", 5, 10);
        Check.equal(PullStatus.FOUND, some.getPullStatus(), "status");
        Check.equal(10, some.getMsgFoundList().size(), "messages, of which 10 were asked for");
        Check.equal(15L, some.getNextBeginOffset(), "next offset");
        Check.equal(0L, some.getMinOffset(), "start of the queue");
        Check.equal(40L, some.getMaxOffset(), "end of the queue");
        some.getMsgFoundList().forEach(ledger::requireUnaltered);

        requirePull(consumer.pull(full, "second", 0, 32), PullStatus.FOUND, 40, "a tag of the second half");
        Check.equal(20, consumer.pull(full, "second", 0, 32).getMsgFoundList().size(), "messages of that tag");
        requirePull(consumer.pull(full, "nobody", 0, 32), PullStatus.NO_MATCHED_MSG, 40, "a tag that nobody has");
        requirePull(consumer.pull(full, "*", 40, 32), PullStatus.NO_NEW_MSG, 40, "at the end");
        requirePull(consumer.pull(full, "*", 45, 32), PullStatus.OFFSET_ILLEGAL, 40, "beyond the end");
        requirePull(consumer.pull(empty, "*", 0, 32), PullStatus.NO_NEW_MSG, 0, "an empty queue");
        requirePull(consumer.pull(empty, "*", 3, 32), PullStatus.OFFSET_ILLEGAL, 0, "beyond the end of an empty queue");

        consumer.updateConsumeOffset(full, 17);
        consumer.getOffsetStore().persist(full);
        Check.eventually("the position at the broker", () -> {
            long offset = consumer.fetchConsumeOffset(full, true);
            return offset == 17 ? null : "offset " + offset;
        });
    }

    private static void requirePull(PullResult result, PullStatus status, long next, String what) {
        Check.equal(status, result.getPullStatus(), "status, " + what);
        Check.equal(next, result.getNextBeginOffset(), "next offset, " + what);
    }

    private static void longPolling(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("long-polling", 1);
        MessageQueue queue = cluster.queue(topic, 0);
        DefaultMQPullConsumer consumer = start(cluster, "long-polling-group");
        Ledger ledger = new Ledger();
        for (int round = 0; round < 3; round++) {
            CompletableFuture<PullResult> answer = pullWanted(consumer, queue, round * 2L);
            // Nothing tells when the broker has parked a pull; this is long enough for it to have arrived.
            Thread.sleep(200);
            Check.that(!answer.isDone(), "a pull that waits, but it was answered: " + answer);
            cluster.producer.send(ledger.write(topic, "other"), queue);
            Message wanted = ledger.write(topic, "wanted");
            cluster.producer.send(wanted, queue);
            PullResult result = answer.get(WOKEN_MS, TimeUnit.MILLISECONDS);
            if (result.getPullStatus() == PullStatus.NO_MATCHED_MSG) {
                // The broker's own scan came between the two messages.
                result = pullWanted(consumer, queue, result.getNextBeginOffset()).get(WOKEN_MS, TimeUnit.MILLISECONDS);
            }
            requirePull(result, PullStatus.FOUND, round * 2L + 2, "woken");
            Check.equal(1, result.getMsgFoundList().size(), "messages that woke the pull");
            int number = ledger.requireUnaltered(result.getMsgFoundList().get(0));
            Check.equal(Ledger.numberOf(wanted), number, "the message that woke the pull");
        }
    }

    private static CompletableFuture<PullResult> pullWanted(
            DefaultMQPullConsumer consumer, MessageQueue queue, long offset) throws Exception {
        CompletableFuture<PullResult> answer = new CompletableFuture<>();
        consumer.pullBlockIfNotFound(queue, "wanted", offset, 32, new PullCallback() {
            @Override
            public void onSuccess(PullResult result) {
                answer.complete(result);
            }

            @Override
            public void onException(Throwable cause) {
                answer.completeExceptionally(cause);
            }
        });
        return answer;
    }

    private static void litePull(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("lite", 4);
        Ledger before = new Ledger();
        for (int i = 0; i < 80; i++) {
            cluster.producer.send(before.write(topic, "lite"), cluster.queue(topic, i % 4));
        }
        DefaultLitePullConsumer first = startLite(cluster, topic);
        before.requireExactly(poll(first, 80));
        first.commitSync();
        first.shutdown();
        Check.eventually("offsets left behind", () -> {
            Map<Integer, Long> found = cluster.committed(cluster.name("lite-group"), topic);
            return found.equals(Pushes.offsets(4, 20)) ? null : found.toString();
        });

        Ledger after = new Ledger();
        for (int i = 0; i < 40; i++) {
            cluster.producer.send(after.write(topic, "lite"), cluster.queue(topic, i % 4));
        }
        DefaultLitePullConsumer second = startLite(cluster, topic);
        after.requireExactly(poll(second, 40));

        // Back to the start of one queue: all of it comes again.
        second.seek(cluster.queue(topic, 3), 0);
        List<MessageExt> again = poll(second, 30);
        Check.equal(30, again.size(), "messages of the queue after seek");
        again.forEach(message -> Check.equal(3, message.getQueueId(), "queue after seek"));
    }

    private static DefaultMQPullConsumer start(Cluster cluster, String group) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(cluster.name(group));
        consumer.setNamesrvAddr(cluster.nameServer);
        consumer.start();
        cluster.atEnd(consumer::shutdown);
        return consumer;
    }

    private static DefaultLitePullConsumer startLite(Cluster cluster, String topic) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(cluster.name("lite-group"));
        consumer.setNamesrvAddr(cluster.nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        consumer.setHeartbeatBrokerInterval(Cluster.HEARTBEAT_MS);
        consumer.subscribe(topic, "*");
        consumer.start();
        cluster.atEnd(consumer::shutdown);
        return consumer;
    }

    private static List<MessageExt> poll(DefaultLitePullConsumer consumer, int count) throws InterruptedException {
        List<MessageExt> polled = new ArrayList<>();
        Check.eventually(count + " messages polled", () -> {
            polled.addAll(consumer.poll(100));
            return polled.size() >= count ? null : polled.size() + " of them";
        });
        return polled;
    }
}

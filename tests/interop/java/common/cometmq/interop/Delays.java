package cometmq.interop;

import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Delay levels. The broker's first two are 1 and 2 seconds, and none is longer: {@code messageDelayLevel=1s 2s ..}. */
final class Delays {
    static final int LEVELS = 6;

    /** A loaded machine is no fault of the server; a message that comes too early always is. */
    private static final long LATE_MS_MAX = 10_000;

    private Delays() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("delay-levels", Delays::levels);
        all.put("delay-level-above-the-highest", Delays::aboveTheHighest);
    }

    private static void levels(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("later", 2);
        Inbox inbox = new Inbox();
        cluster.startConsumer(cluster.name("later-group"), topic, "*", inbox);
        Ledger ledger = new Ledger();
        int count = 60;
        for (int i = 0; i < count; i++) {
            Message message = ledger.write(topic, "level-" + i % 3);
            if (i % 3 > 0) {
                message.setDelayTimeLevel(i % 3);
            }
            SendResult result = cluster.producer.send(message, cluster.queue(topic, i % 2));
            Check.equal(SendStatus.SEND_OK, result.getSendStatus(), "status of " + i);
            Check.equal(i % 2, result.getMessageQueue().getQueueId(), "queue of " + i);
        }
        List<MessageExt> received = Inbox.await(count, inbox);
        ledger.requireExactly(received);
        for (MessageExt message : received) {
            int number = Ledger.numberOf(message);
            long delayMs = number % 3 * 1_000L;
            long tookMs = message.getStoreTimestamp() - message.getBornTimestamp();
            Check.equal(number % 2, message.getQueueId(), "queue of " + number);
            Check.that(tookMs >= delayMs, "message " + number + " not before " + delayMs + " ms, came after " + tookMs);
            Check.that(tookMs <= delayMs + LATE_MS_MAX,
                "message " + number + " soon after " + delayMs + " ms, came after " + tookMs);
        }
    }

    private static void aboveTheHighest(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("too-late", 1);
        Ledger ledger = new Ledger();
        Message message = ledger.write(topic, "late");
        message.setDelayTimeLevel(99);
        cluster.producer.send(message);
        List<MessageExt> stored = Cluster.flatten(cluster.readTopic(topic, 1));
        Check.equal(LEVELS, stored.get(0).getDelayTimeLevel(), "the level that counted");
        message.setDelayTimeLevel(LEVELS);
        ledger.require(stored, Set.of(0));
    }
}

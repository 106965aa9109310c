package cometmq.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Finding single messages: by id, by key and time, by position in time. */
final class Queries {
    private static final int ANSWER_MAX = 32;

    private Queries() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("view-by-id", Queries::viewById);
        all.put("query-by-key", Queries::byKey);
        all.put("search-by-time", Queries::byTime);
    }

    private static void viewById(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("view", 2);
        Ledger ledger = new Ledger();
        List<SendResult> receipts = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            receipts.add(cluster.producer.send(ledger.write(topic, "v")));
        }
        for (int i = 0; i < receipts.size(); i++) {
            SendResult receipt = receipts.get(i);
            MessageExt byPlace = cluster.producer.viewMessage(topic, receipt.getOffsetMsgId());
            Check.equal(i, ledger.requireUnaltered(byPlace), "message at " + receipt.getOffsetMsgId());
            // The client's own id is found through the index, which follows the log a moment later.
            Check.eventually("message of id " + receipt.getMsgId(), () -> {
                MessageExt byId = cluster.admin.viewMessage(topic, receipt.getMsgId());
                return byId == null ? "nothing" : null;
            });
            MessageExt byId = cluster.admin.viewMessage(topic, receipt.getMsgId());
            Check.equal(i, ledger.requireUnaltered(byId), "message of id " + receipt.getMsgId());
            Check.equal(byPlace.getCommitLogOffset(), byId.getCommitLogOffset(), "place of both");
        }
    }

    private static void byKey(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("keys", 4);
        Ledger ledger = new Ledger();
        long start = System.currentTimeMillis();
        for (int i = 0; i < 20; i++) {
            cluster.producer.send(ledger.write(topic, "k"));
        }
        List<MessageExt> stored = Cluster.flatten(cluster.readTopic(topic, 20));
        ledger.requireExactly(stored);
        // The index keeps whole seconds, rounded down, so a window must open a second early to be sure of its first
        // message.
        long begin = stored.stream().mapToLong(MessageExt::getStoreTimestamp).min().orElseThrow() - 1_000;
        long end = stored.stream().mapToLong(MessageExt::getStoreTimestamp).max().orElseThrow();
        Check.that(begin >= start - 2_000 && end <= System.currentTimeMillis() + 1_000, "store times of this moment");
        for (int i = 0; i < 20; i++) {
            requireOne(cluster, ledger, topic, Ledger.firstKey(i), begin, end, i);
            requireOne(cluster, ledger, topic, Ledger.secondKey(i), begin, end, i);
        }
        MQClientException nothing = Check.refused(MQClientException.class, "a key that nobody has",
            () -> cluster.producer.queryMessage(topic, "nobody", ANSWER_MAX, begin, end));
        Check.equal(208, nothing.getResponseCode(), "the client's code for no message");
        Check.refused(MQClientException.class, "a time in which nothing was stored",
            () -> cluster.producer.queryMessage(
                topic, Ledger.firstKey(0), ANSWER_MAX, begin - 7_200_000, begin - 3_600_000));

        // Several messages of one key, of which only as many come as were asked for.
        String crowd = cluster.createTopic("crowded-key", 2);
        Ledger same = new Ledger();
        long early = start - 1_000;
        for (int i = 0; i < 10; i++) {
            var message = same.write(crowd, "k");
            message.setKeys("crowd");
            cluster.producer.send(message);
        }
        long late = System.currentTimeMillis() + 60_000;
        Check.eventually("ten messages of one key", () -> {
            int found = cluster.producer.queryMessage(crowd, "crowd", ANSWER_MAX, early, late).getMessageList().size();
            return found == 10 ? null : found + " found";
        });
        same.requireExactly(cluster.producer.queryMessage(crowd, "crowd", ANSWER_MAX, early, late).getMessageList());
        QueryResult few = cluster.producer.queryMessage(crowd, "crowd", 4, early, late);
        Check.equal(4, few.getMessageList().size(), "messages, of which 4 were asked for");
    }

    private static void requireOne(
            Cluster cluster, Ledger ledger, String topic, String key, long begin, long end, int number)
            throws Exception {
        Check.eventually("one message of key " + key, () -> {
            QueryResult result = cluster.producer.queryMessage(topic, key, ANSWER_MAX, begin, end);
            int found = result.getMessageList().size();
            return found == 1 ? null : found + " found";
        });
        List<MessageExt> found = cluster.producer.queryMessage(topic, key, ANSWER_MAX, begin, end).getMessageList();
        Check.equal(number, ledger.requireUnaltered(found.get(0)), "number of the message of key " + key);
    }

    private static void byTime(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("times", 1);
        MessageQueue queue = cluster.queue(topic, 0);
        Ledger ledger = new Ledger();
        for (int i = 0; i < 15; i++) {
            cluster.producer.send(ledger.write(topic, "t"), queue);
            // Two messages in one millisecond would leave open which of them is meant.
            Thread.sleep(3);
        }
        List<MessageExt> stored = cluster.readTopic(topic, 15).get(0);
        for (MessageExt message : stored) {
            long found = cluster.admin.searchOffset(queue, message.getStoreTimestamp());
            Check.equal(message.getQueueOffset(), found, "offset at the time of message " + message.getQueueOffset());
        }
        long first = stored.get(0).getStoreTimestamp();
        Check.equal(0L, cluster.admin.searchOffset(queue, first - 3_600_000), "offset of an hour before");
        Check.equal(first, cluster.admin.earliestMsgStoreTime(queue), "time of the first message");
        Check.equal(0L, cluster.admin.minOffset(queue), "start of the queue");
        Check.equal(15L, cluster.admin.maxOffset(queue), "end of the queue");
    }
}

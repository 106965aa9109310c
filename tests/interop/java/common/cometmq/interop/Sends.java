package cometmq.interop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;

import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageId;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.common.RemotingHelper;

/** Every way of sending: what the reply promises is compared with what is stored. */
final class Sends {
    private static final int MANY = 100;

    private Sends() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("send-sync", Sends::sync);
        all.put("send-async", Sends::async);
        all.put("send-one-way", Sends::oneWay);
        all.put("send-batch", Sends::batch);
        all.put("send-compressed", Sends::compressed);
        all.put("send-vip-channel", Sends::vipChannel);
        all.put("send-refused", Sends::refused);
    }

    private static void sync(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("sync", 4);
        Ledger ledger = new Ledger();
        Map<Integer, SendResult> receipts = new HashMap<>();
        for (int i = 0; i < MANY; i++) {
            Message message = ledger.write(topic, "Tag-标签-" + i % 3);
            receipts.put(i, cluster.producer.send(message));
        }
        requireReceipts(cluster, topic, ledger, receipts);
        // One thread that sends in turn fills each queue in the order of its calls.
        for (List<MessageExt> queue : cluster.readTopic(topic, MANY).values()) {
            List<Integer> numbers = queue.stream().map(Ledger::numberOf).collect(Collectors.toList());
            Check.equal(numbers.stream().sorted().collect(Collectors.toList()), numbers, "order in a queue");
        }
    }

    private static void async(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("async", 4);
        Ledger ledger = new Ledger();
        Map<Integer, SendResult> receipts = new ConcurrentHashMap<>();
        ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
        for (int i = 0; i < MANY; i++) {
            int number = i;
            cluster.producer.send(ledger.write(topic, "a"), new SendCallback() {
                @Override
                public void onSuccess(SendResult receipt) {
                    receipts.put(number, receipt);
                }

                @Override
                public void onException(Throwable cause) {
                    failures.add(cause);
                }
            });
        }
        Check.eventually("a callback for each send", () ->
            receipts.size() + failures.size() == MANY ? null : receipts.size() + " receipts");
        Check.that(failures.isEmpty(), "no failed send, but " + failures);
        requireReceipts(cluster, topic, ledger, receipts);
    }

    private static void oneWay(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("one-way", 4);
        Ledger ledger = new Ledger();
        for (int i = 0; i < MANY; i++) {
            cluster.producer.sendOneway(ledger.write(topic, "o"));
        }
        ledger.requireExactly(Cluster.flatten(cluster.readTopic(topic, MANY)));
    }

    private static void batch(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("batch", 4);
        Ledger ledger = new Ledger();
        MessageQueue target = cluster.queue(topic, 2);
        cluster.producer.send(ledger.write(topic, "single"), target);
        int size = 25;
        List<Message> members = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            members.add(ledger.write(topic, "b" + i % 2));
        }
        SendResult receipt = cluster.producer.send(members, target);
        Check.equal(SendStatus.SEND_OK, receipt.getSendStatus(), "status of the batch");
        Check.equal(1L, receipt.getQueueOffset(), "offset of the first member");

        List<MessageExt> stored = cluster.readTopic(topic, 1 + size).get(2);
        ledger.requireExactly(stored);
        String[] ids = receipt.getOffsetMsgId().split(",");
        Check.equal(size, ids.length, "ids in the reply");
        for (int i = 0; i < size; i++) {
            MessageExt member = stored.get(1 + i);
            Check.equal(1 + i, Ledger.numberOf(member), "members in the order of the batch");
            MessageId id = MessageDecoder.decodeMessageId(ids[i]);
            Check.equal(member.getCommitLogOffset(), id.getOffset(), "physical offset of member " + i);
        }
        Check.equal(stored.stream().skip(1).map(MessageExt::getMsgId).collect(Collectors.joining(",")),
            receipt.getMsgId(), "ids that the client gave to the members");

        // A batch on its own way goes to one queue, chosen by the client, and may create its topic.
        String fresh = cluster.name("batch-born");
        Ledger second = new Ledger();
        List<Message> more = new ArrayList<>();
        for (String tag : new String[] {"x", "y", "z"}) {
            more.add(second.write(fresh, tag));
        }
        Check.equal(SendStatus.SEND_OK, cluster.producer.send(more).getSendStatus(), "status of a first batch");
        cluster.awaitRoute(fresh);
        second.requireExactly(Cluster.flatten(cluster.readTopic(fresh, 3)));
    }

    /** The client compresses long bodies by itself; the broker keeps them that way, and the reader unfolds them. */
    private static void compressed(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("compressed", 1);
        byte[] body = "Wiederholung 繰り返し ".repeat(4_000).getBytes(StandardCharsets.UTF_8);
        cluster.producer.send(new Message(topic, body));
        MessageExt stored = cluster.readTopic(topic, 1).get(0).get(0);
        Check.that(stored.getStoreSize() < body.length / 10, "a small record, but it has " + stored.getStoreSize());
        Check.that(Arrays.equals(body, stored.getBody()), "the body unaltered");
    }

    /** The second port, two below the first, which clients may use so that admin traffic cannot slow their sends. */
    private static void vipChannel(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("vip", 2);
        DefaultMQProducer vip = cluster.newProducer("vip-producer");
        vip.setVipChannelEnabled(true);
        vip.start();
        cluster.atEnd(vip::shutdown);
        Ledger ledger = new Ledger();
        for (int i = 0; i < 10; i++) {
            vip.send(ledger.write(topic, "v"));
        }
        ledger.requireExactly(Cluster.flatten(cluster.readTopic(topic, 10)));
    }

    /** What a broker must not store is refused by its code, and the connection lives on. */
    private static void refused(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("refused", 1);
        DefaultMQProducer bold = cluster.newProducer("bold-producer");
        bold.setMaxMessageSize(16 << 20);
        // What cannot be compressed would only grow, and sizes near the limit are the point here.
        bold.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        bold.start();
        cluster.atEnd(bold::shutdown);
        MessageQueue queue = cluster.queue(topic, 0);

        byte[] huge = new byte[(4 << 20) + 1024];
        new Random(1).nextBytes(huge);
        requireIllegal("a body beyond maxMessageSize", bold, new Message(topic, huge), queue);
        Message wordy = new Message(topic, new byte[] {1});
        wordy.putUserProperty("long", "x".repeat(Short.MAX_VALUE));
        requireIllegal("properties beyond 32767 bytes", bold, wordy, queue);
        Message fine = new Message(topic, Arrays.copyOf(huge, (4 << 20) - 1024));
        Check.equal(SendStatus.SEND_OK, bold.send(fine, queue).getSendStatus(), "a body just below maxMessageSize");
        MessageExt stored = cluster.readTopic(topic, 1).get(0).get(0);
        Check.that(Arrays.equals(fine.getBody(), stored.getBody()), "the large body unaltered");
    }

    private static void requireIllegal(String what, DefaultMQProducer producer, Message message, MessageQueue queue)
            throws Exception {
        MQBrokerException refusal =
            Check.refused(MQBrokerException.class, what, () -> producer.send(message, queue));
        Check.equal(13, refusal.getResponseCode(), what);
    }

    private static void requireReceipts(
            Cluster cluster, String topic, Ledger ledger, Map<Integer, SendResult> receipts) throws Exception {
        List<MessageExt> stored = Cluster.flatten(cluster.readTopic(topic, ledger.size()));
        ledger.requireExactly(stored);
        Set<String> places = new HashSet<>();
        for (MessageExt message : stored) {
            int number = Ledger.numberOf(message);
            SendResult receipt = receipts.get(number);
            Check.equal(SendStatus.SEND_OK, receipt.getSendStatus(), "status " + number);
            Check.equal(message.getQueueOffset(), receipt.getQueueOffset(), "queue offset " + number);
            Check.equal(cluster.queue(topic, message.getQueueId()), receipt.getMessageQueue(), "queue " + number);
            Check.equal(message.getMsgId(), receipt.getMsgId(), "id " + number);
            MessageId id = MessageDecoder.decodeMessageId(receipt.getOffsetMsgId());
            Check.equal(message.getCommitLogOffset(), id.getOffset(), "physical offset " + number);
            Check.equal(RemotingHelper.string2SocketAddress(cluster.brokerAddress), id.getAddress(), "host " + number);
            Check.equal(id.getAddress(), message.getStoreHost(), "store host " + number);
            Check.that(places.add(receipt.getOffsetMsgId()), "a place of its own for message " + number);
        }
    }
}

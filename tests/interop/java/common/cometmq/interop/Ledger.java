package cometmq.interop;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Remembers every message that was written and compares, field by field, what came back.
 *
 * <p>The content of a message follows from its number alone, so that a second process can rebuild what a first one
 * sent. Not thread-safe: a scenario writes and compares on its own thread.
 */
final class Ledger {
    private static final String NUMBER = "number";
    private static final int LARGE_BODY_BYTES = 9_000;

    /** What client and broker may add on the way. Anything else that was not sent is a fault. */
    private static final Set<String> ADDED_ON_THE_WAY = Set.of(
        MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
        MessageConst.PROPERTY_WAIT_STORE_MSG_OK,
        MessageConst.PROPERTY_CLUSTER,
        MessageConst.PROPERTY_MSG_REGION,
        MessageConst.PROPERTY_TRACE_SWITCH,
        MessageConst.PROPERTY_REAL_TOPIC,
        MessageConst.PROPERTY_REAL_QUEUE_ID,
        MessageConst.PROPERTY_TRANSACTION_CHECK_TIMES,
        "__transactionId__",
        MessageConst.PROPERTY_MIN_OFFSET,
        MessageConst.PROPERTY_MAX_OFFSET,
        MessageConst.PROPERTY_CONSUME_START_TIMESTAMP);

    private final Map<Integer, Message> written = new HashMap<>();
    private int next;

    Message write(String topic, String tag) {
        return write(topic, tag, next++);
    }

    /** Every property and body is different; every tenth body is long enough for the client to compress it. */
    Message write(String topic, String tag, int number) {
        Message message = new Message(topic, tag, keys(number), body(number));
        message.setFlag(number * 7);
        message.putUserProperty(NUMBER, Integer.toString(number));
        message.putUserProperty("colour", "blau & grün; \"red\" {" + number + "}");
        message.putUserProperty("ключ-名前", "значение 値 🚀 " + number);
        written.put(number, message);
        return message;
    }

    int size() {
        return written.size();
    }

    static int numberOf(Message message) {
        return Integer.parseInt(message.getUserProperty(NUMBER));
    }

    static String firstKey(int number) {
        return "order-" + number;
    }

    static String secondKey(int number) {
        return "Schlüssel-键-" + number;
    }

    /** Everything that was written came, once each, unaltered. */
    void requireExactly(Collection<MessageExt> received) {
        require(received, written.keySet());
    }

    /** These numbers came, once each, unaltered, and no others. */
    void require(Collection<MessageExt> received, Set<Integer> expected) {
        Set<Integer> seen = new HashSet<>();
        for (MessageExt message : received) {
            int number = requireUnaltered(message);
            Check.that(seen.add(number), "message " + number + " once, but it came again: " + message);
        }
        Set<Integer> lost = new TreeSet<>(expected);
        lost.removeAll(seen);
        Set<Integer> extra = new TreeSet<>(seen);
        extra.removeAll(expected);
        Check.that(lost.isEmpty() && extra.isEmpty(), expected.size() + " messages; lost " + lost + ", extra " + extra);
    }

    /** Compares one message with what was written under its number, which it returns. */
    int requireUnaltered(MessageExt received) {
        int number = numberOf(received);
        String which = "message " + number + ": ";
        Message sent = written.get(number);
        Check.that(sent != null, which + "was written by this scenario: " + received);
        Check.equal(sent.getTopic(), received.getTopic(), which + "topic");
        Check.equal(sent.getTags(), received.getTags(), which + "tags");
        Check.equal(sent.getKeys(), received.getKeys(), which + "keys");
        Check.equal(sent.getFlag(), received.getFlag(), which + "flag");
        Check.equal(0, received.getReconsumeTimes(), which + "reconsumeTimes");
        Check.that(Arrays.equals(body(number), received.getBody()), which + "body as sent");
        requireProperties(sent, received, which);
        Check.that(received.getStoreTimestamp() > 0, which + "a store time");
        Check.that(received.getBornTimestamp() > 0, which + "a birth time");
        return number;
    }

    private static void requireProperties(Message sent, MessageExt received, String which) {
        // The sending client sets UNIQ_KEY, and it is the message's id on the other side. A message rebuilt from its
        // number alone has none.
        String id = sent.getProperty(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX);
        if (id != null) {
            Check.equal(id, received.getMsgId(), which + "msgId");
        }
        Map<String, String> expected = new HashMap<>(sent.getProperties());
        expected.keySet().removeAll(ADDED_ON_THE_WAY);
        Map<String, String> found = new HashMap<>(received.getProperties());
        found.keySet().removeAll(ADDED_ON_THE_WAY);
        Check.equal(expected, found, which + "properties");
    }

    private static String keys(int number) {
        return firstKey(number) + MessageConst.KEY_SEPARATOR + secondKey(number);
    }

    private static byte[] body(int number) {
        String text = "Nachricht № " + number + " – メッセージ 📨";
        if (number % 10 == 9) {
            text = text.repeat(LARGE_BODY_BYTES / text.length());
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }
}

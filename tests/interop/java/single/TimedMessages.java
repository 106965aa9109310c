import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code TimedMessages NAME_SERVER TOPIC}: sends messages with a time of delivery in each of the client's three ways and
 * recalls a third of them; the others arrive, none early. Prints {@code ok TOPIC}, or ends with a stack trace.
 */
public final class TimedMessages {
    private static final int COUNT = 30;
    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final int MESSAGE_ILLEGAL = 13;
    private static final int ILLEGAL_OPERATION = 604;

    private TimedMessages() {}

    public static void main(String[] arguments) throws Exception {
        work(arguments[0], arguments[1]);
        System.out.println("ok " + arguments[1]);
        // Some threads of the client are no daemons and outlive its shutdown.
        System.exit(0);
    }

    private static void work(String nameServer, String topic) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("producer-" + topic);
        producer.setNamesrvAddr(nameServer);
        producer.start();
        // Creates the topic, so that the consumer finds it.
        Message first = new Message(topic, body("past"));
        first.setDeliverTimeMs(System.currentTimeMillis() - 1000);
        SendResult past = producer.send(first, 10_000);
        require(past.getRecallHandle() == null, "a handle for what is delivered: " + past);
        Map<String, MessageExt> received = new ConcurrentHashMap<>();
        List<String> repeated = new ArrayList<>();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("consumer-" + topic);
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                String text = new String(message.getBody(), StandardCharsets.UTF_8);
                if (received.put(text, message) != null) {
                    repeated.add(text);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Map<String, Long> dues = new HashMap<>();
        SendResult lastKept = null;
        for (int i = 0; i < COUNT; i++) {
            String text = "timed-" + i;
            Message message = new Message(topic, "tag", "key-" + i, body(text));
            message.putUserProperty("number", "" + i);
            long due = System.currentTimeMillis() + 3000;
            switch (i % 3) {
                case 0 -> message.setDeliverTimeMs(due);
                case 1 -> message.setDelayTimeMs(3000);
                default -> message.setDelayTimeSec(3);
            }
            SendResult result = producer.send(message, 10_000);
            require(result.getSendStatus() == SendStatus.SEND_OK, "status " + result);
            require(result.getRecallHandle() != null, "no handle in " + result);
            if (i / 3 % 3 == 0) {
                String id = producer.recallMessage(topic, result.getRecallHandle());
                require(result.getMsgId().equals(id), "recalled " + id + " and not " + result.getMsgId());
            } else {
                dues.put(text, due);
                lastKept = result;
            }
        }
        dues.put("past", 0L);
        long deadline = System.nanoTime() + WAIT_NANOS;
        while (!received.keySet().containsAll(dues.keySet())) {
            require(System.nanoTime() < deadline, "received only " + received.keySet());
            Thread.sleep(20);
        }
        Message marker = new Message(topic, body("marker"));
        marker.setDelayTimeMs(1500);
        producer.send(marker, 10_000);
        while (!received.containsKey("marker")) {
            require(System.nanoTime() < deadline, "no marker");
            Thread.sleep(20);
        }
        require(received.size() == dues.size() + 1, "recalled messages among " + received.keySet());
        require(repeated.isEmpty(), "repeated: " + repeated);
        dues.forEach((text, due) -> {
            MessageExt message = received.get(text);
            require(message.getStoreTimestamp() >= due, text + " came early: " + message);
            require(due == 0 || message.getUserProperty("number").equals(text.substring(6)), "property of " + message);
        });
        require(refusal(() -> {
            Message far = new Message(topic, body("far"));
            far.setDelayTimeSec(41L * 86_400);
            producer.send(far, 10_000);
        }) == MESSAGE_ILLEGAL, "a time too far ahead was accepted");
        String handle = lastKept.getRecallHandle();
        require(refusal(() -> producer.recallMessage(topic, handle)) == ILLEGAL_OPERATION, "a late recall was accepted");
        consumer.shutdown();
        producer.shutdown();
    }

    private interface Step {
        void run() throws Exception;
    }

    private static int refusal(Step step) throws Exception {
        try {
            step.run();
        } catch (MQBrokerException refused) {
            return refused.getResponseCode();
        }
        return 0;
    }

    private static byte[] body(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void require(boolean isSo, String text) {
        if (!isSo) {
            throw new AssertionError(text);
        }
    }
}

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code AcrossBrokers COUNT (NAME_SERVER TOPIC BROKERS)...}: the topic lies on several brokers and holds COUNT messages
 * {@code ours-0 ...}. Sends COUNT more, {@code java-0 ...}, consumes all of them with two consumers of one group, finds
 * each of its own by key. Prints {@code ok TOPIC}, or ends with a stack trace.
 */
public final class AcrossBrokers {
    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private AcrossBrokers() {}

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        for (int i = 1; i < arguments.length; i += 3) {
            work(count, arguments[i], arguments[i + 1], Integer.parseInt(arguments[i + 2]));
            System.out.println("ok " + arguments[i + 1]);
        }
        // Some threads of the client are no daemons and outlive its shutdown.
        System.exit(0);
    }

    private static void work(int count, String nameServer, String topic, int brokers) throws Exception {
        Map<String, AtomicInteger> received = new ConcurrentHashMap<>();
        Set<String> consumers = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer first = consumer(nameServer, topic, "first", received, consumers);
        DefaultMQPushConsumer second = consumer(nameServer, topic, "second", received, consumers);
        DefaultMQProducer producer = new DefaultMQProducer("producer-" + topic);
        producer.setInstanceName("producer-" + topic);
        producer.setNamesrvAddr(nameServer);
        producer.start();
        Set<String> takers = new TreeSet<>();
        for (int i = 0; i < count; i++) {
            Message message = new Message(topic, "tag", topic + "-key-" + i, body("java-", i));
            SendResult result = producer.send(message, 10_000);
            require(result.getSendStatus() == SendStatus.SEND_OK, "status " + result);
            takers.add(result.getMessageQueue().getBrokerName());
        }
        require(takers.size() == brokers, "messages went to " + takers);
        Map<String, Integer> expected = new HashMap<>();
        for (int i = 0; i < count; i++) {
            expected.put("ours-" + i, 1);
            expected.put("java-" + i, 1);
        }
        await(() -> received.keySet().containsAll(expected.keySet()), () -> "received " + received);
        require(received.size() == expected.size(), "unknown messages among " + received.keySet());
        // The second one has taken over some queues of the first, or the other way round; that may deliver twice.
        require(!consumers.isEmpty(), "nobody consumed");
        for (int i = 0; i < count; i++) {
            String key = topic + "-key-" + i;
            String body = "java-" + i;
            await(() -> isFound(producer, topic, key, body), () -> "no " + key);
        }
        first.shutdown();
        second.shutdown();
        producer.shutdown();
    }

    private static boolean isFound(DefaultMQProducer producer, String topic, String key, String body) {
        try {
            QueryResult result = producer.queryMessage(topic, key, 32, 0, Long.MAX_VALUE);
            List<MessageExt> found = result.getMessageList();
            return found.size() == 1 && text(found.get(0)).equals(body);
        } catch (Exception e) {
            // The index follows the log with a delay, and an empty result is an exception to this client.
            return false;
        }
    }

    private static DefaultMQPushConsumer consumer(
        String nameServer, String topic, String name, Map<String, AtomicInteger> received, Set<String> consumers
    ) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("consumers-" + topic);
        consumer.setInstanceName(name + "-" + topic);
        consumer.setNamesrvAddr(nameServer);
        // Soon again, should a broker not know the latest subscription yet.
        consumer.setHeartbeatBrokerInterval(2_000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            consumers.add(name);
            for (MessageExt message : messages) {
                received.computeIfAbsent(text(message), body -> new AtomicInteger()).incrementAndGet();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private static byte[] body(String word, int number) {
        return (word + number).getBytes(StandardCharsets.UTF_8);
    }

    private static String text(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    private interface Condition {
        boolean holds();
    }

    private interface Story {
        String tell();
    }

    private static void await(Condition condition, Story story) throws InterruptedException {
        long deadline = System.nanoTime() + WAIT_NANOS;
        while (!condition.holds()) {
            require(System.nanoTime() < deadline, story.tell());
            Thread.sleep(20);
        }
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}

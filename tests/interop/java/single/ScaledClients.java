import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * {@code ScaledClients NAME_SERVER TOPIC NAME_A ADDRESS_A NAME_B ADDRESS_B}: a producer and two consumers at work while the topic
 * is made on a second broker, gets more queues and fewer, and the first broker is closed to producers, drained and opened
 * again. No send may fail, everything sent is consumed. {@code rocketmq.client.rebalance.waitInterval} should be short: the
 * consumers look for new queues by themselves, and every 20 seconds otherwise. Prints {@code ok TOPIC}, or ends with a stack trace.
 */
public final class ScaledClients {
    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final int ROUTE_MS = 300;
    private static final int RECENT = 60;

    private static final Set<String> SENT = ConcurrentHashMap.newKeySet();
    private static final Set<String> TAKEN = ConcurrentHashMap.newKeySet();
    private static final Map<String, Integer> TAKEN_FROM = new ConcurrentHashMap<>();
    /** Broker and queue of the last sends, the newest first. */
    private static final ConcurrentLinkedDeque<String> PLACES = new ConcurrentLinkedDeque<>();
    private static volatile boolean isSending = true;
    private static volatile Throwable failure;

    private final String topic;
    private final String group;
    private final DefaultMQAdminExt admin = new DefaultMQAdminExt();
    private final List<DefaultMQPushConsumer> consumers = new ArrayList<>();

    private ScaledClients(String topic) {
        this.topic = topic;
        this.group = "group-" + topic;
    }

    public static void main(String[] arguments) throws Exception {
        new ScaledClients(arguments[1]).play(
            arguments[0], arguments[2], arguments[3], arguments[4], arguments[5]);
        // Some threads of the client are no daemons and outlive its shutdown.
        System.exit(0);
    }

    private void play(String nameServer, String nameA, String addressA, String nameB, String addressB)
        throws Exception {
        admin.setNamesrvAddr(nameServer);
        admin.start();
        update(addressA, 4, 4);
        waitFor("the topic", () -> knows(nameServer));
        for (String name : List.of("left", "right")) {
            consumers.add(consumer(nameServer, name));
        }
        DefaultMQProducer producer = new DefaultMQProducer("producer-" + topic);
        producer.setNamesrvAddr(nameServer);
        producer.setPollNameServerInterval(ROUTE_MS);
        // A slow machine is not what this is about.
        producer.setSendMsgTimeout(10_000);
        producer.start();
        Thread sender = new Thread(() -> send(producer));
        sender.start();
        waitFor("work", () -> recentBrokers().equals(Set.of(nameA)) && TAKEN_FROM.containsKey(nameA));

        update(addressB, 4, 4);
        waitFor("sends to both", () -> recentBrokers().equals(Set.of(nameA, nameB)));
        waitFor("both are read", () -> TAKEN_FROM.containsKey(nameB));

        require(admin.wipeWritePermOfBroker(nameServer, nameA) > 0, "nothing was wiped");
        waitFor("sends leave the first", () -> recentBrokers().equals(Set.of(nameB)));
        Thread.sleep(3 * ROUTE_MS);
        waitFor("the first is drained", () -> behind(nameA, 0) == 0);

        update(addressB, 8, 8);
        waitFor("eight queues", () -> recent().size() == 8);
        update(addressB, 8, 2);
        waitFor("two queues", () -> recent().size() == 2);
        Thread.sleep(3 * ROUTE_MS);
        waitFor("the others are drained", () -> behind(nameB, 2) == 0);
        update(addressB, 2, 2);

        require(admin.addWritePermOfBroker(nameServer, nameA) > 0, "nothing was given back");
        waitFor("sends to both again", () -> recentBrokers().equals(Set.of(nameA, nameB)));
        isSending = false;
        sender.join();
        waitFor("everything is consumed", () -> TAKEN.containsAll(SENT));
        require(failure == null, "a send failed: " + failure);
        producer.shutdown();
        consumers.forEach(DefaultMQPushConsumer::shutdown);
        admin.shutdown();
        System.out.println("sent " + SENT.size() + " by broker " + TAKEN_FROM);
        System.out.println("ok " + topic);
    }

    private DefaultMQPushConsumer consumer(String nameServer, String name) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(name);
        consumer.setPollNameServerInterval(ROUTE_MS);
        consumer.setPersistConsumerOffsetInterval(ROUTE_MS);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                TAKEN.add(new String(message.getBody(), StandardCharsets.UTF_8));
                TAKEN_FROM.merge(context.getMessageQueue().getBrokerName(), 1, Integer::sum);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private void send(DefaultMQProducer producer) {
        try {
            for (int number = 0; isSending; number++) {
                String text = Integer.toString(number);
                SendResult result = producer.send(new Message(topic, text.getBytes(StandardCharsets.UTF_8)));
                require(result.getSendStatus() == SendStatus.SEND_OK, result.toString());
                SENT.add(text);
                PLACES.addFirst(result.getMessageQueue().getBrokerName() + " " + result.getMessageQueue().getQueueId());
                if (PLACES.size() > RECENT) {
                    PLACES.removeLast();
                }
                Thread.sleep(5);
            }
        } catch (Throwable e) {
            failure = e;
        }
    }

    private void update(String address, int readQueues, int writeQueues) throws Exception {
        TopicConfig config = new TopicConfig(topic);
        config.setReadQueueNums(readQueues);
        config.setWriteQueueNums(writeQueues);
        admin.createAndUpdateTopicConfig(address, config);
    }

    private boolean knows(String nameServer) {
        try {
            return !admin.examineTopicRouteInfo(topic).getQueueDatas().isEmpty();
        } catch (Exception e) {
            return false;
        }
    }

    /** How many messages of a broker's queues, from one number on, the group has not consumed yet. */
    private long behind(String broker, int fromQueue) {
        try {
            // By themselves they would do so for the first time after ten seconds.
            consumers.forEach(consumer -> consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset());
            return admin.examineConsumeStats(group, topic).getOffsetTable().entrySet().stream()
                .filter(entry -> entry.getKey().getTopic().equals(topic))
                .filter(entry -> entry.getKey().getBrokerName().equals(broker))
                .filter(entry -> entry.getKey().getQueueId() >= fromQueue)
                .mapToLong(entry -> entry.getValue().getBrokerOffset() - entry.getValue().getConsumerOffset())
                .sum();
        } catch (Exception e) {
            return -1;
        }
    }

    private static Set<String> recent() {
        return PLACES.size() < RECENT ? Set.of() : new TreeSet<>(PLACES);
    }

    private static Set<String> recentBrokers() {
        Set<String> brokers = new TreeSet<>();
        recent().forEach(place -> brokers.add(place.substring(0, place.indexOf(' '))));
        return brokers;
    }

    private static void waitFor(String what, BooleanSupplier condition) throws Exception {
        long deadline = System.nanoTime() + WAIT_NANOS;
        while (!condition.getAsBoolean()) {
            require(failure == null, "a send failed: " + failure);
            require(System.nanoTime() < deadline, "not in time: " + what + "; sends go to " + recent());
            Thread.sleep(50);
        }
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}

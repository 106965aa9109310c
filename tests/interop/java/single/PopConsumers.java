import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * {@code PopConsumers NAME_SERVER TOPIC}: a group is switched to POP, and two consumers share the messages of a topic. Some
 * messages are to be tried again later, some take longer than they are invisible; all are done in the end. Prints
 * {@code ok TOPIC} and figures, or ends with a stack trace.
 */
public final class PopConsumers {
    private static final int COUNT = 300;
    private static final int QUEUES = 4;
    private static final long INVISIBLE_MS = 5000;
    private static final int LATER_EVERY = 10;
    private static final int HANG_EVERY = 50;
    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(100);

    private static final Map<Integer, AtomicInteger> TRIES = new ConcurrentHashMap<>();
    private static final Set<Integer> DONE = ConcurrentHashMap.newKeySet();
    private static final Map<String, AtomicInteger> SHARES = new ConcurrentHashMap<>();
    private static final List<String> FAULTS = new ArrayList<>();

    private PopConsumers() {}

    public static void main(String[] arguments) throws Exception {
        String nameServer = arguments[0];
        String topic = arguments[1];
        String group = "group-" + topic;
        switchToPop(nameServer, topic, group);
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (String name : List.of("left", "right")) {
            consumers.add(consumer(nameServer, topic, group, name));
        }
        send(nameServer, topic);
        long deadline = System.nanoTime() + WAIT_NANOS;
        while (DONE.size() < COUNT) {
            require(System.nanoTime() < deadline, "not done: " + missing() + " tries " + TRIES);
            Thread.sleep(50);
        }
        synchronized (FAULTS) {
            require(FAULTS.isEmpty(), FAULTS.toString());
        }
        require(SHARES.size() == 2, "one consumer had everything: " + SHARES);
        // Nothing that is acknowledged comes again.
        int before = tries();
        Thread.sleep(2 * INVISIBLE_MS);
        require(tries() == before, "came again after it was done: " + (tries() - before));
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.shutdown();
        }
        System.out.println("shares " + SHARES + " tries " + before);
        System.out.println("ok " + topic);
        // Some threads of the client are no daemons and outlive its shutdown.
        System.exit(0);
    }

    private static void switchToPop(String nameServer, String topic, String group) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(nameServer);
        admin.start();
        ClusterInfo info = admin.examineBrokerClusterInfo();
        String cluster = info.getClusterAddrTable().keySet().iterator().next();
        admin.createTopic(cluster, topic, QUEUES, Map.of());
        for (var broker : info.getBrokerAddrTable().values()) {
            admin.setMessageRequestMode(broker.selectBrokerAddr(), topic, group, MessageRequestMode.POP, 0, 10_000);
        }
        admin.shutdown();
    }

    private static DefaultMQPushConsumer consumer(String nameServer, String topic, String group, String name)
        throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(name);
        consumer.setClientRebalance(false);
        consumer.setPopInvisibleTime(INVISIBLE_MS);
        consumer.setPopBatchNums(8);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            ConsumeConcurrentlyStatus status = ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            for (MessageExt message : messages) {
                if (!take(message, topic, name)) {
                    status = ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return status;
        });
        // Ten seconds and more otherwise, and there is no setting for it.
        Method levels = DefaultMQPushConsumerImpl.class.getDeclaredMethod("getPopDelayLevel");
        levels.setAccessible(true);
        Arrays.fill((int[]) levels.invoke(consumer.getDefaultMQPushConsumerImpl()), 1);
        consumer.start();
        return consumer;
    }

    /** Whether the message is done with. */
    private static boolean take(MessageExt message, String topic, String name) {
        int number = Integer.parseInt(new String(message.getBody(), StandardCharsets.UTF_8));
        SHARES.computeIfAbsent(name, unused -> new AtomicInteger()).incrementAndGet();
        int tries = TRIES.computeIfAbsent(number, unused -> new AtomicInteger()).incrementAndGet();
        if (!topic.equals(message.getTopic()) || message.getReconsumeTimes() != tries - 1) {
            synchronized (FAULTS) {
                FAULTS.add(tries + ". try of " + message);
            }
        }
        if (tries == 1 && number % LATER_EVERY == 0) {
            return false;
        }
        if (tries == 1 && number % HANG_EVERY == 1) {
            sleep(INVISIBLE_MS + 1500);
            return true;
        }
        DONE.add(number);
        return true;
    }

    private static void send(String nameServer, String topic) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("producer-" + topic);
        producer.setNamesrvAddr(nameServer);
        producer.start();
        for (int number = 0; number < COUNT; number++) {
            byte[] body = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
            SendStatus status = producer.send(new Message(topic, body), 10_000).getSendStatus();
            require(status == SendStatus.SEND_OK, "status " + status);
        }
        producer.shutdown();
    }

    private static Set<Integer> missing() {
        Set<Integer> all = new TreeSet<>();
        for (int number = 0; number < COUNT; number++) {
            all.add(number);
        }
        all.removeAll(DONE);
        return all;
    }

    private static int tries() {
        return TRIES.values().stream().mapToInt(AtomicInteger::get).sum();
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}

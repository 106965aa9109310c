import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

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
 * {@code MovedClients NAME_SERVER TOPIC GROUP PAUSE_MS}: a producer and a consumer at work while masters and slaves come and
 * go; others may do the same with another group. The consumer pauses for each of its own. Prints {@code sent N taken N} again and again: what was acknowledged by
 * SEND_OK, and how much of it was consumed. A first line of input ends the sending, which is answered by {@code quiet};
 * after a second one everything acknowledged must come to the consumer, which then commits its positions. Ends with
 * {@code ok sent N again N unacknowledged N}, or with a stack trace.
 */
public final class MovedClients {
    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final long QUIET_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final int ROUTE_MS = 300;
    private static final int SEND_EVERY_MS = 20;

    private static final Set<String> SENT = ConcurrentHashMap.newKeySet();
    private static final Map<String, AtomicInteger> TAKEN = new ConcurrentHashMap<>();
    private static final AtomicInteger FAILED = new AtomicInteger();
    private static volatile boolean isSending = true;
    private static volatile long lastNanos = System.nanoTime();

    private MovedClients() {}

    public static void main(String[] arguments) throws Exception {
        String nameServer = arguments[0];
        String topic = arguments[1];
        DefaultMQPushConsumer consumer =
            consumer(nameServer, topic, arguments[2], Integer.parseInt(arguments[3]));
        DefaultMQProducer producer = new DefaultMQProducer("producers-" + arguments[2]);
        producer.setNamesrvAddr(nameServer);
        producer.setPollNameServerInterval(ROUTE_MS);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        Thread sender = new Thread(() -> send(producer, topic, arguments[2]));
        sender.start();
        Thread teller = new Thread(MovedClients::tell);
        teller.setDaemon(true);
        teller.start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        lines.readLine();
        isSending = false;
        sender.join();
        say("quiet");
        lines.readLine();
        long deadline = System.nanoTime() + WAIT_NANOS;
        // Others may have sent the last messages of a queue, and what is in work is not committed.
        while (!TAKEN.keySet().containsAll(SENT) || System.nanoTime() - lastNanos < QUIET_NANOS) {
            if (System.nanoTime() > deadline) {
                SENT.removeAll(TAKEN.keySet());
                throw new AssertionError("acknowledged and not consumed: " + SENT);
            }
            Thread.sleep(20);
        }
        // What is consumed is committed at the end.
        consumer.shutdown();
        producer.shutdown();
        long again = TAKEN.values().stream().filter(count -> count.get() > 1).count();
        long unacknowledged = TAKEN.keySet().stream().filter(text -> !SENT.contains(text)).count();
        say("ok sent " + SENT.size() + " again " + again + " unacknowledged " + unacknowledged);
        // Some threads of the client are no daemons and outlive its shutdown.
        System.exit(0);
    }

    private static DefaultMQPushConsumer consumer(String nameServer, String topic, String group, int pauseMs)
        throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setPollNameServerInterval(ROUTE_MS);
        consumer.setPersistConsumerOffsetInterval(ROUTE_MS);
        // Soon again: each new master has to learn of this group.
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        // Most of what waits should wait at the broker.
        consumer.setPullBatchSize(4);
        consumer.setPullThresholdForQueue(4);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                lastNanos = System.nanoTime();
                String text = new String(message.getBody(), StandardCharsets.UTF_8);
                if (text.startsWith(group)) {
                    pause(pauseMs);
                    TAKEN.computeIfAbsent(text, body -> new AtomicInteger()).incrementAndGet();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private static void send(DefaultMQProducer producer, String topic, String word) {
        for (int number = 0; isSending; number++) {
            String text = word + "-" + number;
            Message message = new Message(topic, "tag", text, text.getBytes(StandardCharsets.UTF_8));
            try {
                SendResult result = producer.send(message, 3_000);
                if (result.getSendStatus() == SendStatus.SEND_OK) {
                    SENT.add(text);
                } else {
                    FAILED.incrementAndGet();
                }
            } catch (Exception e) {
                // There is no master at times. What was not acknowledged may be there or not.
                FAILED.incrementAndGet();
                pause(50);
            }
            pause(SEND_EVERY_MS);
        }
    }

    private static void tell() {
        while (true) {
            say("sent " + SENT.size() + " taken " + TAKEN.size() + " failed " + FAILED.get());
            pause(100);
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void pause(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** The cases of clients.py with RocketMQ's Java client: JavaClient NAME_SERVER SECONDS ROUNDS MESSAGES, a JSON line each. */
public final class JavaClient {
    private static final String SEND_TOPIC = "ClientSend";
    private static final String PUSH_TOPIC = "ClientConsume";
    private static final String PULL_TOPIC = "ClientPull";
    private static final String LATENCY_TOPIC = "ClientConsumeLatency";
    private static final byte[] BODY = new byte[1024];
    private static final int WAIT_SECONDS_MAX = 60;
    private static final int WARM_SECONDS = 8;

    private static String nameServer;
    private static double seconds;
    private static int rounds;
    private static long messages;

    private interface Work {
        long until(long nanoTime) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        nameServer = arguments[0];
        seconds = Double.parseDouble(arguments[1]);
        rounds = Integer.parseInt(arguments[2]);
        messages = Long.parseLong(arguments[3]);
        Arrays.fill(BODY, (byte) 'x');
        DefaultMQProducer producer = new DefaultMQProducer("java-client");
        producer.setNamesrvAddr(nameServer);
        producer.setVipChannelEnabled(false);
        producer.start();
        best("send-64", until -> sendInFlight(producer, until));
        best("send-1", until -> send(producer, until));
        best("batch-32", until -> sendBatches(producer, until));
        push();
        litePull();
        latency(producer);
        // Timers of the client's pools would keep the process alive for a while.
        System.exit(0);
    }

    private static long sendInFlight(DefaultMQProducer producer, long until) throws Exception {
        Semaphore free = new Semaphore(64);
        AtomicLong sent = new AtomicLong();
        while (System.nanoTime() < until) {
            free.acquire();
            producer.send(new Message(SEND_TOPIC, "t", BODY), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    sent.incrementAndGet();
                    free.release();
                }

                @Override
                public void onException(Throwable error) {
                    error.printStackTrace();
                    System.exit(1);
                }
            });
        }
        free.acquire(64);
        return sent.get();
    }

    private static long send(DefaultMQProducer producer, long until) throws Exception {
        long sent = 0;
        while (System.nanoTime() < until) {
            producer.send(new Message(SEND_TOPIC, "t", BODY));
            sent++;
        }
        return sent;
    }

    private static long sendBatches(DefaultMQProducer producer, long until) throws Exception {
        AtomicLong sent = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            Thread thread = new Thread(() -> {
                try {
                    while (System.nanoTime() < until) {
                        List<Message> batch = new ArrayList<>();
                        for (int each = 0; each < 32; each++) {
                            batch.add(new Message(SEND_TOPIC, "t", BODY));
                        }
                        producer.send(batch);
                        sent.addAndGet(32);
                    }
                } catch (Exception error) {
                    error.printStackTrace();
                    System.exit(1);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return sent.get();
    }

    private static void push() throws Exception {
        double[] found = new double[] {0, 0};
        for (int round = 0; round < rounds; round++) {
            DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-push-" + UUID.randomUUID());
            consumer.setNamesrvAddr(nameServer);
            consumer.setVipChannelEnabled(false);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.subscribe(PUSH_TOPIC, "*");
            AtomicLong count = new AtomicLong();
            CountDownLatch done = new CountDownLatch(1);
            AtomicLong firstAt = new AtomicLong();
            AtomicLong cpuAt = new AtomicLong();
            consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
                long now = count.addAndGet(batch.size());
                if (now == batch.size()) {
                    firstAt.set(System.nanoTime());
                    cpuAt.set(cpuNanos());
                }
                if (now >= messages) {
                    done.countDown();
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            if (!done.await(WAIT_SECONDS_MAX, TimeUnit.SECONDS)) {
                throw new IllegalStateException("only " + count + " of " + messages + " messages came");
            }
            keepBest(found, count.get(), System.nanoTime() - firstAt.get(), cpuNanos() - cpuAt.get());
            consumer.shutdown();
        }
        tell("push", found);
    }

    private static void litePull() throws Exception {
        double[] found = new double[] {0, 0};
        for (int round = 0; round < rounds; round++) {
            DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("java-lite-" + UUID.randomUUID());
            consumer.setNamesrvAddr(nameServer);
            consumer.setVipChannelEnabled(false);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setPullBatchSize(32);
            consumer.setAutoCommit(false);
            consumer.subscribe(PULL_TOPIC, "*");
            consumer.start();
            long count = 0;
            long firstAt = 0;
            long cpuAt = 0;
            while (count < messages) {
                List<MessageExt> polled = consumer.poll();
                if (count == 0 && !polled.isEmpty()) {
                    firstAt = System.nanoTime();
                    cpuAt = cpuNanos();
                }
                count += polled.size();
            }
            keepBest(found, count, System.nanoTime() - firstAt, cpuNanos() - cpuAt);
            consumer.shutdown();
        }
        tell("lite-pull", found);
    }

    private static void latency(DefaultMQProducer producer) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-latency-" + UUID.randomUUID());
        consumer.setNamesrvAddr(nameServer);
        consumer.setVipChannelEnabled(false);
        consumer.subscribe(LATENCY_TOPIC, "*");
        ConcurrentHashMap<String, Long> sent = new ConcurrentHashMap<>();
        List<Long> times = new ArrayList<>();
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            long now = System.nanoTime();
            Long sentAt = sent.get(batch.get(0).getKeys());
            if (sentAt != null) {
                synchronized (times) {
                    times.add(now - sentAt);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        int warm = 200;
        int wanted = 500;
        Thread.sleep(3000);
        for (int number = -warm; number < wanted; number++) {
            String key = "java-" + number;
            if (number >= 0) {
                sent.put(key, System.nanoTime());
            }
            producer.send(new Message(LATENCY_TOPIC, "", key, BODY));
            Thread.sleep(10);
        }
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS_MAX);
        while (true) {
            synchronized (times) {
                if (times.size() >= wanted) {
                    times.sort(null);
                    double p50 = times.get(wanted / 2) / 1e6;
                    double p99 = times.get(wanted * 99 / 100) / 1e6;
                    System.out.println("{\"case\": \"latency\", \"p50_ms\": " + p50 + ", \"p99_ms\": " + p99 + "}");
                    return;
                }
            }
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("only " + times.size() + " of " + wanted + " messages came");
            }
            Thread.sleep(10);
        }
    }

    private static void best(String name, Work work) throws Exception {
        // Java's compiler needs its time before a figure means anything.
        work.until(System.nanoTime() + TimeUnit.SECONDS.toNanos(WARM_SECONDS));
        double[] found = new double[] {0, 0};
        for (int round = 0; round < rounds; round++) {
            long cpu = cpuNanos();
            long started = System.nanoTime();
            long count = work.until(started + (long) (seconds * 1e9));
            keepBest(found, count, System.nanoTime() - started, cpuNanos() - cpu);
        }
        tell(name, found);
    }

    private static void keepBest(double[] found, long count, long nanos, long cpuNanos) {
        double rate = count / (nanos / 1e9);
        if (rate > found[0]) {
            found[0] = rate;
            found[1] = cpuNanos / 1e3 / count;
        }
    }

    private static void tell(String name, double[] found) {
        System.out.println("{\"case\": \"" + name + "\", \"rate\": " + found[0] + ", \"cpu_us\": " + found[1] + "}");
    }

    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}

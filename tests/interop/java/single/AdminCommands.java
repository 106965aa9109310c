import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * {@code AdminCommands NAME_SERVER TOPIC MESSAGES GROUP PRODUCER_GROUP}: runs many commands of mqadmin in one process.
 * Each line of the input is a command, its words separated by tabs; the answer is what the command printed, between a
 * line {@code >>> MILLISECONDS} and a line {@code <<<}. The line {@code @start} starts a producer and a consumer, which
 * has consumed the topic when the next command runs; {@code @list} prints the names of all commands.
 */
public final class AdminCommands {
    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final String[] arguments;
    private final Set<Thread> kept = ConcurrentHashMap.newKeySet();
    private DefaultMQPushConsumer consumer;
    private DefaultMQProducer producer;
    private DefaultMQAdminExt watcher;

    private AdminCommands(String[] arguments) {
        this.arguments = arguments;
    }

    public static void main(String[] arguments) throws Exception {
        AdminCommands commands = new AdminCommands(arguments);
        System.setSecurityManager(new NoExit());
        Thread main = Thread.currentThread();
        Thread hurry = new Thread(() -> commands.hurry(main), "hurry");
        hurry.setDaemon(true);
        hurry.start();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream capture = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(capture);
            System.setErr(capture);
            long started = System.nanoTime();
            try {
                commands.run(line);
            } catch (ExitAsked e) {
                // That is how a command ends that was called in a wrong way; it has printed its help.
            } catch (Throwable e) {
                e.printStackTrace(capture);
            }
            out.println(">>> " + (System.nanoTime() - started) / 1_000_000);
            out.print(printed.toString(StandardCharsets.UTF_8));
            out.println();
            out.println("<<<");
        }
        // Some threads of the client are no daemons and outlive its shutdown.
        System.setSecurityManager(null);
        System.exit(0);
    }

    private void run(String line) throws Exception {
        switch (line) {
            case "@start" -> start();
            case "@list" -> MQAdminStartup.main0(new String[0], null);
            default -> MQAdminStartup.main0(line.split("\t"), null);
        }
    }

    private void start() throws Exception {
        String nameServer = arguments[0];
        String topic = arguments[1];
        int messages = Integer.parseInt(arguments[2]);
        producer = new DefaultMQProducer(arguments[4]);
        producer.setInstanceName("producer");
        producer.setNamesrvAddr(nameServer);
        producer.start();
        producer.fetchPublishMessageQueues(topic);
        watcher = new DefaultMQAdminExt("watcher");
        watcher.setInstanceName("watcher");
        watcher.setNamesrvAddr(nameServer);
        watcher.start();
        AtomicInteger received = new AtomicInteger();
        consumer = new DefaultMQPushConsumer(arguments[3]);
        consumer.setInstanceName("consumer");
        consumer.setNamesrvAddr(nameServer);
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            received.addAndGet(batch.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        waiters().forEach(kept::add);
        await(() -> received.get() >= messages && isCommitted(topic));
        await(() -> isRegistered(topic));
    }

    private boolean isRegistered(String topic) {
        try {
            // Its first heartbeat went out before it knew a broker, and the next would take its time.
            MQClientInstance instance = producer.getDefaultMQProducerImpl().getMqClientFactory();
            instance.updateTopicRouteInfoFromNameServer(topic);
            instance.sendHeartbeatToAllBrokerWithLock();
            watcher.examineProducerConnectionInfo(producer.getProducerGroup(), topic);
            return true;
        } catch (Exception e) {
            return false;
        }
    }

    private boolean isCommitted(String topic) {
        try {
            // By itself it would do so for the first time after ten seconds.
            consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
            var stats = watcher.examineConsumeStats(consumer.getConsumerGroup());
            int queues = producer.fetchPublishMessageQueues(topic).size();
            return stats.getOffsetTable().size() >= queues && stats.computeTotalDiff() == 0;
        } catch (Exception e) {
            return false;
        }
    }

    /**
     * Each command ends its client, and 5.x lets that wait for a thread that looks up every three seconds. It is woken
     * only then: at other times it sends heartbeats, and to disturb it would cost the connection.
     */
    private void hurry(Thread main) {
        try {
            while (true) {
                if (isEndingClient(main)) {
                    waiters().filter(thread -> !kept.contains(thread)).forEach(Thread::interrupt);
                }
                Thread.sleep(20);
            }
        } catch (InterruptedException e) {
            // Nobody does that.
        }
    }

    private static boolean isEndingClient(Thread main) {
        return Arrays.stream(main.getStackTrace())
            .anyMatch(frame -> frame.getClassName().endsWith(".ServiceThread") && frame.getMethodName().equals("shutdown"));
    }

    private static Stream<Thread> waiters() {
        return Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.getName().startsWith("NettyEventExecutor"));
    }

    private static final class ExitAsked extends SecurityException {
        private static final long serialVersionUID = 1L;
    }

    private static final class NoExit extends SecurityManager {
        @Override
        public void checkExit(int status) {
            throw new ExitAsked();
        }

        @Override
        public void checkPermission(java.security.Permission permission) {
            // Everything else is allowed.
        }
    }

    private interface Condition {
        boolean holds();
    }

    private static void await(Condition condition) throws InterruptedException {
        long deadline = System.nanoTime() + WAIT_NANOS;
        while (!condition.holds()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("the clients did not come to work in time");
            }
            Thread.sleep(20);
        }
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * {@code TraceReader read NAME_SERVER TRACE_TOPIC}: for each message id of the input, what RocketMQ's own decoder finds
 * in the trace messages with that key, a line for each record: its fields separated by tabs. {@code TraceReader send
 * NAME_SERVER TOPIC}: sends a traced message with key "traced-key" and prints its id. {@code TraceReader consume
 * NAME_SERVER TOPIC}: sends a message, consumes it traced, prints its id.
 */
public final class TraceReader {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        System.setProperty("rocketmq.namesrv.addr", args[1]);
        if (args[0].equals("send")) {
            send(args[2]);
        } else if (args[0].equals("consume")) {
            consume(args[2]);
        } else {
            read(args[2]);
        }
        System.exit(0);
    }

    private static void send(String topic) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("traced-java", null, true, null);
        producer.start();
        Message message = new Message(topic, "tag", "traced-key", "body".getBytes(StandardCharsets.UTF_8));
        OUT.println(producer.send(message, 10000).getMsgId());
        // Its dispatcher sends what waits before it ends.
        producer.shutdown();
    }

    private static void consume(String topic) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("untraced-java");
        producer.start();
        String id = producer.send(new Message(topic, "consumed".getBytes(StandardCharsets.UTF_8)), 10000).getMsgId();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            "traced-java-consumers", null, new AllocateMessageQueueAveragely(), true, null);
        CountDownLatch consumed = new CountDownLatch(1);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (messages.stream().anyMatch(message -> message.getMsgId().equals(id))) {
                consumed.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        if (!consumed.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not consumed within a minute: " + id);
        }
        // The trace leaves in the background; shutdown sends what waits, and does not wait for the answers.
        consumer.shutdown();
        Thread.sleep(2000);
        OUT.println(id);
        producer.shutdown();
    }

    private static void read(String topic) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String id = in.readLine(); id != null; id = in.readLine()) {
            long end = System.currentTimeMillis() + 60_000;
            for (MessageExt found : admin.queryMessage(topic, id, 64, end - 3_600_000, end).getMessageList()) {
                String body = new String(found.getBody(), StandardCharsets.UTF_8);
                for (TraceContext context : TraceDataEncoder.decoderFromTraceDataString(body)) {
                    print(id, context);
                }
            }
        }
        admin.shutdown();
    }

    private static void print(String id, TraceContext context) {
        for (TraceBean bean : context.getTraceBeans()) {
            if (!id.equals(bean.getMsgId())) {
                continue;
            }
            OUT.println(String.join("\t",
                context.getTraceType().name(), bean.getMsgId(), String.valueOf(context.getGroupName()),
                String.valueOf(bean.getTopic()), String.valueOf(bean.getTags()), String.valueOf(bean.getKeys()),
                String.valueOf(context.getRegionId()), String.valueOf(context.isSuccess()),
                String.valueOf(bean.getRetryTimes()), String.valueOf(bean.getBodyLength()),
                String.valueOf(bean.getMsgType()), String.valueOf(bean.getTransactionState()),
                String.valueOf(context.getContextCode()), String.valueOf(bean.getStoreHost()),
                String.valueOf(bean.getOffsetMsgId())));
        }
    }
}

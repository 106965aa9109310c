import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * {@code ResumedCheck NAME_SERVER TOPIC}: nobody tells what became of a transaction until the broker gives it up. Then an
 * operator has it checked anew, and it is committed. Prints {@code ok TOPIC}, or ends with a stack trace. The broker gives
 * up soon and checks every second.
 */
public final class ResumedCheck {
    private static final String DISCARDED = "TRANS_CHECK_MAX_TIME_TOPIC";
    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final AtomicBoolean KNOWN = new AtomicBoolean();
    private static final AtomicInteger CHECKS = new AtomicInteger();

    private ResumedCheck() {}

    public static void main(String[] arguments) throws Exception {
        String nameServer = arguments[0];
        String topic = arguments[1];
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(nameServer);
        admin.start();
        DefaultMQPullConsumer reader = new DefaultMQPullConsumer("reader-" + topic);
        reader.setNamesrvAddr(nameServer);
        reader.start();
        TransactionMQProducer producer = new TransactionMQProducer("producer-" + topic);
        producer.setNamesrvAddr(nameServer);
        producer.setTransactionListener(new Listener());
        producer.setSendMsgTimeout(10_000);
        producer.start();
        byte[] body = "given up".getBytes(StandardCharsets.UTF_8);
        producer.sendMessageInTransaction(new Message(topic, body), null);

        MessageExt discarded = await(reader, DISCARDED).get(0);
        require(CHECKS.get() >= 1, "no check came");
        require(read(reader, topic).isEmpty(), "delivered before it was committed");
        KNOWN.set(true);
        String place = ((MessageClientExt) discarded).getOffsetMsgId();
        require(admin.resumeCheckHalfMessage(place), "the broker refused to check it anew");
        List<MessageExt> delivered = await(reader, topic);
        require(delivered.size() == 1, "delivered " + delivered);
        require(new String(delivered.get(0).getBody(), StandardCharsets.UTF_8).equals("given up"), "another body");
        System.out.println("ok " + topic);
        // Some threads of the client are no daemons and outlive its shutdown.
        System.exit(0);
    }

    private static List<MessageExt> await(DefaultMQPullConsumer reader, String topic) throws Exception {
        long deadline = System.nanoTime() + WAIT_NANOS;
        while (true) {
            List<MessageExt> found = read(reader, topic);
            if (!found.isEmpty()) {
                return found;
            }
            require(System.nanoTime() < deadline, "nothing in " + topic);
            Thread.sleep(100);
        }
    }

    private static List<MessageExt> read(DefaultMQPullConsumer reader, String topic) throws Exception {
        List<MessageExt> found = new ArrayList<>();
        Set<MessageQueue> queues;
        try {
            queues = reader.fetchSubscribeMessageQueues(topic);
        } catch (MQClientException e) {
            return found;
        }
        for (MessageQueue queue : queues) {
            PullResult result = reader.pull(queue, "*", 0, 32);
            if (result.getMsgFoundList() != null) {
                found.addAll(result.getMsgFoundList());
            }
        }
        return found;
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static final class Listener implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return LocalTransactionState.UNKNOW;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            CHECKS.incrementAndGet();
            return KNOWN.get() ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.UNKNOW;
        }
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.SerializeType;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Tries what accounts may do. Each line of the input is an attempt, its words separated by tabs: name server, broker,
 * encoding of headers, operation, access key (empty: nothing is signed), secret, token, topic, group. The answer is a
 * line: {@code ok}, or code and remark of the refusal.
 */
public final class AccountAttempts {
    private static final String BROKER_NAME = "interop-broker";
    private static final long PATIENCE_SECONDS = 30;
    private static final int CALL_MS = 15_000;
    private static final int HEARTBEAT_MS = 1_000;

    private final String nameServer;
    private final String broker;
    private final RPCHook hook;
    private final String instance;
    private final Map<String, DefaultMQPullConsumer> pullers = new HashMap<>();
    private DefaultMQProducer producer;
    private DefaultMQAdminExt admin;

    private AccountAttempts(String nameServer, String broker, RPCHook hook, String instance) {
        this.nameServer = nameServer;
        this.broker = broker;
        this.hook = hook;
        this.instance = instance;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<List<String>, AccountAttempts> accounts = new HashMap<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            List<String> account = List.of(words[1], words[2], words[4], words[5], words[6]);
            AccountAttempts attempts = accounts.get(account);
            if (attempts == null) {
                RPCHook hook = hook(SerializeType.valueOf(words[2]), words[4], words[5], words[6]);
                attempts = new AccountAttempts(words[0], words[1], hook, "instance-" + accounts.size());
                accounts.put(account, attempts);
            }
            String outcome = "ok";
            try {
                attempts.attempt(words[3], words[7], words[8]);
            } catch (Exception e) {
                outcome = outcome(e);
            }
            out.println(outcome.replaceAll("\\s+", " "));
        }
        // The clients' threads would take their time.
        Runtime.getRuntime().halt(0);
    }

    private void attempt(String operation, String topic, String group) throws Exception {
        MessageQueue queue = new MessageQueue(topic, BROKER_NAME, 0);
        switch (operation) {
            case "send" -> producer().send(message(topic), CALL_MS);
            case "batch" -> producer().send(List.of(message(topic), message(topic)), CALL_MS);
            case "pull" -> puller(group).pull(queue, "*", 0, 1, CALL_MS);
            case "consume" -> consume(topic, group);
            case "max-offset" -> puller(group).maxOffset(queue);
            case "commit" -> admin().updateConsumeOffset(broker, group, queue, 0);
            case "create-topic" -> admin().createAndUpdateTopicConfig(broker, new TopicConfig(topic));
            case "delete-topic" -> admin().deleteTopicInBroker(Set.of(broker), topic);
            case "create-group" -> createGroup(group);
            case "delete-group" -> admin().deleteSubscriptionGroup(broker, group);
            case "topic-stats" -> admin().examineTopicStats(topic);
            case "consume-stats" -> admin().examineConsumeStats(group);
            case "broker-config" -> admin().getBrokerConfig(broker);
            case "update-config" -> {
                Properties properties = new Properties();
                properties.setProperty("defaultTopicQueueNums", "4");
                admin().updateBrokerConfig(broker, properties);
            }
            default -> throw new IllegalArgumentException(operation);
        }
    }

    private static Message message(String topic) {
        return new Message(topic, "tag", "schlüssel 值😀", "body".getBytes(StandardCharsets.UTF_8));
    }

    private DefaultMQProducer producer() throws MQClientException {
        if (producer == null) {
            producer = new DefaultMQProducer("account-producers", hook);
            producer.setNamesrvAddr(nameServer);
            producer.setInstanceName(instance);
            producer.setRetryTimesWhenSendFailed(0);
            producer.start();
        }
        return producer;
    }

    private DefaultMQPullConsumer puller(String group) throws MQClientException {
        DefaultMQPullConsumer found = pullers.get(group);
        if (found == null) {
            found = new DefaultMQPullConsumer(group, hook);
            found.setNamesrvAddr(nameServer);
            found.setInstanceName(instance);
            found.start();
            pullers.put(group, found);
        }
        return found;
    }

    private DefaultMQAdminExt admin() throws MQClientException {
        if (admin == null) {
            admin = new DefaultMQAdminExt(hook, CALL_MS);
            admin.setNamesrvAddr(nameServer);
            admin.setInstanceName(instance);
            admin.start();
        }
        return admin;
    }

    private void consume(String topic, String group) throws Exception {
        CountDownLatch received = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group, hook, new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(nameServer);
        // A heartbeat is about all consumers of an instance, and one with a group that is closed would be refused.
        consumer.setInstanceName(instance + "-" + group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        // The 5.x client may skip the heartbeat that its first pulls need; the next must not be 30 seconds away.
        consumer.setHeartbeatBrokerInterval(HEARTBEAT_MS);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            received.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        // One message has to be new: the group may have been at the end already.
        producer().send(message(topic), CALL_MS);
        if (!received.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("nothing was consumed");
        }
        // The next client of this group needs the queue. It is given back at once, what follows takes seconds.
        new Thread(consumer::shutdown).start();
    }

    private void createGroup(String group) throws Exception {
        // 5.x has the class in another package.
        for (var method : DefaultMQAdminExt.class.getMethods()) {
            if (method.getName().equals("createAndUpdateSubscriptionGroupConfig")) {
                Class<?> type = method.getParameterTypes()[1];
                Object config = type.getConstructor().newInstance();
                type.getMethod("setGroupName", String.class).invoke(config, group);
                method.invoke(admin(), broker, config);
            }
        }
    }

    private static RPCHook hook(SerializeType encoding, String key, String secret, String token) {
        RPCHook signing = null;
        if (!key.isEmpty()) {
            signing = new AclClientRPCHook(token.isEmpty()
                ? new SessionCredentials(key, secret)
                : new SessionCredentials(key, secret, token));
        }
        return new Hook(encoding, signing);
    }

    private record Hook(SerializeType encoding, RPCHook next) implements RPCHook {
        @Override
        public void doBeforeRequest(String address, RemotingCommand request) {
            request.setSerializeTypeCurrentRPC(encoding);
            if (next != null) {
                next.doBeforeRequest(address, request);
            }
        }

        @Override
        public void doAfterResponse(String address, RemotingCommand request, RemotingCommand response) {
        }
    }

    private static String outcome(Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof MQBrokerException refused) {
                return refused.getResponseCode() + " " + refused.getErrorMessage();
            }
        }
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof MQClientException refused && refused.getResponseCode() > 0) {
                return refused.getResponseCode() + " " + refused.getErrorMessage();
            }
        }
        return "error " + thrown;
    }
}

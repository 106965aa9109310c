package cometmq.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListener;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.constant.PermName;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that a consumer cannot process: tried again, and buried in the end. Levels as in {@link Delays}. */
final class Retries {
    private Retries() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("retry-until-success", Retries::untilSuccess);
        all.put("retry-dead-letter", Retries::deadLetter);
        all.put("retry-dead-letter-at-once", Retries::deadLetterAtOnce);
        all.put("retry-orderly-dead-letter", Retries::orderlyDeadLetter);
    }

    private static void untilSuccess(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("stubborn", 1);
        String group = groupWithRetries(cluster, "stubborn-group");
        Tries tries = new Tries();
        MessageListenerConcurrently listener = (messages, context) -> {
            tries.add(messages);
            return messages.get(0).getReconsumeTimes() < 2
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
        start(cluster, group, topic, listener, 16);
        String id = cluster.producer.send(new Message(topic, "tag", "key", body())).getMsgId();
        tries.require(3, topic, id);
    }

    private static void deadLetter(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("hopeless", 1);
        String group = groupWithRetries(cluster, "hopeless-group");
        Tries tries = new Tries();
        MessageListenerConcurrently listener = (messages, context) -> {
            tries.add(messages);
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        };
        start(cluster, group, topic, listener, 2);
        String id = cluster.producer.send(new Message(topic, "tag", "key", body())).getMsgId();
        tries.require(3, topic, id);
        MessageExt letter = letterOf(cluster, group, topic, id);
        Check.equal(3, letter.getReconsumeTimes(), "tries of the dead letter");

        // What an operator does with it: read it, and send it again.
        Message again = new Message(letter.getProperty(MessageConst.PROPERTY_RETRY_TOPIC), "again", "", letter.getBody());
        cluster.producer.send(again);
        cluster.readTopic(topic, 2);
    }

    private static void deadLetterAtOnce(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("rejected", 1);
        String group = groupWithRetries(cluster, "rejected-group");
        Tries tries = new Tries();
        MessageListenerConcurrently listener = (messages, context) -> {
            tries.add(messages);
            context.setDelayLevelWhenNextConsume(-1);
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        };
        start(cluster, group, topic, listener, 16);
        String id = cluster.producer.send(new Message(topic, "tag", "key", body())).getMsgId();
        letterOf(cluster, group, topic, id);
        tries.require(1, topic, id);
    }

    /** An orderly consumer tries on its own and sends what it gives up to its retry topic, which the broker refuses. */
    private static void orderlyDeadLetter(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("stuck", 1);
        String group = groupWithRetries(cluster, "stuck-group");
        Tries tries = new Tries();
        MessageListenerOrderly listener = (messages, context) -> {
            if (messages.get(0).getTags().equals("good")) {
                return ConsumeOrderlyStatus.SUCCESS;
            }
            tries.add(messages);
            context.setSuspendCurrentQueueTimeMillis(100);
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
        };
        DefaultMQPushConsumer consumer = start(cluster, group, topic, listener, 2);
        String id = cluster.producer.send(new Message(topic, "bad", "key", body())).getMsgId();
        cluster.producer.send(new Message(topic, "good", "key", body()));
        letterOf(cluster, group, topic, id);
        // What stood behind it is not held up any longer.
        cluster.commitNow(topic, Map.of(0, 2L), consumer);
    }

    private static DefaultMQPushConsumer start(
            Cluster cluster, String group, String topic, MessageListener listener, int times) throws Exception {
        DefaultMQPushConsumer consumer = cluster.newConsumer(group, topic, "*", listener);
        consumer.setMaxReconsumeTimes(times);
        consumer.setPersistConsumerOffsetInterval(500);
        cluster.start(consumer);
        return consumer;
    }

    /**
     * A group whose retry topic exists before its consumer starts. The first heartbeat creates it otherwise, but the
     * consumer has looked for its queues by then and looks again much later.
     */
    private static String groupWithRetries(Cluster cluster, String stem) throws Exception {
        String group = cluster.name(stem);
        String retries = MixAll.getRetryTopic(group);
        TopicConfig config = new TopicConfig(retries, 1, 1, PermName.PERM_READ | PermName.PERM_WRITE);
        cluster.admin.createAndUpdateTopicConfig(cluster.brokerAddress, config);
        cluster.awaitRoute(retries);
        return group;
    }

    private static MessageExt letterOf(Cluster cluster, String group, String topic, String id) throws Exception {
        String dead = MixAll.getDLQTopic(group);
        cluster.awaitRoute(dead);
        List<MessageExt> letters = Cluster.flatten(cluster.readTopic(dead, 1));
        MessageExt letter = letters.get(0);
        Check.equal(id, letter.getMsgId(), "id of the dead letter");
        Check.equal(topic, letter.getProperty(MessageConst.PROPERTY_RETRY_TOPIC), "topic that the dead letter came from");
        Check.equal(new String(body()), new String(letter.getBody()), "body of the dead letter");
        Check.equal("key", letter.getKeys(), "key of the dead letter");
        return letter;
    }

    private static byte[] body() {
        return "nobody can process this".getBytes();
    }

    /** What a listener was asked to process, one after the other. */
    private static final class Tries {
        private final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();

        void add(List<MessageExt> messages) {
            for (MessageExt message : messages) {
                seen.add(message.getTopic() + " " + message.getMsgId() + " " + message.getReconsumeTimes());
            }
        }

        /** So many tries of one message, under its own topic and its own id, counted from 0. */
        void require(int count, String topic, String id) throws InterruptedException {
            Check.eventually(count + " tries", () -> seen.size() >= count ? null : seen.toString());
            List<String> expected = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                expected.add(topic + " " + id + " " + i);
            }
            Check.equal(expected, new ArrayList<>(seen), "tries");
        }
    }
}

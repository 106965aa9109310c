package cometmq.interop;

import java.nio.charset.StandardCharsets;
import java.util.Map;

import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Questions and answers: a producer that waits for what a consumer sends back to it. */
final class Requests {
    private static final long ANSWER_MS = 20_000;

    private Requests() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("request-reply", Requests::reply);
        all.put("request-without-reply", Requests::withoutReply);
    }

    private static void reply(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("questions", 2);
        DefaultMQProducer answering = producer(cluster, "answering");
        MessageListenerConcurrently listener = (messages, context) -> {
            for (MessageExt question : messages) {
                try {
                    answering.send(MessageUtil.createReplyMessage(question, answer(question.getBody())));
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
        cluster.startConsumer(cluster.name("questions-group"), topic, "*", listener);
        DefaultMQProducer asking = producer(cluster, "asking");
        for (int i = 0; i < 5; i++) {
            byte[] question = ("question " + i).getBytes(StandardCharsets.UTF_8);
            Message found = asking.request(new Message(topic, question), ANSWER_MS);
            Check.equal(text(answer(question)), text(found.getBody()), "answer " + i);
        }
        // A long answer is compressed on its way.
        byte[] question = "long ".repeat(3_000).getBytes(StandardCharsets.UTF_8);
        Message found = asking.request(new Message(topic, question), ANSWER_MS);
        Check.equal(text(answer(question)), text(found.getBody()), "long answer");
    }

    private static void withoutReply(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("monologue", 1);
        DefaultMQProducer asking = producer(cluster, "asking-nobody");
        Check.refused(RequestTimeoutException.class, "a request that nobody answers",
            () -> asking.request(new Message(topic, new byte[] {1}), 3_000));
        cluster.readTopic(topic, 1);
    }

    private static DefaultMQProducer producer(Cluster cluster, String stem) throws Exception {
        DefaultMQProducer made = cluster.newProducer(stem);
        made.start();
        cluster.atEnd(made::shutdown);
        return made;
    }

    private static byte[] answer(byte[] question) {
        return ("you asked: " + text(question)).getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}

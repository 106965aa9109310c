package cometmq.interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Subscriptions by SQL92 expressions. The broker must have {@code enablePropertyFilter=true}. */
final class Expressions {
    private static final long WOKEN_MS = 4_000;
    private static final int SUBSCRIPTION_PARSE_FAILED = 23;

    /** Numbers, text, null, and a property that is sometimes no number; the last message always matches. */
    private static final String EXPRESSION =
        "(price BETWEEN 10 AND 20.5 OR shade IN ('grün', 'it''s')) AND NOT (sold IS NOT NULL) AND TAGS <> 'no' OR number = 59";

    private Expressions() {}

    static Map<String, Main.Scenario> all() {
        Map<String, Main.Scenario> all = new LinkedHashMap<>();
        all.put("expression-push", Expressions::push);
        all.put("expression-change", Expressions::change);
        all.put("expression-pull", Expressions::pull);
        all.put("expression-long-polling", Expressions::longPolling);
        all.put("expression-lite-pull", Expressions::litePull);
        all.put("expression-refused", Expressions::refused);
        return all;
    }

    private static void push(Cluster cluster) throws Exception {
        // One queue and one thread: when the last message is in, none can come after it.
        String topic = cluster.createTopic("expression-push", 1);
        Inbox early = new Inbox();
        startPush(cluster, "expression-early", topic, EXPRESSION, early);
        Ledger ledger = new Ledger();
        Set<Integer> expected = sendGoods(cluster, topic, ledger);
        // The first consumer waited in a long poll, the second finds everything stored.
        Inbox late = new Inbox();
        startPush(cluster, "expression-late", topic, EXPRESSION, late);
        ledger.require(Inbox.await(expected.size(), early), expected);
        ledger.require(Inbox.await(expected.size(), late), expected);
    }

    /** A consumer that comes back with another expression gets what fits the new one. */
    private static void change(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("expression-change", 1);
        Ledger ledger = new Ledger();
        MessageQueue queue = cluster.queue(topic, 0);
        Inbox first = new Inbox();
        DefaultMQPushConsumer consumer = startPush(cluster, "expression-change", topic, "kind = 'a'", first);
        cluster.producer.send(with(ledger.write(topic, "t"), "kind", "b"), queue);
        cluster.producer.send(with(ledger.write(topic, "t"), "kind", "a"), queue);
        ledger.require(Inbox.await(1, first), Set.of(1));
        consumer.shutdown();
        Inbox second = new Inbox();
        startPush(cluster, "expression-change", topic, "kind = 'b'", second);
        cluster.producer.send(with(ledger.write(topic, "t"), "kind", "a"), queue);
        cluster.producer.send(with(ledger.write(topic, "t"), "kind", "b"), queue);
        ledger.require(Inbox.await(1, second), Set.of(3));
    }

    private static void pull(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("expression-pull", 1);
        MessageQueue queue = cluster.queue(topic, 0);
        Ledger ledger = new Ledger();
        Set<Integer> expected = sendGoods(cluster, topic, ledger);
        DefaultMQPullConsumer consumer = startPull(cluster, "expression-pull");
        // The client asks for nothing by expression before a heartbeat has told it the broker's version.
        consumer.fetchSubscribeMessageQueues(topic);
        Check.eventually("a pull by expression", () -> {
            try {
                consumer.pull(queue, MessageSelector.bySql("TRUE"), 0, 1);
                return null;
            } catch (MQClientException tooEarly) {
                return tooEarly.toString();
            }
        });
        List<MessageExt> found = new ArrayList<>();
        for (long offset = 0; offset < 60;) {
            PullResult result = consumer.pull(queue, MessageSelector.bySql(EXPRESSION), offset, 7);
            Check.that(result.getNextBeginOffset() > offset, "progress beyond " + offset + ": " + result);
            offset = result.getNextBeginOffset();
            if (result.getPullStatus() == PullStatus.FOUND) {
                found.addAll(result.getMsgFoundList());
            }
        }
        ledger.require(found, expected);
        PullResult nothing = consumer.pull(queue, MessageSelector.bySql("price > 1000000"), 0, 32);
        Check.equal(PullStatus.NO_MATCHED_MSG, nothing.getPullStatus(), "status when nothing fits");
        Check.equal(60L, nothing.getNextBeginOffset(), "where to go on when nothing fits");
    }

    private static void longPolling(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("expression-polling", 1);
        MessageQueue queue = cluster.queue(topic, 0);
        Ledger ledger = new Ledger();
        cluster.producer.send(with(ledger.write(topic, "t"), "size", "1"), queue);

        Inbox inbox = new Inbox();
        startPush(cluster, "expression-woken", topic, "size > 5", inbox);
        Check.eventually("everything looked at", () -> {
            Map<Integer, Long> offsets = cluster.committed(cluster.name("expression-woken"), topic);
            return Map.of(0, 1L).equals(offsets) ? null : offsets.toString();
        });
        cluster.producer.send(with(ledger.write(topic, "t"), "size", "3"), queue);
        cluster.producer.send(with(ledger.write(topic, "t"), "size", "x"), queue);
        long started = System.nanoTime();
        cluster.producer.send(with(ledger.write(topic, "t"), "size", "7"), queue);
        ledger.require(Inbox.await(1, inbox), Set.of(3));
        long ms = (System.nanoTime() - started) / 1_000_000;
        Check.that(ms < WOKEN_MS, "woken by the message that fits, but it took ms: " + ms);
    }

    private static void litePull(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("expression-lite", 2);
        Ledger ledger = new Ledger();
        Set<Integer> expected = sendGoods(cluster, topic, ledger);
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(cluster.name("expression-lite"));
        consumer.setNamesrvAddr(cluster.nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, MessageSelector.bySql(EXPRESSION));
        consumer.start();
        cluster.atEnd(consumer::shutdown);
        List<MessageExt> polled = new ArrayList<>();
        Check.eventually(expected.size() + " messages polled", () -> {
            polled.addAll(consumer.poll(100));
            return polled.size() >= expected.size() ? null : polled.size() + " of them";
        });
        ledger.require(polled, expected);
    }

    private static void refused(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("expression-refused", 1);
        DefaultMQPushConsumer consumer =
            newPush(cluster, "expression-refused", topic, "price > 'cheap'", new Inbox());
        try {
            consumer.start();
        } catch (MQClientException refusal) {
            Check.equal(SUBSCRIPTION_PARSE_FAILED, codeOf(refusal), "code of the refusal " + refusal);
            return;
        } finally {
            consumer.shutdown();
        }
        throw new AssertionError("a consumer with a wrong expression started");
    }

    private static int codeOf(MQClientException refusal) {
        return refusal.getCause() instanceof MQClientException cause ? cause.getResponseCode() : refusal.getResponseCode();
    }

    /** Sends 60 messages one after the other and returns the numbers of those that {@link #EXPRESSION} takes. */
    private static Set<Integer> sendGoods(Cluster cluster, String topic, Ledger ledger) throws Exception {
        Set<Integer> wanted = new TreeSet<>(Set.of(59));
        List<MessageQueue> queues = new ArrayList<>(cluster.producer.fetchPublishMessageQueues(topic));
        for (int i = 0; i < 60; i++) {
            Message message = ledger.write(topic, i % 11 == 0 ? "no" : "yes");
            // Read as a 32-bit number first, so a price that is none, or has a point, ends the whole comparison.
            String price = i % 7 == 0 ? null : i % 13 == 0 ? "cheap" : Integer.toString(i);
            String shade = i % 5 == 0 ? "grün" : i % 5 == 1 ? "it's" : i % 5 == 2 ? "red" : null;
            String sold = i % 8 == 3 ? "yes" : null;
            with(with(with(message, "price", price), "shade", shade), "sold", sold);
            cluster.producer.send(message, queues.get(i % queues.size()));
            boolean fits = price != null && i >= 10 && i <= 20 || i % 5 < 2;
            if (!"cheap".equals(price) && fits && sold == null && i % 11 != 0) {
                wanted.add(i);
            }
        }
        return wanted;
    }

    private static Message with(Message message, String name, String value) {
        if (value != null) {
            message.putUserProperty(name, value);
        }
        return message;
    }

    private static DefaultMQPushConsumer startPush(
            Cluster cluster, String group, String topic, String expression, Inbox inbox) throws Exception {
        DefaultMQPushConsumer consumer = newPush(cluster, group, topic, expression, inbox);
        cluster.start(consumer);
        return consumer;
    }

    private static DefaultMQPushConsumer newPush(
            Cluster cluster, String group, String topic, String expression, Inbox inbox) throws Exception {
        DefaultMQPushConsumer consumer = cluster.newConsumer(cluster.name(group), topic, "*", inbox);
        consumer.subscribe(topic, MessageSelector.bySql(expression));
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        return consumer;
    }

    private static DefaultMQPullConsumer startPull(Cluster cluster, String group) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(cluster.name(group));
        consumer.setNamesrvAddr(cluster.nameServer);
        consumer.setHeartbeatBrokerInterval(Cluster.HEARTBEAT_MS);
        consumer.start();
        cluster.atEnd(consumer::shutdown);
        return consumer;
    }
}

package cometmq.interop;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;

import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.MessageExt;

/** A listener that accepts and keeps whatever arrives. Filled by the client's threads, read by the scenario's. */
final class Inbox implements MessageListenerConcurrently {
    private final ConcurrentLinkedQueue<MessageExt> received = new ConcurrentLinkedQueue<>();

    @Override
    public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
        received.addAll(messages);
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    List<MessageExt> messages() {
        return new ArrayList<>(received);
    }

    int size() {
        return received.size();
    }

    /** Waits until the inboxes together hold that many, and returns all of it, even what is too much. */
    static List<MessageExt> await(int count, Inbox... inboxes) throws InterruptedException {
        Check.eventually(count + " messages consumed", () -> {
            int size = gather(inboxes).size();
            return size >= count ? null : size + " of them";
        });
        return gather(inboxes);
    }

    static Set<Integer> numbers(Collection<MessageExt> messages) {
        Set<Integer> numbers = new HashSet<>();
        messages.forEach(message -> numbers.add(Ledger.numberOf(message)));
        return numbers;
    }

    private static List<MessageExt> gather(Inbox... inboxes) {
        List<MessageExt> all = new ArrayList<>();
        for (Inbox inbox : inboxes) {
            all.addAll(inbox.received);
        }
        return all;
    }
}

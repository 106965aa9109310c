package cometmq.interop;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;

import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Messages that depend on a local transaction. The broker looks for open ones every second, asks about those that are
 * older than a second, and does so often enough: {@code transactionTimeOut}, {@code transactionCheckInterval},
 * {@code transactionCheckMax}.
 */
final class Transactions {
    private Transactions() {}

    static void addTo(Map<String, Main.Scenario> all) {
        all.put("transaction-outcomes", Transactions::outcomes);
        all.put("transaction-check-by-another-producer", Transactions::checkByAnotherProducer);
    }

    /** By number: committed, rolled back, or unknown until asked, and then committed or rolled back. */
    private static final class Bank implements TransactionListener {
        final Set<Integer> executed = new ConcurrentSkipListSet<>();
        final Set<Integer> checked = new ConcurrentSkipListSet<>();
        final Set<String> faults = new ConcurrentSkipListSet<>();
        private final boolean knowsAtOnce;

        Bank(boolean knowsAtOnce) {
            this.knowsAtOnce = knowsAtOnce;
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            int number = Ledger.numberOf(message);
            executed.add(number);
            if (!argument.equals("argument " + number)) {
                faults.add("argument of " + number + " is " + argument);
            }
            return isKnown(number) ? outcome(number) : LocalTransactionState.UNKNOW;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            int number = Ledger.numberOf(message);
            checked.add(number);
            String id = message.getProperty(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX);
            if (!message.getTransactionId().equals(id)) {
                faults.add("transaction " + message.getTransactionId() + " of message " + id);
            }
            return outcome(number);
        }

        private boolean isKnown(int number) {
            return knowsAtOnce && number % 3 != 2;
        }

        static LocalTransactionState outcome(int number) {
            return isCommitted(number)
                ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
        }

        static boolean isCommitted(int number) {
            return number % 2 == 0;
        }
    }

    private static void outcomes(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("transactions", 2);
        Inbox inbox = new Inbox();
        cluster.startConsumer(cluster.name("transactions-group"), topic, "*", inbox);
        Bank bank = new Bank(true);
        TransactionMQProducer producer = producer(cluster, "bank", bank);
        Ledger ledger = new Ledger();
        int count = 60;
        Set<Integer> unknown = new TreeSet<>();
        for (int i = 0; i < count; i++) {
            if (!bank.isKnown(i)) {
                unknown.add(i);
            }
            send(producer, ledger.write(topic, "tag-" + i % 2), i);
        }
        Check.equal(count, bank.executed.size(), "local transactions");
        Check.eventually("a check of " + unknown, () ->
            bank.checked.containsAll(unknown) ? null : bank.checked.toString());
        ledger.require(Inbox.await(count / 2, inbox), committed(count));
        // Everything else was decided before the last check was answered, so nothing more can come.
        List<MessageExt> stored = Cluster.flatten(cluster.readTopic(topic, count / 2));
        ledger.require(stored, committed(count));
        for (MessageExt message : stored) {
            Check.equal(message.getMsgId(), message.getTransactionId(), "transaction of " + message);
        }
        Check.equal(Set.of(), bank.faults, "faults");
    }

    private static void checkByAnotherProducer(Cluster cluster) throws Exception {
        String topic = cluster.createTopic("orphans", 1);
        Ledger ledger = new Ledger();
        int count = 12;
        TransactionMQProducer first = producer(cluster, "orphanage", new Bank(false));
        for (int i = 0; i < count; i++) {
            send(first, ledger.write(topic, "orphan"), i);
        }
        first.shutdown();
        Bank bank = new Bank(false);
        TransactionMQProducer second = producer(cluster, "orphanage", bank);
        // A client greets the brokers whose routes it knows, and it learns a route by a send.
        String other = cluster.createTopic("greetings", 1);
        second.send(new Message(other, new byte[] {1}));
        ledger.require(Cluster.flatten(cluster.readTopic(topic, count / 2)), committed(count));
        Check.equal(Set.of(), bank.executed, "transactions of the second producer");
        Check.equal(Set.of(), bank.faults, "faults");
    }

    private static void send(TransactionMQProducer producer, Message message, int number) throws Exception {
        TransactionSendResult result = producer.sendMessageInTransaction(message, "argument " + number);
        Check.equal(SendStatus.SEND_OK, result.getSendStatus(), "status of " + number);
    }

    private static Set<Integer> committed(int count) {
        Set<Integer> numbers = new TreeSet<>();
        for (int i = 0; i < count; i++) {
            if (Bank.isCommitted(i)) {
                numbers.add(i);
            }
        }
        return numbers;
    }

    private static TransactionMQProducer producer(Cluster cluster, String stem, TransactionListener listener)
            throws Exception {
        TransactionMQProducer made = new TransactionMQProducer(cluster.name(stem));
        made.setNamesrvAddr(cluster.nameServer);
        made.setSendMsgTimeout(10_000);
        made.setHeartbeatBrokerInterval(Cluster.HEARTBEAT_MS);
        made.setTransactionListener(listener);
        made.start();
        cluster.atEnd(made::shutdown);
        return made;
    }
}

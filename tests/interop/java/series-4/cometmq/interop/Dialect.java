package cometmq.interop;

import java.util.Set;

import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What the clients of the 4.x and 5.x series spell differently. This one is for 4.x. */
final class Dialect {
    private Dialect() {}

    static void createTopic(DefaultMQProducer producer, String keyTopic, String topic, int queues)
            throws MQClientException {
        producer.createTopic(keyTopic, topic, queues);
    }

    static void deleteTopicInNameServer(DefaultMQAdminExt admin, String nameServer, String topic, String clusterName)
            throws Exception {
        admin.deleteTopicInNameServer(Set.of(nameServer), topic, clusterName);
    }
}

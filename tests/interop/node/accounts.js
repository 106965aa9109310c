'use strict';

const { Message } = require('ali-ons');
const { CALL_MS, received } = require('./cluster');

const BROKER_NAME = 'interop-broker';
const HAS_SUBSCRIPTION = 4;

/**
 * Tries what accounts may do. An attempt is OPERATION|KEY|SECRET|TOPIC|GROUP; without a key nothing is signed. Prints a
 * line for each: "ok", or code and text of the refusal.
 */
async function tryAll(cluster, attempts) {
  const producers = new Map();
  for (const attempt of attempts) {
    const [ operation, key, secret, topic, group ] = attempt.split('|');
    const account = { accessKeyId: key, accessKeySecret: secret };
    if (!producers.has(`${key} ${secret}`)) {
      producers.set(`${key} ${secret}`, await cluster.startProducer(account));
    }
    const producer = producers.get(`${key} ${secret}`);
    let outcome = 'ok';
    try {
      await operations[operation](cluster, producer, topic, group, account);
    } catch (error) {
      outcome = `${error.code} ${error.message}`.replace(/\s+/g, ' ');
    }
    console.log(outcome);
  }
}

const operations = {
  // The client's own send tells nobody why it failed.
  async send(cluster, producer, topic) {
    await producer.tryToFindTopicPublishInfo(topic);
    await producer.sendKernelImpl(new Message(topic, 'tag', 'body'), { topic, brokerName: BROKER_NAME, queueId: 0 });
  },

  async pull(cluster, producer, topic, group) {
    await producer._mqClient.pullMessage(cluster.broker, {
      consumerGroup: group,
      topic,
      queueId: 0,
      queueOffset: 0,
      maxMsgNums: 1,
      sysFlag: HAS_SUBSCRIPTION,
      commitOffset: 0,
      suspendTimeoutMillis: 0,
      subscription: '*',
      subVersion: 0,
    }, CALL_MS);
  },

  async consume(cluster, producer, topic, group, account) {
    const consumer = await cluster.startConsumer(group, topic, '*', Object.assign({ consumerGroup: group }, account));
    // One message has to be new: the group may have been at the end already.
    await operations.send(cluster, producer, topic);
    await received(1, consumer);
    await consumer.close();
  },

  async 'max-offset'(cluster, producer, topic) {
    await producer._mqClient.getMaxOffset(cluster.broker, topic, 0, CALL_MS);
  },

  async 'create-topic'(cluster, producer, topic) {
    const config = { topicName: topic, readQueueNums: 1, writeQueueNums: 1, perm: 6, topicSysFlag: 0, order: false };
    await producer._mqClient.createTopic(cluster.broker, 'TBW102',
      Object.assign(config, { topicFilterType: 'SINGLE_TAG' }), CALL_MS);
  },

  async heartbeat(cluster, producer, topic, group) {
    const subscription = { classFilterMode: false, topic, subString: '*', tagsSet: [], codeSet: [], subVersion: 1 };
    await producer._mqClient.sendHearbeat(cluster.broker, {
      clientID: producer.clientId,
      producerDataSet: [],
      consumerDataSet: [{
        groupName: group,
        consumeType: 'CONSUME_PASSIVELY',
        messageModel: 'CLUSTERING',
        consumeFromWhere: 'CONSUME_FROM_LAST_OFFSET',
        subscriptionDataSet: [ subscription ],
        unitMode: false,
      }],
    }, CALL_MS);
  },

  async members(cluster, producer, topic, group) {
    await producer._mqClient.getConsumerIdListByGroup(cluster.broker, group, CALL_MS);
  },

  async position(cluster, producer, topic, group) {
    await producer._mqClient.queryConsumerOffset(cluster.broker,
      { consumerGroup: group, topic, queueId: 0 }, CALL_MS);
  },

  async 'send-back'(cluster, producer, topic, group) {
    await producer._mqClient.consumerSendMessageBack(cluster.broker,
      { commitLogOffset: 0, msgId: '', topic }, group, 1, CALL_MS, 16);
  },
};

module.exports = { tryAll };

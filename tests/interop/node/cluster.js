'use strict';

const httpclient = require('urllib');
const { Consumer, Producer } = require('ali-ons');
const { equal, eventually } = require('./check');
const { message } = require('./ledger');

const KEY_TOPIC = 'TBW102';
const CALL_MS = 10000;

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** One name server with one master broker, as one scenario sees it. */
class Cluster {
  constructor(nameServer, broker, prefix) {
    this.nameServer = nameServer;
    this.broker = broker;
    this.prefix = prefix;
    this._endings = [];
  }

  name(stem) {
    return `${this.prefix}-${stem}`;
  }

  async close() {
    while (this._endings.length) {
      await this._endings.pop()();
    }
  }

  /** Each client gets a name of its own: two of one name would share one connection and one identity. */
  _options() {
    Cluster.clients = (Cluster.clients || 0) + 1;
    return {
      httpclient,
      logger: silent,
      nameSrv: this.nameServer,
      // Of no meaning to a broker without access control.
      accessKeyId: 'nobody',
      accessKeySecret: 'nothing',
      instanceName: `${process.pid}-${Cluster.clients}`,
      sendMsgTimeout: CALL_MS,
    };
  }

  async startProducer(options) {
    const producer = new Producer(Object.assign(this._options(), { producerGroup: this.name('producer') }, options));
    producer.on('error', () => {}); // Its calls say what went wrong.
    await producer.ready();
    this._endings.push(() => producer.close());
    return producer;
  }

  /** Creates a topic by the client's own call and waits until clients can find it. */
  async createTopic(stem, queues) {
    const topic = this.name(stem);
    const producer = await this.startProducer();
    const config = {
      topicName: topic,
      readQueueNums: queues,
      writeQueueNums: queues,
      perm: 6,
      topicFilterType: 'SINGLE_TAG',
      topicSysFlag: 0,
      order: false,
    };
    await producer._mqClient.createTopic(this.broker, KEY_TOPIC, config, CALL_MS);
    await eventually(`route of ${topic}`, async () => {
      const route = await producer._mqClient.getTopicRouteInfoFromNameServer(topic, CALL_MS);
      return route.queueDatas[0].writeQueueNums === queues ? null : JSON.stringify(route);
    });
    return topic;
  }

  /** Sends numbers from `from` up to `to`, one after another; the client takes the queues in turn. */
  async send(topic, from, to, tagOf) {
    const producer = await this.startProducer();
    const receipts = [];
    for (let n = from; n < to; n++) {
      const receipt = await producer.send(message(topic, tagOf(n), n));
      equal('SEND_OK', receipt.sendStatus, `status of send ${n}`);
      receipts.push(receipt);
    }
    return receipts;
  }

  /** A consumer that accepts and keeps whatever arrives, in `consumer.inbox`. */
  async startConsumer(group, topic, tags, options) {
    const consumer = new Consumer(Object.assign(this._options(), {
      consumerGroup: this.name(group),
      consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
      rebalanceInterval: 1000,
    }, options));
    // The client repeats an error as long as a new group has no topic for retries.
    consumer.on('error', () => {});
    consumer.inbox = [];
    consumer.subscribe(topic, tags, async received => {
      consumer.inbox.push(received);
    });
    await consumer.ready();
    this._endings.push(() => consumer._isClosed || consumer.close());
    return consumer;
  }

  /** Everything that a topic holds, read by a group of its own. */
  async read(topic, count) {
    const reader = await this.startConsumer(`${topic}-reader`, topic, '*');
    return await received(count, reader);
  }
}

/** Queues of a topic that a consumer holds at this moment, by the client's own books. */
function ownedQueues(consumer, topic) {
  return [ ...consumer.processQueueTable.values() ]
    .map(entry => entry.messageQueue)
    .filter(queue => queue.topic === topic)
    .map(queue => queue.queueId)
    .sort();
}

/** Waits until the consumers together have that many, and returns all of it, even what is too much. */
async function received(count, ...consumers) {
  const all = () => [].concat(...consumers.map(consumer => consumer.inbox));
  await eventually(`${count} messages consumed`, () => (all().length >= count ? null : `${all().length} of them`));
  return all();
}

module.exports = { CALL_MS, Cluster, ownedQueues, received };

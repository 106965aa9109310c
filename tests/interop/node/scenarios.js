'use strict';

const crypto = require('crypto');
const { Message } = require('ali-ons');
const { that, equal, eventually } = require('./check');
const { message, numberOf, requireExactly, requireUnaltered, range } = require('./ledger');
const { ownedQueues, received } = require('./cluster');

const MANY = 100;
const EARLY = 20;
const LATE = 10;
const always = tag => () => tag;

async function topicCreation(cluster) {
  const topic = await cluster.createTopic('made', 5);
  const receipts = await cluster.send(topic, 0, 10, always('t'));
  const queues = receipts.map(receipt => Number(receipt.messageQueue.queueId));
  equal(range(0, 5), [ ...new Set(queues) ].sort(), 'queues that were sent to');
}

async function sendSync(cluster) {
  const topic = await cluster.createTopic('sync', 4);
  const tagOf = n => `Tag-标签-${n % 3}`;
  const receipts = await cluster.send(topic, 0, MANY, tagOf);
  const stored = await cluster.read(topic, MANY);
  requireExactly(stored, topic, range(0, MANY), tagOf);
  const last = {};
  for (const found of stored) {
    const n = numberOf(found);
    equal(Number(receipts[n].messageQueue.queueId), found.queueId, `queue of ${n}`);
    equal(receipts[n].queueOffset, found.queueOffset, `offset of ${n}`);
    that(n > (last[found.queueId] === undefined ? -1 : last[found.queueId]), `order in queue ${found.queueId}`);
    last[found.queueId] = n;
  }
}

async function sendConcurrent(cluster) {
  const topic = await cluster.createTopic('concurrent', 4);
  const producer = await cluster.startProducer();
  // The first one finds the route for all the others.
  await producer.send(message(topic, 'a', 0));
  await Promise.all(range(1, MANY).map(n => producer.send(message(topic, 'a', n))));
  requireExactly(await cluster.read(topic, MANY), topic, range(0, MANY), always('a'));
}

async function sendCompressed(cluster) {
  const topic = await cluster.createTopic('compressed', 1);
  const producer = await cluster.startProducer();
  const text = 'Wiederholung 繰り返し '.repeat(4000);
  await producer.send(new Message(topic, 'c', text));
  const [ stored ] = await cluster.read(topic, 1);
  that(stored.storeSize < text.length / 10, `a small record, but it has ${stored.storeSize} bytes`);
  that(Buffer.from(text).equals(stored.body), 'the body unaltered');
}

async function sendLarge(cluster) {
  const topic = await cluster.createTopic('large', 1);
  // What cannot be compressed would only grow, and sizes near the limit are the point here.
  const producer = await cluster.startProducer({ compressMsgBodyOverHowmuch: Infinity });
  const noise = crypto.randomBytes((4 << 20) + 1024);
  const refusal = await producer.send(new Message(topic, 'l', noise)).then(() => null, error => error);
  equal(13, refusal && refusal.code, 'code of the refusal');
  const fine = noise.subarray(0, (4 << 20) - 1024);
  await producer.send(new Message(topic, 'l', fine));
  const [ stored ] = await cluster.read(topic, 1);
  that(fine.equals(stored.body), 'the large body unaltered');
}

async function pushBacklog(cluster) {
  const topic = await cluster.createTopic('backlog', 2);
  await cluster.send(topic, 0, 400, always('stock'));
  const consumer = await cluster.startConsumer('backlog-group', topic, '*', { parallelConsumeLimit: 16 });
  requireExactly(await received(400, consumer), topic, range(0, 400), always('stock'));
}

async function pushTagFilter(cluster) {
  const topic = await cluster.createTopic('filtered', 1);
  // "AaAa" and "BBBB" have the same hash code, so a broker that filters by hash ships both and the client drops one.
  const tags = [ 'red', 'blue', 'grün', 'AaAa', 'BBBB', 'redder', 'RED' ];
  const wanted = [ 'red', 'grün', 'AaAa', 'end' ];
  const tagOf = n => (n === 89 ? 'end' : tags[n % tags.length]);
  const expected = range(0, 90).filter(n => wanted.includes(tagOf(n)));
  const early = await cluster.startConsumer('filter-early', topic, wanted.join(' || '));
  await cluster.send(topic, 0, 90, tagOf);
  const late = await cluster.startConsumer('filter-late', topic, wanted.join(' || '));
  requireExactly(await received(expected.length, early), topic, expected, tagOf);
  requireExactly(await received(expected.length, late), topic, expected, tagOf);
}

async function pushBroadcast(cluster) {
  const topic = await cluster.createTopic('broadcast', 3);
  const options = { isBroadcast: true };
  const left = await cluster.startConsumer('broadcast-group', topic, '*', options);
  const right = await cluster.startConsumer('broadcast-group', topic, '*', options);
  await cluster.send(topic, 0, 60, always('all'));
  requireExactly(await received(60, left), topic, range(0, 60), always('all'));
  requireExactly(await received(60, right), topic, range(0, 60), always('all'));
}

async function pushTwoConsumers(cluster) {
  const topic = await cluster.createTopic('shared', 8);
  const left = await cluster.startConsumer('shared-group', topic, '*');
  const right = await cluster.startConsumer('shared-group', topic, '*');
  await eventually('half of the queues for each consumer', () => {
    const [ ofLeft, ofRight ] = [ ownedQueues(left, topic), ownedQueues(right, topic) ];
    const all = [ ...ofLeft, ...ofRight ].sort();
    const shared = ofLeft.length === 4 && all.join() === range(0, 8).join();
    return shared ? null : `${ofLeft} and ${ofRight}`;
  });
  await cluster.send(topic, 0, 80, always('s'));
  requireExactly(await received(80, left, right), topic, range(0, 80), always('s'));
  equal([ 40, 40 ], [ left.inbox.length, right.inbox.length ], 'messages of each');

  await commit(left, topic, 10);
  await left.close();
  await eventually('all queues for the consumer that stayed', () => {
    const owned = ownedQueues(right, topic);
    return owned.length === 8 ? null : `${owned}`;
  });
  await cluster.send(topic, 80, 120, always('s'));
  requireExactly(await received(120, left, right), topic, range(0, 120), always('s'));
  equal(40, left.inbox.length, 'messages of a consumer that left');
}

async function fromFirst(cluster) {
  const topic = await cluster.createTopic('first', 2);
  await cluster.send(topic, 0, EARLY, always('b'));
  const consumer = await cluster.startConsumer('first-group', topic, '*');
  await cluster.send(topic, EARLY, EARLY + LATE, always('b'));
  requireExactly(await received(EARLY + LATE, consumer), topic, range(0, EARLY + LATE), always('b'));
}

async function fromLast(cluster) {
  const topic = await cluster.createTopic('last', 2);
  await cluster.send(topic, 0, EARLY, always('b'));
  const options = { consumeFromWhere: 'CONSUME_FROM_LAST_OFFSET' };
  const consumer = await cluster.startConsumer('last-group', topic, '*', options);
  // The client has asked for the ends of the queues by the time it holds them.
  await eventually('both queues', () => (ownedQueues(consumer, topic).length === 2 ? null : 'fewer'));
  await cluster.send(topic, EARLY, EARLY + LATE, always('b'));
  requireExactly(await received(LATE, consumer), topic, range(EARLY, EARLY + LATE), always('b'));
}

async function fromTimestamp(cluster) {
  const topic = await cluster.createTopic('timestamp', 2);
  await cluster.send(topic, 0, EARLY, always('b'));
  // The client's timestamps are whole seconds. A second in which nothing happens lies between the two halves, because
  // 4.9 servers take the nearest message, be it before or after.
  const moment = (Math.floor(Date.now() / 1000) + 2) * 1000;
  await eventually('a later second', () => (Date.now() >= moment ? null : 'the same'));
  await cluster.send(topic, EARLY, EARLY + LATE, always('b'));
  const options = { consumeFromWhere: 'CONSUME_FROM_TIMESTAMP', consumeTimestamp: digits(new Date(moment)) };
  const consumer = await cluster.startConsumer('timestamp-group', topic, '*', options);
  requireExactly(await received(LATE, consumer), topic, range(EARLY, EARLY + LATE), always('b'));
}

async function beforeRestart(cluster) {
  const topic = await cluster.createTopic('restart', 4);
  await cluster.send(topic, 0, 200, always('r'));
  const consumer = await cluster.startConsumer('restart-group', topic, '*');
  requireExactly(await received(200, consumer), topic, range(0, 200), always('r'));
  await commit(consumer, topic, 50);
  await consumer.close();
  await cluster.send(topic, 200, 300, always('r'));
}

async function afterRestart(cluster) {
  const topic = cluster.name('restart');
  requireExactly(await cluster.read(topic, 300), topic, range(0, 300), always('r'));
  const consumer = await cluster.startConsumer('restart-group', topic, '*');
  const rest = await received(100, consumer);
  rest.forEach(found => requireUnaltered(found, topic, 'r'));
  equal(range(200, 300), rest.map(numberOf).sort((a, b) => a - b), 'numbers after the restart');
}

/** Hands the positions of a consumer to the broker and waits until each queue is at this one. */
async function commit(consumer, topic, position) {
  await eventually(`position ${position} in each queue`, async () => {
    // Repeated, because a handler returns a moment before its client moves the position.
    await consumer.persistConsumerOffset();
    for (const { messageQueue } of consumer.processQueueTable.values()) {
      if (messageQueue.topic === topic) {
        const { brokerAddr } = await consumer.findBrokerAddress(messageQueue);
        const { queueId } = messageQueue;
        const header = { consumerGroup: consumer.consumerGroup, topic, queueId };
        const found = await consumer._mqClient.queryConsumerOffset(brokerAddr, header, 3000);
        if (found !== position) {
          return `queue ${queueId} at ${found}`;
        }
      }
    }
    return null;
  });
}

function digits(date) {
  const parts = [ date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds() ];
  return date.getFullYear() + parts.map(part => String(part).padStart(2, '0')).join('');
}

module.exports = {
  scenarios: {
    'topic-creation': topicCreation,
    'send-sync': sendSync,
    'send-concurrent': sendConcurrent,
    'send-compressed': sendCompressed,
    'send-large': sendLarge,
    'push-backlog': pushBacklog,
    'push-tag-filter': pushTagFilter,
    'push-broadcast': pushBroadcast,
    'push-two-consumers': pushTwoConsumers,
  },
  beginnings: {
    'from-first': fromFirst,
    'from-last': fromLast,
    'from-timestamp': fromTimestamp,
  },
  'before-restart': { 'before-restart': beforeRestart },
  'after-restart': { 'after-restart': afterRestart },
};

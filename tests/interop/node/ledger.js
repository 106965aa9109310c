'use strict';

const { Message } = require('ali-ons');
const { that, equal } = require('./check');

// What client and broker may add on the way. Anything else that was not sent is a fault. RocketMQ 5 stores a separator
// behind the last property, and so do we: this client takes what follows it for a property without a name.
const ADDED_ON_THE_WAY = [
  '',
  'UNIQ_KEY', 'WAIT', 'CLUSTER', 'MSG_REGION', 'TRACE_ON', 'MIN_OFFSET', 'MAX_OFFSET', 'CONSUME_START_TIME',
];

/**
 * Message number n: its content follows from the number alone, so that a second process can tell what a first one
 * sent. Every tenth body is long enough for the client to compress it.
 */
function message(topic, tag, n) {
  const made = new Message(topic, tag, body(n));
  made.flag = n * 7;
  made.keys = [ `order-${n}`, `Schlüssel-键-${n}` ];
  Object.assign(made.properties, properties(n));
  return made;
}

function properties(n) {
  return {
    number: String(n),
    colour: `blau & grün; "red" {${n}}`,
    'ключ-名前': `значение 値 🚀 ${n}`,
  };
}

function body(n) {
  const text = `Nachricht № ${n} – メッセージ 📨`;
  return n % 10 === 9 ? text.repeat(200) : text;
}

function numberOf(received) {
  return Number(received.properties.number);
}

/** The messages with these numbers came, once each, unaltered, and no others. */
function requireExactly(received, topic, expected, tagOf) {
  for (const found of received) {
    requireUnaltered(found, topic, tagOf(numberOf(found)));
  }
  equal(expected, received.map(numberOf).sort((a, b) => a - b), 'numbers of the messages');
}

function requireUnaltered(found, topic, tag) {
  const n = numberOf(found);
  equal(topic, found.topic, `message ${n}: topic`);
  equal(n * 7, found.flag, `message ${n}: flag`);
  that(Buffer.from(body(n)).equals(found.body), `message ${n}: body as sent`);
  const own = Object.assign({}, found.properties);
  ADDED_ON_THE_WAY.forEach(name => delete own[name]);
  const sent = Object.assign({ TAGS: tag, KEYS: `order-${n} Schlüssel-键-${n}` }, properties(n));
  equal(sent, own, `message ${n}: properties`);
}

/** Numbers from `from` up to, but not including, `to`. */
function range(from, to) {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

module.exports = { message, numberOf, requireExactly, requireUnaltered, range };

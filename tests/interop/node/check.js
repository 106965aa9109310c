'use strict';

const { isDeepStrictEqual, inspect } = require('util');

// Generous, because a busy machine is no fault of the server; only a failing run ever waits this long.
const PATIENCE_MS = 30000;

function that(holds, expectation) {
  if (!holds) {
    throw new Error(`expected: ${expectation}`);
  }
}

function equal(expected, found, what) {
  if (!isDeepStrictEqual(expected, found)) {
    throw new Error(`${what}: expected <${inspect(expected)}>, found <${inspect(found)}>`);
  }
}

/** Waits until the probe finds nothing missing. What it throws counts as "not yet" until time is over. */
async function eventually(expectation, probe) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    let missing;
    try {
      missing = await probe();
    } catch (error) {
      missing = String(error);
    }
    if (!missing) {
      return;
    }
    if (Date.now() > deadline) {
      throw new Error(`expected within ${PATIENCE_MS} ms: ${expectation}; last seen: ${missing}`);
    }
    await new Promise(resolve => setTimeout(resolve, 10));
  }
}

module.exports = { that, equal, eventually };

'use strict';

// Drives servers through the Node client and prints one line for each scenario: "ok NAME" or "FAILED NAME reason".
//
//   main.js scenarios      NAME_SERVER BROKER PREFIX [NAME...]  everything that needs nothing special
//   main.js beginnings     NAME_SERVER BROKER PREFIX [NAME...]  needs a broker with accessMessageInMemoryMaxRatio=0
//   main.js before-restart NAME_SERVER BROKER PREFIX            leaves work behind
//   main.js after-restart  NAME_SERVER BROKER PREFIX            finds the work left behind
//   main.js attempts       NAME_SERVER BROKER PREFIX ATTEMPT... prints what became of each: see accounts.js
//
// The exit code is 0 when all were ok, 1 when one failed, 2 for a wrong call.

const { Cluster } = require('./cluster');
const modes = require('./scenarios');
const { tryAll } = require('./accounts');

async function main([ mode, nameServer, broker, prefix, ...names ]) {
  if (mode === 'attempts' && prefix) {
    await tryAll(new Cluster(nameServer, broker, prefix), names);
    return 0;
  }
  if (!modes[mode] || !prefix) {
    console.error('usage: main.js MODE NAME_SERVER BROKER PREFIX [NAME...]');
    return 2;
  }
  let failures = 0;
  for (const [ name, scenario ] of Object.entries(modes[mode])) {
    if (names.length && !names.includes(name)) {
      continue;
    }
    const started = Date.now();
    const cluster = new Cluster(nameServer, broker, prefix);
    try {
      await scenario(cluster);
      console.log(`ok ${name} ${Date.now() - started} ms`);
    } catch (error) {
      console.log(`FAILED ${name} ${String(error).replace(/\s+/g, ' ')}`);
      console.error(error);
      failures++;
    }
    await cluster.close();
  }
  return failures ? 1 : 0;
}

// The client's timers would keep the process alive.
main(process.argv.slice(2)).then(code => process.exit(code));

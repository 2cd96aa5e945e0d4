/**
 * Loaded into each process and thread of a stack by `tools/paths.mjs`: writes which functions ran between
 * two signals, whenever the folder of signals gets another one.
 */
const { existsSync, renameSync, writeFileSync } = require('node:fs');
const { Session } = require('node:inspector');
const { join } = require('node:path');
const { threadId } = require('node:worker_threads');

const folder = process.env.COVERAGE_DIR;
const POLL_MS = 50;
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

let next = 1;
const timer = setInterval(() => {
  if (!existsSync(join(folder, `signal-${next}`))) return;
  // Taking the counts sets them back.
  session.post('Profiler.takePreciseCoverage', (_, { result }) => {
    const path = join(folder, `ran-${next}-${process.pid}-${threadId}.json`);
    writeFileSync(
      `${path}.new`,
      JSON.stringify(result.filter(({ url }) => url.includes('/dist/'))),
    );
    renameSync(`${path}.new`, path);
  });
  next += 1;
}, POLL_MS);
timer.unref();

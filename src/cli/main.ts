#!/usr/bin/env node
import type { CheckConnector } from '../service/banks/connector-check';
import type { OpenRebuilder } from '../service/operators/reconcile/reconcile';
import { runCli } from './program';

/** Loads on demand, since the worker's libraries take a second. */
const openRebuilder: OpenRebuilder = async (deps) => {
  const [{ openRebuilder: open }, { quietRuntime }, { workflowBundles }] = await Promise.all([
    import('../../worker/rebuild/rebuild.js'),
    import('../../worker/rebuild/replay.js'),
    import('../../worker/bundle.js'),
  ]);
  quietRuntime();
  return open(deps, (await workflowBundles()).replay);
};

const checkConnector: CheckConnector = async (deps, input) => {
  const [{ checkConnector: check }, { quietRuntime }] = await Promise.all([
    import('../../connectors/conformance/check.js'),
    import('../../worker/rebuild/replay.js'),
  ]);
  return await check({ ...deps, installRuntime: quietRuntime }, input);
};

// A reader that stops reading (`… | head`) is not a fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

const io = {
  env: process.env,
  stdout: (text: string) => void process.stdout.write(text),
  stderr: (text: string) => void process.stderr.write(text),
};

void runCli(process.argv.slice(2), io, { openRebuilder, checkConnector }).then((code) => {
  process.exitCode = code;
});

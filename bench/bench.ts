import { connectMongo } from '../src/mongo';
import { connectTemporal } from '../src/temporal/connect';
import { LOOPBACK } from '../stack/ports';
import { openAccount } from './account';
import { createFloor } from './floor-subject';
import type { BenchOptions } from './options';
import { createProduct } from './product-subject';
import { type Receiver, startReceiver } from './receiver';
import { type Measured, type Result, resultOf } from './result';
import { runRounds } from './rounds';
import type { Setting } from './servers';
import { type Stack, startStack } from './stack';

/**
 * Runs the whole benchmark in a folder of its own; all that it started has ended when it returns.
 * @param broken rejects when the run can't go on
 * @throws StackFailure, or the first error of a payment
 */
export async function runBench(
  options: BenchOptions,
  setting: Setting,
  broken: Promise<never>,
): Promise<Result> {
  const began = performance.now();
  const receiver = await startReceiver();
  try {
    const stack = await startStack(setting, receiver.floorUrl);
    try {
      const measuring = measureBoth(stack, receiver, options, setting);
      const measured = await Promise.race([measuring, stack.died, broken]);
      return resultOf({ ...measured, options, tookMs: performance.now() - began });
    } finally {
      await setting.progress.during('Stopping', () => stack.stop());
      if (stack.config.mongodbUri !== undefined) await dropDatabases(stack);
    }
  } finally {
    await receiver.close();
  }
}

async function measureBoth(
  stack: Stack,
  receiver: Receiver,
  options: BenchOptions,
  { progress, signal }: Setting,
): Promise<Pick<Measured, 'results' | 'servers' | 'webhooks' | 'slowCreates'>> {
  const { config, mongodbUri, temporalAddress, floorUrl, pids } = stack;
  const { concurrency } = options;
  const { apiKey, signingSecret } = await openAccount(stack.env, receiver.productUrl, signal);
  receiver.setSecret(signingSecret);
  const mongo = await connectMongo(mongodbUri, 'bench');
  const namespace = config.temporalNamespace;
  const temporal = connectTemporal({ address: temporalAddress, namespace });
  const url = `http://${LOOPBACK}:${config.port}`;
  const db = mongo.db(config.mongodbDb);
  const subjects = {
    floor: createFloor({ url: floorUrl, temporal, concurrency }),
    product: createProduct({ url, apiKey, db, temporal, concurrency }),
  };
  try {
    const gauges = {
      temporal,
      mongo,
      receiver,
      signal,
      pids: { ...pids, 'benchmark itself': process.pid },
    };
    const results = await runRounds(subjects, gauges, options, progress);
    const webhooks = receiver.counts();
    if (webhooks.refused > 0) throw new Error(`${webhooks.refused} signatures did not hold.`);
    const origin = (given: string | undefined) => (given === undefined ? 'started' : 'given');
    const { temporalAddress: address, mongodbUri: uri } = config;
    const slowCreates = subjects.product.slowCreates();
    return {
      results,
      webhooks,
      slowCreates,
      servers: { temporal: origin(address), mongodb: origin(uri) },
    };
  } finally {
    await Promise.all([subjects.floor.close(), subjects.product.close()]);
    await Promise.all([temporal.connection.close(), mongo.close()]);
  }
}

/** Leaves nothing behind on a server that goes on running. */
async function dropDatabases({ mongodbUri, config, floorDb }: Stack): Promise<void> {
  const mongo = await connectMongo(mongodbUri, 'bench');
  try {
    for (const name of [config.mongodbDb, `${config.mongodbDb}_sandbox_bank`, floorDb]) {
      await mongo.db(name).dropDatabase();
    }
  } finally {
    await mongo.close();
  }
}

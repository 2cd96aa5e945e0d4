import { connectMongo } from '../src/mongo';
import { temporalAccess } from '../src/temporal/access';
import { connectTemporal } from '../src/temporal/connect';
import { LOOPBACK } from '../stack/ports';
import { type Merchant, openAccount } from './account';
import { createFloor } from './floor-subject';
import { runLoad } from './load';
import type { Gauges } from './measure';
import { measureIdle } from './mongo-commands';
import type { RowOptions } from './options';
import { createProduct } from './product-subject';
import { untilQuiet } from './quiet';
import { type Receiver, startReceiver } from './receiver';
import { machine, type Result } from './result';
import { measureRows } from './rows/measure-rows';
import type { Setting } from './servers';
import { dropDatabases, type Stack, startStack } from './stack';
import type { SlowCreates, Subject } from './subject';

const WARM_UP_SHARE = 0.4;
const WARM_UP_MIN = 20;

/**
 * Runs the benchmark in a folder of its own; all that it started has ended when it returns.
 * @param broken rejects when the run can't go on
 * @throws StackFailure, or the first error of a payment
 */
export async function runBench(
  options: RowOptions,
  setting: Setting,
  broken: Promise<never>,
): Promise<Result> {
  const began = performance.now();
  const receiver = await startReceiver();
  try {
    const stack = await startStack(setting, receiver.floorUrl);
    try {
      const measuring = measureAll(stack, receiver, options, setting);
      const measured = await Promise.race([measuring, stack.died, broken]);
      const { payments, concurrency, rounds, rows } = options;
      return {
        machine: machine(),
        options: { payments, concurrency, rounds, rows },
        took_seconds: (performance.now() - began) / 1_000,
        ...measured,
      };
    } finally {
      await setting.progress.during('Stopping', () => stack.stop());
      await dropDatabases(stack);
    }
  } finally {
    await receiver.close();
  }
}

async function measureAll(
  stack: Stack,
  receiver: Receiver,
  options: RowOptions,
  { progress, signal }: Setting,
): Promise<Pick<Result, 'rows' | 'servers' | 'webhooks' | 'slow_creates'>> {
  const { config } = stack;
  const { concurrency } = options;
  const openMerchant = () => openAccount(stack.env, receiver, signal);
  const merchants = [await openMerchant()];
  const mongo = await connectMongo(stack.mongodbUri, 'bench');
  const temporal = connectTemporal(temporalAccess(stack.env));
  const url = `http://${LOOPBACK}:${config.port}`;
  const db = mongo.db(config.mongodbDb);
  const shared = (of: readonly Merchant[]) =>
    createProduct({ url, merchants: of, db, temporal, concurrency });
  const subjects = {
    floor: createFloor({ url: stack.floorUrl, temporal, concurrency }),
    product: shared(merchants),
  };
  try {
    const gauges = { temporal, mongo, receiver, signal, pids: stack.pids };
    const say = (line: string) => progress.line(line);
    await warmUp([subjects.floor, subjects.product], gauges, options, say);
    const instruments = { ...gauges, idleCommands: await measureIdle(mongo) };
    const restartWorkers = stack.restartWorkers;
    const context = { subjects, instruments, options, openMerchant, shared, restartWorkers, say };
    const rows = await measureRows(context, options.rows);
    const webhooks = receiver.counts();
    if (webhooks.refused > 0) throw new Error(`${webhooks.refused} signatures did not hold.`);
    const slow_creates: SlowCreates = subjects.product.slowCreates();
    return { rows, webhooks, slow_creates, servers: serversOf(stack) };
  } finally {
    await Promise.all([subjects.floor.close(), subjects.product.close()]);
    await Promise.all([temporal.connection.close(), mongo.close()]);
  }
}

async function warmUp(
  subjects: readonly Subject[],
  { receiver, temporal, signal }: Gauges,
  { payments: full, concurrency }: RowOptions,
  say: (line: string) => void,
): Promise<void> {
  const payments = Math.max(WARM_UP_MIN, Math.ceil(full * WARM_UP_SHARE));
  for (const subject of subjects) {
    await runLoad(subject, receiver, { payments, concurrency, signal });
    await untilQuiet(temporal, subject.taskQueues, signal);
    say(`warm-up  ${subject.name}: ${payments} payments`);
  }
}

/** Tells which servers the run started itself. */
function serversOf({ config }: Stack): Result['servers'] {
  const origin = (given: string | undefined) => (given === undefined ? 'started' : 'given');
  return { temporal: origin(config.temporalAddress), mongodb: origin(config.mongodbUri) };
}

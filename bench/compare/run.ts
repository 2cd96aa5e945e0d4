import { createFloor } from '../floor/subject';
import { waitUntilIdle } from '../measure/cost';
import { runLoad } from '../measure/load';
import { measureIdle } from '../measure/mongo-commands';
import { type Receiver, startReceiver } from '../measure/receiver';
import type { Options } from '../options';
import { addEndpoints, openAccount } from '../product/api';
import { createBankKey } from '../product/bank';
import { createProduct } from '../product/subject';
import type { Report, Row } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';
import {
  type Context,
  FANS,
  measureDeliveries,
  measureEvents,
  measureFlow,
  measurePayments,
} from './rows';
import type { Samples } from './table';

const WARM_UP_SHARE = 0.4;
const WARM_UP_MIN = 20;

/**
 * Compares the product with the floor. @see docs/benchmark.md
 * @throws OperationalError, or the first error of a payment
 */
export async function runComparison(options: Options, setting: Setting): Promise<Report> {
  const began = performance.now();
  const receiver = await startReceiver();
  try {
    const parts = { parts: 'floor', receiverUrl: receiver.floorUrl } as const;
    const report = await withStack(setting, parts, (stack) =>
      compare(stack, receiver, options, setting),
    );
    const { payments, concurrency, rounds } = options;
    const seconds = ((performance.now() - began) / 1_000).toFixed(0);
    const size = `${rounds} rounds of ${payments} payments, ${concurrency} at a time`;
    return { ...report, notes: [`${size}; ${seconds} s in all`, ...report.notes] };
  } finally {
    receiver.close();
  }
}

async function compare(
  stack: Stack,
  receiver: Receiver,
  options: Options,
  setting: Setting,
): Promise<Report> {
  const { env, db, mongo, temporal, pids } = stack;
  const { concurrency } = options;
  const { signal, progress } = setting;
  const merchant = await openAccount(env, receiver, setting);
  const bankKey = await createBankKey(env, setting);
  const fan = await openAccount(env, receiver, setting);
  await addEndpoints(stack.url, fan, receiver, Math.max(...FANS) - 1);
  const floor = createFloor({ url: stack.floorUrl, temporal, concurrency });
  const product = createProduct({
    url: stack.url,
    merchant,
    bankKey,
    db,
    temporal,
    concurrency,
  });
  const say = (line: string) => progress.line(line);
  try {
    for (const subject of [floor, product]) {
      const count = Math.max(WARM_UP_MIN, Math.ceil(options.payments * WARM_UP_SHARE));
      await runLoad(subject.payments, receiver, { count, concurrency, signal });
      await waitUntilIdle(temporal, subject.taskQueues, signal);
      say(`warm-up  ${subject.name}: ${count} payments`);
    }
    const idleCommands = await measureIdle(mongo);
    const instruments = { temporal, mongo, pids, idleCommands, signal };
    const rows = await measureRows({ floor, product, fan, receiver, instruments, options, say });
    const { received, verified, refused, repeated } = receiver.counts();
    if (refused > 0) throw new Error(`${refused} signatures were invalid.`);
    const slow = product.slowCreates();
    return {
      columns: ['floor', 'product'],
      rows,
      notes: [
        `webhooks: ${received} received, ${verified} signatures verified, ${repeated} repeated`,
        `slow creates: ${slow.repeated} repeated, ${slow.without_session} before the bank's session`,
      ],
    };
  } finally {
    await Promise.all([floor.close(), product.close()]);
  }
}

async function measureRows(context: Context): Promise<Row[]> {
  const rows: Row[] = [];
  let payments: Samples = { floor: [], product: [] };
  for (const name of context.options.rows) {
    if (name === 'payments') {
      const measured = await measurePayments(context);
      rows.push(...measured.rows);
      payments = measured.samples;
    } else if (name === 'deliveries') {
      rows.push(...(await measureDeliveries(context)));
    } else if (name === 'events') {
      rows.push(...(await measureEvents(context)));
    } else {
      rows.push(...(await measureFlow(context, name, payments)));
    }
  }
  return rows;
}

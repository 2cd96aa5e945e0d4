import { join } from 'node:path';
import { waitUntilIdle } from '../measure/cost';
import { runLoad } from '../measure/load';
import { type Receiver, startReceiver } from '../measure/receiver';
import { divideGrowth, measureHistories, readFileSize, readSizes } from '../measure/storage';
import type { Options } from '../options';
import { openAccount } from '../product/api';
import { createBankKey } from '../product/bank';
import { createProduct } from '../product/subject';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';

const WARM_UP = 20;
/** Number of payments whose histories are read. */
const HISTORIES_READ = 50;

/** Settles N payments with their webhooks, and measures the bytes that each leaves. */
export async function runStorage(options: Options, setting: Setting): Promise<Report> {
  const receiver = await startReceiver();
  try {
    return await withStack(setting, { parts: 'product' }, (stack) =>
      measure(stack, receiver, options, setting),
    );
  } finally {
    receiver.close();
  }
}

async function measure(
  { env, url, db, mongo, temporal, config }: Stack,
  receiver: Receiver,
  { payments: count, concurrency }: Options,
  setting: Setting,
): Promise<Report> {
  const { signal, progress } = setting;
  const merchant = await openAccount(env, receiver, setting);
  const bankKey = await createBankKey(env, setting);
  const product = createProduct({ url, merchant, bankKey, db, temporal, concurrency });
  const temporalFile = join(config.dataDir, 'temporal', 'temporal.db');
  const settle = async (payments: number) => {
    const run = await runLoad(product.payments, receiver, { count: payments, concurrency, signal });
    await waitUntilIdle(temporal, product.taskQueues, signal);
    return run;
  };
  try {
    await progress.during('Warming up', () => settle(WARM_UP));
    const before = await readSizes(mongo, db);
    const fileBefore = readFileSize(temporalFile);
    const run = await progress.during(`Settling ${count} payments`, () => settle(count));
    const grown = divideGrowth(before, await readSizes(mongo, db), count);
    const sum = (pick: 'documents' | 'disk' | 'indexes') =>
      [...grown.values()].reduce((total, sizes) => total + sizes[pick], 0);
    const file = readFileSize(temporalFile);
    const histories = await measureHistories(temporal, run.workflowIds.slice(-HISTORIES_READ));
    const fileGrowth = file === null || fileBefore === null ? null : (file - fileBefore) / count;
    return {
      columns: ['data', 'indexes'],
      rows: [
        buildBytes('MongoDB', sum('documents'), sum('indexes')),
        ...[...grown]
          .toSorted(([, a], [, b]) => b.documents + b.indexes - a.documents - a.indexes)
          .map(([name, sizes]) => buildBytes(`  ${name}`, sizes.documents, sizes.indexes)),
        buildBytes('MongoDB on the disk', sum('disk'), sum('indexes')),
        buildBytes('Temporal histories', histories, null),
        buildBytes('Temporal file', fileGrowth, null),
      ],
      notes: [`bytes of a payment, of ${count}; the file is SQLite's, with visibility and indexes`],
    };
  } finally {
    await product.close();
  }
}

function buildBytes(name: string, data: number | null, indexes: number | null) {
  const round = (bytes: number | null) => (bytes === null ? null : Math.round(bytes));
  return buildRow(name, round(data), round(indexes), Number.NaN);
}

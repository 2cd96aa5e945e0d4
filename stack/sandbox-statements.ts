import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../src/base/errors';
import { connectMongo } from '../src/base/mongo';
import { SANDBOX_CONNECTOR } from '../src/routing';
import { listBankAccounts } from '../src/service/banks/bank-accounts';
import {
  registerSandboxAccounts,
  SANDBOX_CURRENCIES,
} from '../src/service/banks/sandbox-bank/accounts';
import {
  type StatementFile,
  writeDueStatements,
} from '../src/service/banks/sandbox-bank/statements';
import { importStatementPath } from '../src/service/banks/statements/import';
import { createOperatorDeps, createReadDeps } from '../src/service/operators/deps';
import type { StackConfig } from './config';
import { mongoAddress } from './parts';
import type { Progress } from './terminal';

export type StatementConfig = Pick<
  StackConfig,
  'mongodbUri' | 'mongodbPort' | 'mongodbLogin' | 'mongodbDb' | 'dataDir' | 'sandboxAutoplay'
>;

const ROUND_MS = 3_600_000;

/**
 * Writes each ended day's statements, and imports them with autoplay. The next round makes up for a
 * failure.
 */
export async function keepStatements(
  config: StatementConfig,
  progress: Pick<Progress, 'line'>,
  ended: AbortSignal,
) {
  const stopping = new AbortController();
  const signal = AbortSignal.any([ended, stopping.signal]);
  const report = (error: unknown) => {
    if (!signal.aborted) progress.line(`Sandbox statements: ${describeError(error)}`);
  };
  const attempt = (work: (deps: KeeperDeps) => Promise<void>): Promise<void> =>
    withDeps(config, work).catch(report);
  await attempt((deps) => registerSandboxAccounts(deps, SANDBOX_CURRENCIES));
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await attempt((deps) => writeAndImport(deps, config, report));
      await sleep(ROUND_MS, undefined, { signal }).catch(() => {});
    }
  };
  const running = run();
  return {
    stop: async (): Promise<void> => {
      stopping.abort();
      await running;
    },
  };
}

type KeeperDeps = Awaited<ReturnType<typeof createOperatorDeps>>;

async function withDeps(
  config: StatementConfig,
  work: (deps: KeeperDeps) => Promise<void>,
): Promise<void> {
  const mongo = await connectMongo(mongoAddress(config), 'statements');
  try {
    await work(await createOperatorDeps(createReadDeps(mongo, config.mongodbDb)));
  } finally {
    await mongo.close();
  }
}

async function writeAndImport(
  deps: KeeperDeps,
  { mongodbDb: database, dataDir, sandboxAutoplay }: StatementConfig,
  report: (error: unknown) => void,
): Promise<void> {
  const files = await writeDueStatements({ ...deps, database, dataDir });
  await registerSandboxAccounts(
    deps,
    files.map(({ currency }) => currency),
  );
  if (sandboxAutoplay === 'on') await importNew(deps, files, report);
}

/**
 * Starts at the last imported statement: a repeat completes it. A failure ends the imports of its
 * account alone.
 */
async function importNew(
  deps: KeeperDeps,
  files: readonly StatementFile[],
  report: (error: unknown) => void,
): Promise<void> {
  const source = { connector: SANDBOX_CONNECTOR, livemode: false };
  const accounts = await listBankAccounts(deps, source);
  const failed = new Set<string>();
  for (const { file, account, statement_id } of files) {
    const last = accounts.find(({ iban }) => iban === account)?.closing?.statement_id ?? '';
    if (failed.has(account) || statement_id < last) continue;
    try {
      await importStatementPath(deps, file, source);
    } catch (error) {
      failed.add(account);
      report(error);
    }
  }
}

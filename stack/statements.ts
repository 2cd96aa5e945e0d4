import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../src/base/errors';
import { connectMongo } from '../src/base/mongo';
import type { KeyPaths } from '../src/encryption/ensure-keys';
import { SANDBOX_CONNECTOR } from '../src/routing';
import {
  listBankAccounts,
  registerSandboxAccounts,
  SANDBOX_CURRENCIES,
} from '../src/service/banks/bank-accounts';
import { isLiveConnector } from '../src/service/banks/connectors';
import {
  type StatementFile,
  writeDueStatements,
} from '../src/service/banks/sandbox-bank/statements';
import { SEPA_CONNECTOR } from '../src/service/banks/sepa/book';
import { importTaken } from '../src/service/banks/sepa/import';
import { importMade, importStatementPath } from '../src/service/banks/statements/import';
import { createOperatorDeps, createReadDeps } from '../src/service/operators/deps';
import type { StackConfig } from './config';
import { mongoAddress } from './parts';
import type { Progress } from './terminal';

type StatementConfig = Pick<
  StackConfig,
  | ('mongodbUri' | 'mongodbPort' | 'mongodbLogin' | 'mongodbDb' | 'dataDir')
  | ('sandboxAutoplay' | 'liveConnectors' | 'sandboxConnectors' | 'sepa')
>;

type Deps = Awaited<ReturnType<typeof createOperatorDeps>>;

const SANDBOX_MS = 3_600_000;
const RETRY_MS = 30_000;
const MADE_MS = 60_000;

/**
 * Imports what banks state: of the sandbox bank each ended day, which this writes, the files that the
 * SEPA connector took, and what connectors make. The next round makes up for a failure.
 */
export async function keepStatements(
  config: StatementConfig,
  { KEYS_DIR: keysDir }: Pick<KeyPaths, 'KEYS_DIR'>,
  progress: Pick<Progress, 'line'>,
  ended: AbortSignal,
) {
  const stopping = new AbortController();
  const signal = AbortSignal.any([ended, stopping.signal]);
  const report = (bank: string) => (error: unknown) => {
    if (!signal.aborted) progress.line(`${bank} statements: ${describeError(error)}`);
  };
  const withDeps = async (work: (deps: Deps) => Promise<void>): Promise<void> => {
    const mongo = await connectMongo(mongoAddress(config), 'statements');
    try {
      await work(await createOperatorDeps(createReadDeps(mongo, config.mongodbDb, { keysDir })));
    } finally {
      await mongo.close();
    }
  };
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});
  const keepSandbox = async (): Promise<void> => {
    const failed = report('Sandbox');
    while (!signal.aborted) {
      await withDeps(async (deps) => {
        const { mongodbDb: database, dataDir, sandboxAutoplay } = config;
        const files = await writeDueStatements({ ...deps, database, dataDir });
        const currencies = files.map(({ currency }) => currency);
        await registerSandboxAccounts(deps, currencies);
        if (sandboxAutoplay === 'on') await importNew(deps, files, failed);
      }).catch(failed);
      await pause(SANDBOX_MS);
    }
  };
  const { sepa, mongodbDb: database, liveConnectors, sandboxConnectors } = config;
  const routes = { liveConnectors, sandboxConnectors };
  const about = { connector: SEPA_CONNECTOR, livemode: isLiveConnector(routes, SEPA_CONNECTOR) };
  const keepSepa = async (folders: NonNullable<typeof sepa>): Promise<void> => {
    const said = new Set<string>();
    const importAll = async (deps: Deps): Promise<void> => {
      while (!signal.aborted) {
        const taken = await importTaken({ ...deps, database, ...about, ...routes, ...folders });
        for (const { refusal, file, set_aside } of taken) {
          for (const { account } of set_aside)
            progress.line(`${file}: ${account} is not registered`);
          const line = `${file} was refused: ${refusal?.message}`;
          // A lost file is reported in each round.
          if (refusal !== null && !said.has(line)) progress.line(line);
          said.add(line);
        }
        await pause(folders.seconds * 1_000);
      }
    };
    while (!signal.aborted) {
      await withDeps(importAll).catch(report('SEPA'));
      await pause(RETRY_MS);
    }
  };
  const keepMade = async (): Promise<void> => {
    const failed = report('Connectors’');
    while (!signal.aborted) {
      await withDeps(async (deps) => {
        const accounts = await listBankAccounts(deps);
        const sources = accounts.map(({ connector, livemode }) => [connector, livemode] as const);
        for (const [connector, livemode] of new Map(sources)) {
          if (connector === SANDBOX_CONNECTOR) continue;
          // A failure ends the imports of one alone.
          await importMade(deps, { connector, livemode }).catch(failed);
        }
      }).catch(failed);
      await pause(MADE_MS);
    }
  };
  await withDeps((deps) => registerSandboxAccounts(deps, SANDBOX_CURRENCIES)).catch(
    report('Sandbox'),
  );
  const running = Promise.all([keepSandbox(), keepMade(), sepa && keepSepa(sepa)]);
  return {
    stop: async (): Promise<void> => {
      stopping.abort();
      await running;
    },
  };
}

/**
 * Starts at the last imported statement: a repeat completes it. A failure ends the imports of its
 * account alone.
 */
async function importNew(
  deps: Deps,
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

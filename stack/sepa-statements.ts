import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../src/base/errors';
import { connectMongo } from '../src/base/mongo';
import { isLiveConnector } from '../src/service/banks/connectors';
import { SEPA_CONNECTOR } from '../src/service/banks/sepa/book';
import { importTaken } from '../src/service/banks/sepa/import';
import { createOperatorDeps, createReadDeps } from '../src/service/operators/deps';
import type { StackConfig } from './config';
import { mongoAddress } from './parts';
import type { Progress } from './terminal';

type SepaConfig = Pick<
  StackConfig,
  | 'mongodbUri'
  | 'mongodbPort'
  | 'mongodbLogin'
  | 'mongodbDb'
  | 'liveConnectors'
  | 'sandboxConnectors'
  | 'sepa'
>;

/**
 * The next round makes up for a failure.
 * @returns undefined without the connector
 */
export function keepSepaStatements(
  config: SepaConfig,
  progress: Pick<Progress, 'line'>,
  ended: AbortSignal,
) {
  const { sepa, mongodbDb: database, liveConnectors, sandboxConnectors } = config;
  if (sepa === undefined) return undefined;
  const stopping = new AbortController();
  const signal = AbortSignal.any([ended, stopping.signal]);
  const routes = { liveConnectors, sandboxConnectors };
  const about = { connector: SEPA_CONNECTOR, livemode: isLiveConnector(routes, SEPA_CONNECTOR) };
  const said = new Set<string>();
  const say = (line: string): void => {
    // A lost file is reported in each round.
    if (!said.has(line)) progress.line(line);
    said.add(line);
  };
  const importAll = async (): Promise<void> => {
    const mongo = await connectMongo(mongoAddress(config), 'statements');
    try {
      const deps = await createOperatorDeps(createReadDeps(mongo, database));
      while (!signal.aborted) {
        for (const { refusal, file } of await importTaken({
          ...deps,
          ...{ database, ...about, ...routes, ...sepa },
        })) {
          if (refusal !== null) say(`${file} was refused: ${refusal.message}`);
        }
        await sleep(sepa.seconds * 1_000, undefined, { signal }).catch(() => {});
      }
    } finally {
      await mongo.close();
    }
  };
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await importAll();
      } catch (error) {
        if (!signal.aborted) progress.line(`SEPA statements: ${describeError(error)}`);
        await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
      }
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

const RETRY_MS = 30_000;

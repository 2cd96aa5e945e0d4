import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectProcess } from '../../../connectors/kit/process';
import { startSepa } from '../../../connectors/sepa/connector';
import { createLogger } from '../../../src/base/log';
import { mongodbUri } from '../../support/servers';
import { openBench } from './setting';

const IBAN = 'NL41MOCK0000000001';

type Process = Awaited<ReturnType<typeof connectProcess>>;

interface Change {
  /** Parts of the connector that a mutant replaces. */
  parts?: Parameters<typeof startSepa>[2];
  /** Changes what it delivers. */
  deliver?: (deliver: Process['deliver']) => Process['deliver'];
}

/** Starts the connector of SEPA files between two folders, on servers of a check. */
export async function openSepaBench({ parts = {}, deliver = (same) => same }: Change = {}) {
  const bench = await openBench('sepa');
  const [out, dir] = ['out', 'in'].map((name) => mkdtempSync(join(tmpdir(), `check-${name}-`)));
  if (out === undefined || dir === undefined) throw new Error('no folders');
  const config = {
    ...{ LOG_LEVEL: 'silent', METRICS_HOST: '127.0.0.1', CONNECTOR_KEY_FILE: '' },
    ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: bench.database, TASK_QUEUE_PREFIX: bench.prefix },
    ...({ temporal: bench.access, name: 'sepa', environment: 'sandbox', isLive: false } as const),
    ...{ KEYS_DIR: bench.keysDir, HOST: '127.0.0.1', CONNECTOR_PORT: undefined },
    settings: {
      ...{ SEPA_OUT_DIR: out, SEPA_IN_DIR: dir, SEPA_IBAN: IBAN, SEPA_NAME: 'Connector check' },
      ...{ SEPA_CUT_OFF: 15 * 60, SEPA_POLL_SECONDS: 0.1 },
    },
  };
  const log = createLogger('sepa', process.env['TEST_LOG_LEVEL'] ?? 'silent');
  const own = await connectProcess({ connector: 'sepa' }, config, log);
  const connector = await startSepa(
    config,
    { ...own, deliver: deliver(own.deliver) },
    { growsMs: 500, ...parts },
  );
  connector.finished.catch(() => undefined);
  const folders = { out, in: dir };
  return {
    ...{ ...bench, folders },
    check: () => bench.check({ folders }, { methods: [], rails: ['sepa_credit_transfer'] }),
    stop: async (): Promise<void> => {
      await connector.stop();
      await own.close();
      await bench.stop();
      for (const folder of [out, dir]) rmSync(folder, { recursive: true });
    },
  };
}

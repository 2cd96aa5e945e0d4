import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { freePort, LOOPBACK } from '../../stack/ports';
import { temporalCli } from '../../stack/provision/temporal';
import { prepareRemoteTemporal } from '../../stack/remote-servers';
import { startTemporal, type TemporalServer } from '../../stack/temporal-server';
import { silentProgress } from '../../stack/terminal';
import { eventually } from '../support/http';
import { provisionQuietly } from '../support/programs';

/** Search attributes that operators are promised, and their wire numbers of types. */
const ATTRIBUTES = {
  ServiceResource: 2,
  ServiceStatus: 2,
  ServiceMethod: 2,
  ServiceAccount: 2,
  ServiceConnector: 2,
  ServiceCurrency: 2,
  ServiceAttention: 2,
  ServiceLivemode: 5,
  ServiceAssetAmount: 2,
  ServiceAmount: 3,
  ServiceVersion: 3,
};
const DAY_SECONDS = 24 * 3_600;

let folder: string;
let server: TemporalServer;
let connection: Connection;
let uiPort: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'stack-temporal-'));
  uiPort = await freePort();
  server = await startTemporal({
    executable: await provisionQuietly(temporalCli),
    dbFile: join(folder, 'temporal.db'),
    port: await freePort(),
    uiPort,
    logFile: join(folder, 'temporal.log'),
  });
  connection = await Connection.connect({ address: server.address, connectTimeout: '2 minutes' });
});
afterAll(async () => {
  await connection?.close();
  await server?.stop();
  rmSync(folder, { recursive: true });
});

async function listAttributes(namespace: string) {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  return customAttributes ?? {};
}

async function readRetentionDays(namespace: string): Promise<number> {
  const { config } = await connection.workflowService.describeNamespace({ namespace });
  return Number(config?.workflowExecutionRetentionTtl?.seconds) / DAY_SECONDS;
}

test('the server that we start has search attributes and a web UI, keeps closed workflows for 30 days, and shows its files to their owner only', async () => {
  expect(await listAttributes('default')).toMatchObject(ATTRIBUTES);
  expect(await readRetentionDays('default')).toBe(30);
  expect(statSync(join(folder, 'temporal.db')).mode & 0o777).toBe(0o600);
  const { status } = await eventually('an answer', () =>
    fetch(`http://${LOOPBACK}:${uiPort}`).catch(() => undefined),
  );
  expect(status).toBe(200);
});

test('adds search attributes to a server given by address and leaves its retention', async () => {
  await connection.workflowService.registerNamespace({
    namespace: 'given',
    workflowExecutionRetentionPeriod: msToTs(3 * DAY_SECONDS * 1_000),
  });
  const told: string[] = [];
  const progress = { ...silentProgress, line: (text: string) => told.push(text) };
  await prepareRemoteTemporal({ address: server.address, namespace: 'given' }, progress);
  expect(await listAttributes('given')).toMatchObject(ATTRIBUTES);
  expect(await readRetentionDays('given')).toBe(3);
  expect(told).toEqual([expect.stringContaining('ServiceAttention')]);
  await prepareRemoteTemporal({ address: server.address, namespace: 'given' }, progress);
  expect(told).toHaveLength(1);
});

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startFaultProxy } from '../../../connectors/conformance/faults';
import { passOn, type Received, startProxy } from '../../../connectors/conformance/proxy';
import { createConnectorKey } from '../../../src/callbacks/keys';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { type Child, startChild } from '../../../stack/child-process';
import { freePort } from '../../../stack/ports';
import { operatorsAudit } from '../../support/audit';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import { mongodbUri, temporalAddress } from '../../support/servers';
import { type Service, type ServiceOptions, useService } from '../../support/service';

export const NAME = 'acme';
const ROUTES = `${NAME}=sepa_credit_transfer|sepa_instant|ideal`;
const SECRET = `secret-of-instructions-${randomUUID()}`;
const EXAMPLE = resolve('docs/examples/bank.py');
const MAIN = resolve('dist/connectors/http/main.js');
const GRACE_MS = 15_000;

/** Instruction that reached the bank, with its answer; status 0 for none. */
interface Posted extends Received {
  status: number;
}

/** The example of a bank team's server, as its own process, behind a proxy with faults. */
async function startPythonBank(service: Service) {
  const folder = mkdtempSync(join(tmpdir(), 'bank-'));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const { mongo, stores } = service;
  const deps = { mongo, stores, audit: operatorsAudit(stores), now: () => new Date() };
  const encrypter = createEncrypter(service.keys.seal);
  const key = await createConnectorKey({ ...deps, encrypter }, NAME);
  const secretFile = write('secret', `${SECRET}\n`);
  const keyFile = write('key.json', JSON.stringify(key));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const logFile = join(folder, 'bank.log');
  const args = [
    ...[EXAMPLE, String(port), join(folder, 'bank.db'), secretFile, keyFile],
    `${service.url}/connectors/${NAME}/callbacks`,
  ];
  const start = async (): Promise<Child> => {
    const child = await startChild({
      ...{ name: 'bank', command: 'python3', args, logFile, graceMs: GRACE_MS },
    });
    await untilServing(child, `${url}/desk/effects/none`, () => readFileSync(logFile, 'utf8'));
    return child;
  };
  const kill = async () => {
    child.kill();
    await child.exited;
  };
  let child = await start();
  const posted: Posted[] = [];
  const recorder = await startProxy(0, async (request) => {
    const row = { ...request, status: 0 };
    posted.push(row);
    const answer = await passOn(url, request);
    row.status = answer.status;
    return answer;
  });
  const faults = await startFaultProxy(recorder.url);
  return {
    ...{ url, deskUrl: `${url}/desk`, secret: SECRET, secretFile, faults },
    /** Bank without the test's faults, which records what arrives. */
    recorder: recorder.url,
    /** Instructions to send a payout that arrived at the bank. */
    sent: (id: string) =>
      posted.filter(({ path, body }) => path.endsWith('/sendPayout') && body.includes(id)),
    kill,
    start: async () => {
      child = await start();
    },
    stop: async () => {
      await kill();
      await faults.stop();
      await recorder.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Processes of the connector, as `docs/connectors.md` runs them, on the product of a file. */
function createConnectorProcess(
  service: Service,
  prefix: string,
  { faults, secretFile }: Awaited<ReturnType<typeof startPythonBank>>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'http-connector-'));
  let child: Child | undefined;
  const logs: string[] = [];
  const readLogs = () => logs.map((path) => readFileSync(path, 'utf8')).join('');
  return {
    start: async (): Promise<void> => {
      const METRICS_PORT = String(await freePort());
      const logFile = join(folder, `${logs.length}.log`);
      logs.push(logFile);
      child = await startChild({
        ...{ name: NAME, command: process.execPath, args: [MAIN], logFile },
        ...{ graceMs: GRACE_MS, ipc: true },
        env: {
          ...{ PATH: process.env['PATH'], MONGODB_URI: mongodbUri(), MONGODB_DB: service.database },
          ...{ TEMPORAL_ADDRESS: temporalAddress(), TASK_QUEUE_PREFIX: prefix },
          ...{ SANDBOX_CONNECTORS: ROUTES, CONNECTOR_NAME: NAME, KEYS_DIR: service.keysDir },
          ...{ INSTRUCTIONS_URL: faults.url, INSTRUCTIONS_SECRET_FILE: secretFile },
          ...{ INSTRUCTIONS_FOR: 'payments|refunds|payouts|cancelPayout' },
          ...{ INSTRUCTIONS_PER_SECOND: '200', METRICS_PORT },
          CONNECTOR_STATE_DIR: join(folder, 'state'),
        },
      });
      await untilServing(child, `http://127.0.0.1:${METRICS_PORT}/readyz`, readLogs);
    },
    readLogs,
    kill: async () => {
      child?.kill();
      await child?.exited;
    },
    stop: async () => {
      await child?.stop();
      await retryUntilDone(() => service.mongo.db(`${service.database}_${NAME}`).dropDatabase());
      rmSync(folder, { recursive: true });
    },
  };
}

async function untilServing(child: Child, url: string, readLogs: () => string): Promise<void> {
  await eventually(child.name, async () => {
    if (child.hasExited()) throw new Error(`${child.name} has ended:\n${readLogs()}`);
    const answer = await fetch(url).catch(() => undefined);
    return answer?.ok === true;
  });
}

/** A product and the example of a bank, for one group of tests. */
export function useHttpBank(options: Omit<ServiceOptions, 'live' | 'tests'> = {}) {
  const prefix = `http-${randomUUID().slice(0, 8)}`;
  // A product of its own: it routes to the connector, and reports to the product's callbacks.
  const service = useService({ ...options, live: { connectors: '', prefix }, tests: ROUTES });
  const bank = useFixture(
    () => startPythonBank(service),
    (opened) => opened.stop(),
  );
  return { prefix, service, bank };
}

/** The connector between them, as a process of its own. */
export function useConnectorProcess({ prefix, service, bank }: ReturnType<typeof useHttpBank>) {
  return useFixture(
    async () => {
      const opened = createConnectorProcess(service, prefix, bank);
      await opened.start();
      return opened;
    },
    (opened) => opened.stop(),
  );
}

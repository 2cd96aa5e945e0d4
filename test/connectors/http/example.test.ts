import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { checkConnector } from '../../../connectors/conformance/check';
import { defineHttp } from '../../../connectors/http/definition';
import { createConnectorKey } from '../../../src/callbacks/keys';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { createOperatorDeps, createReadDeps } from '../../../src/service/operators/deps';
import { signPayload } from '../../../src/webhooks/attempt';
import { startChild, waitUntilUp } from '../../../stack/child-process';
import { freePort } from '../../../stack/ports';
import { useShop } from '../../api/payout-setting';
import { operatorsAudit } from '../../support/audit';
import { eventually, retryUntilDone } from '../../support/eventually';
import { useFixture } from '../../support/fixture';
import { describeWith } from '../../support/python-tools';
import { mongodbUri, temporalAddress } from '../../support/servers';
import { type Service, type ServiceOptions, useService } from '../../support/service';
import { beginPayout } from '../begin-payout';
import { listBroken, PATIENT_WAIT_MS, startOnKit } from '../conformance/setting';

const NAME = 'acme';
const ROUTES = `${NAME}=sepa_credit_transfer|sepa_instant|ideal`;
const SECRET = `secret-of-instructions-${randomUUID()}`;
const UP_MS_MAX = 60_000;
const GRACE_MS = 15_000;

/** Starts a process that serves once it answers at a URL. */
async function startServing(
  child: Parameters<typeof startChild>[0],
  url: string,
): ReturnType<typeof startChild> {
  const started = await startChild(child);
  await waitUntilUp(started, child.logFile, UP_MS_MAX, async () => {
    if (!(await fetch(url)).ok) throw new Error(`${url} is not ready.`);
  });
  return started;
}

/** The example of a bank team's server, as its own process. */
async function startPythonBank(service: Service) {
  const folder = mkdtempSync(join(tmpdir(), 'bank-'));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const { mongo, stores } = service;
  const deps = { mongo, stores, audit: operatorsAudit(stores), now: () => new Date() };
  const encrypter = createEncrypter(service.keys.seal);
  const keyFile = write(
    'key.json',
    JSON.stringify(await createConnectorKey({ ...deps, encrypter }, NAME)),
  );
  const secretFile = write('secret', `${SECRET}\n`);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const args = [
    ...[resolve('docs/examples/bank.py'), String(port), join(folder, 'bank.db')],
    ...[secretFile, keyFile, `${service.url}/connectors/${NAME}/callbacks`],
  ];
  const logFile = join(folder, 'bank.log');
  const child = await startServing(
    { name: 'bank', command: 'python3', args, logFile, graceMs: GRACE_MS },
    `${url}/desk/effects/none`,
  );
  return {
    ...{ url, deskUrl: `${url}/desk`, secretFile },
    stop: async () => {
      child.kill();
      await child.exited;
      rmSync(folder, { recursive: true });
    },
  };
}

/** The process of the connector, as `docs/connectors.md` runs it, on the product of a file. */
async function startConnectorProcess(
  service: Service,
  prefix: string,
  { url, secretFile }: Awaited<ReturnType<typeof startPythonBank>>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'http-connector-'));
  const METRICS_PORT = String(await freePort());
  const logFile = join(folder, 'connector.log');
  const child = await startServing(
    {
      ...{ name: NAME, command: process.execPath, args: [resolve('dist/connectors/http/main.js')] },
      ...{ logFile, graceMs: GRACE_MS, ipc: true },
      env: {
        ...{ PATH: process.env['PATH'], MONGODB_URI: mongodbUri(), MONGODB_DB: service.database },
        ...{ TEMPORAL_ADDRESS: temporalAddress(), TASK_QUEUE_PREFIX: prefix, METRICS_PORT },
        ...{ SANDBOX_CONNECTORS: ROUTES, CONNECTOR_NAME: NAME, KEYS_DIR: service.keysDir },
        ...{ INSTRUCTIONS_URL: url, INSTRUCTIONS_SECRET_FILE: secretFile },
        INSTRUCTIONS_FOR: 'payments|refunds|payouts|cancelPayout',
        CONNECTOR_STATE_DIR: join(folder, 'state'),
      },
    },
    `http://127.0.0.1:${METRICS_PORT}/readyz`,
  );
  return {
    readLogs: () => readFileSync(logFile, 'utf8'),
    stop: async () => {
      await child.stop();
      await retryUntilDone(() => service.mongo.db(`${service.database}_${NAME}`).dropDatabase());
      rmSync(folder, { recursive: true });
    },
  };
}

/** A product and the example of a bank, for one group of tests. */
function useHttpBank(options: Omit<ServiceOptions, 'live' | 'tests'> = {}) {
  const prefix = `http-${randomUUID().slice(0, 8)}`;
  // A product of its own: it routes to the connector, and reports to the product's callbacks.
  const service = useService({ ...options, live: { connectors: '', prefix }, tests: ROUTES });
  const bank = useFixture(
    () => startPythonBank(service),
    (opened) => opened.stop(),
  );
  return { prefix, service, bank };
}

describeWith('python3', 'the example of a bank team’s server', () => {
  const { prefix, service, bank } = useHttpBank();
  const connector = useFixture(
    () => startConnectorProcess(service, prefix, bank),
    (opened) => opened.stop(),
  );
  const shop = useShop(service);

  const becomes = (id: string, status: string) =>
    eventually(`a payout that is ${status}`, async () => {
      const { body } = await shop.get(`/v1/payouts/${id}`);
      return body.status === status && body;
    });
  const own = () => service.mongo.db(`${service.database}_${NAME}`);
  const listEffects = async (id: string) => {
    const answer = await fetch(`${bank.deskUrl}/effects/${encodeURIComponent(id)}`);
    return Object(await answer.json()).effects;
  };

  test('executes a payout, which its own callbacks complete, and of whose recipient nothing is logged or stored', async () => {
    const id = await beginPayout(service, shop, { reference: 'Salary 11/2026' });
    await becomes(id, 'completed');
    expect(await listEffects(id)).toMatchObject([{ amount: 1_000, currency: 'EUR' }]);
    expect(await service.stores.payouts.get(id)).toMatchObject({ bank_reference: `B-${id}` });
    const rows = await own().collection('instructions').find({}).toArray();
    expect(rows).not.toEqual([]);
    const text = `${connector.readLogs()}${JSON.stringify(rows)}`;
    expect(text).toContain('the connector serves its bank');
    expect(text).not.toMatch(/Lovelace|DE89370400440532013000/);
  });

  test('fails a payout that it refuses, in its own words', async () => {
    const id = await beginPayout(service, shop, { amount: 66_600 });
    expect(await becomes(id, 'failed')).toMatchObject({
      failure: { code: 'amount_too_high', message: 'The bank sends no transfer of this amount.' },
    });
  });

  test('refuses what the service has not signed', async () => {
    const payout_id = '6e18a581-6e58-48b5-af5a-f37d146bf085';
    const instruction = { payout_id, amount: 1_000, currency: 'EUR', method: 'sepa_instant' };
    const body = JSON.stringify({ activity: 'sendPayout', ...instruction });
    const changed = body.replace('1000', '9000');
    const seconds = Math.floor(Date.now() / 1_000);
    const sign = (text: string, secret = SECRET, at = seconds) => signPayload(secret, text, at);
    const post = async (signature: string | undefined, path = 'sendPayout', text = body) => {
      const headers = {
        'Idempotency-Key': payout_id,
        ...(signature && { 'Service-Signature': signature }),
      };
      const init = { method: 'POST', headers, body: text };
      return (await fetch(`${bank.url}/instructions/${path}`, init)).status;
    };
    expect(await post(undefined)).toBe(401);
    expect(await post('t=²,v1=é')).toBe(401);
    expect(await post(sign(body, 'another secret'))).toBe(401);
    expect(await post(sign(body, SECRET, seconds - 40))).toBe(401);
    expect(await post(sign(body), 'sendPayout', changed)).toBe(401);
    expect(await post(sign(body), 'lookUpPayout')).toBe(400);
    expect(await listEffects(payout_id)).toEqual([]);
    expect(await post(sign(body))).toBe(200);
    expect(await post(sign(changed), 'sendPayout', changed)).toBe(409);
  });
});

describeWith('python3', 'a check of the example of a bank team’s server', () => {
  // The API alone, which takes the callbacks.
  const { prefix, service, bank } = useHttpBank({ worker: false });

  test('finds that it keeps every promise', async () => {
    const { mongo, database, keysDir, temporal } = service;
    const bankPort = await freePort();
    const served: Parameters<typeof defineHttp>[0] = {
      ...{ INSTRUCTIONS_FOR: ['payments', 'refunds', 'payouts', 'cancelPayout'] },
      ...{ INSTRUCTIONS_PER_SECOND: 200, REFERENCE_PER_STEP: 'no' },
    };
    const settings = {
      ...{ ...served, INSTRUCTIONS_URL: `http://127.0.0.1:${bankPort}` },
      INSTRUCTIONS_SECRET_FILE: SECRET,
    };
    const place = { name: NAME, database, prefix, keysDir, settings };
    const connector = await startOnKit(defineHttp(served), place);
    const deps = await createOperatorDeps(createReadDeps(mongo, database, { keysDir }));
    const access = { address: temporalAddress(), namespace: 'default' };
    const report = await checkConnector(
      {
        ...{ ...deps, temporal, access, database, keysDir, taskQueuePrefix: prefix },
        progress: () => undefined,
      },
      {
        ...{ connector: NAME, methods: ['ideal'], rails: ['sepa_credit_transfer'] },
        ...{ deskUrl: bank.deskUrl, bankUrl: bank.url, bankPort, waitMs: PATIENT_WAIT_MS },
      },
    ).finally(connector.stop);
    expect(listBroken(report)).toEqual([]);
    const missing = report.promises.filter(({ result }) => result === 'not_applicable');
    const ofDisputes = missing.filter(({ id }) => /^(evidence|acceptance)\./.test(id));
    const NONE = 'The connector has no answers to disputes.';
    expect(ofDisputes.map(({ seen }) => seen)).toEqual(Array(20).fill(NONE));
    const others = missing.filter((each) => !ofDisputes.includes(each));
    expect(others.map(({ id, seen }) => [id, seen])).toEqual([
      ...['lost', 'verified', 'acknowledged'].map((name) => [
        `webhooks.${name}`,
        'It needs the proxy in front of the connector’s own port.',
      ]),
      ['poll.repeated', 'No list of the bank was read: none of its answers to a GET had the fact.'],
    ]);
    expect(report.passed).toBe(report.promises.length - missing.length);
  });
});

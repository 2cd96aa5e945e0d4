import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createServer, type TLSSocket } from 'node:tls';
import { z } from 'zod';
import { createLogger } from '../../src/base/log';
import { connectTemporal, temporalAccess } from '../../src/temporal/access';
import { checkTemporal } from '../../src/temporal/attributes';
import { startChild, waitUntilUp } from '../../stack/child-process';
import { freePort, LOOPBACK } from '../../stack/ports';
import { mongod } from '../../stack/provision/mongod';
import { type RunningStack, startStack } from '../chaos/running-stack';
import { createAuthority, SERVER_NAME } from '../support/certificates';
import { withClient } from '../support/database';
import { eventually } from '../support/eventually';
import { createClient, idealPayment } from '../support/http';
import { expressions, metricsIn, metricsOn } from '../support/monitoring';
import { provisionQuietly } from '../support/programs';
import { temporalAddress } from '../support/servers';
import { startWatchdog } from './watchdog';

/** Holds docs/operations.md#servers-with-authentication: all processes and the command line. */
const Account = z.object({ sandbox_key: z.string() });
const LOAD = 40;

const folder = mkdtempSync(join(tmpdir(), 'secured-'));
const authority = createAuthority(folder);
let door: Awaited<ReturnType<typeof startTlsProxy>>;
let mongo: Awaited<ReturnType<typeof startSecuredMongo>>;
let env: NodeJS.ProcessEnv;
let stack: RunningStack | undefined;
let key: string;

beforeAll(async () => {
  door = await startTlsProxy(temporalAddress());
  mongo = await startSecuredMongo();
  const { cert, key } = authority.sign('process');
  env = {
    TEMPORAL_ADDRESS: door.address,
    TEMPORAL_TLS_SERVER_CA_CERT_PATH: authority.ca,
    TEMPORAL_TLS_CLIENT_CERT_PATH: cert,
    TEMPORAL_TLS_CLIENT_KEY_PATH: key,
    TEMPORAL_TLS_SERVER_NAME: SERVER_NAME,
    TASK_QUEUE_PREFIX: `secured-${randomUUID().slice(0, 8)}`,
    MONGODB_URI: mongo.uri,
  };
});

afterAll(async () => {
  await stack?.destroy();
  await mongo?.stop();
  door?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('a payment settles on servers that require TLS, certificates and users', async () => {
  stack = await startStack({ autoplay: 'on', env });
  const account = Account.parse(await stack.cli('account', 'create', '--name', 'Secured'));
  key = account.sandbox_key;
  await createClient(stack.url, key).settledPayment();
  expect(await stack.cli('migrate')).toEqual({ indexes: [], search_attributes: [] });
  expect(await stack.cli('ledger', 'verify')).toMatchObject({ data: { differences_total: 0 } });
});

test('under load the processes export every metric that alerts and dashboards use', async () => {
  const metrics = stack?.state()?.metrics;
  if (stack === undefined || metrics === undefined) throw new Error('There is no stack.');
  const { post } = createClient(stack.url, key);
  const scrape = async (page: string) => {
    const answer = await fetch(page, { signal: AbortSignal.timeout(SCRAPE_MS_MAX) });
    expect(answer.status).toBe(200);
    return await answer.text();
  };
  const scraped = () => Promise.all(Object.values(metrics).map(scrape));
  const before = createsOn(await scraped());
  let created = 0;
  const create = async () => {
    const { status } = await post('/v1/payments', idealPayment());
    if (status === 201) created += 1;
  };
  const load = Promise.all(Array.from({ length: LOAD }, create));
  const during = [await scraped(), await scraped(), await scraped()];
  await load;
  const pages = await scraped();
  expect(Math.max(...during.map(createsOn))).toBeLessThanOrEqual(before + created);
  const told = metricsOn(pages.join('\n'));
  // The stack has no connector of Ethereum, SEPA or the kit: test/base/metrics/unit/meters.test.ts
  // knows their metrics. The SDK has counters of failures only once something has failed.
  const required = expressions()
    .flatMap(({ expr }) => metricsIn(expr))
    .filter((name) => !/^(payments_(evm|bank|sepa)_|temporal_.+_failed_total$)/.test(name));
  expect(required.filter((name) => !told.has(name))).toEqual([]);
  const [api = '', worker = '', bank = ''] = pages;
  expect(createsOn(pages)).toBe(before + created);
  expect(worker).toMatch(/^payments_ledger_differences 0$/m);
  for (const queue of ['lifecycle', 'lifecycle-live']) {
    const slots = `^temporal_worker_task_slots_available\\{.*task_queue="[^"]+-${queue}"`;
    expect(worker).toMatch(new RegExp(slots, 'm'));
  }
  expect(`${api}${bank}`).toMatch(/^payments_callbacks_total\{.*name="settled".*\} [1-9]\d*$/m);
});

/** Prometheus waits 10 s by default; a busy machine is given more. */
const SCRAPE_MS_MAX = 60_000;

/** Payments that the API counts as created; a repeat after a 503 is replayed. */
function createsOn([api = '']: string[]): number {
  const lines = api.matchAll(
    /^payments_creates_total\{operation="createPayment",.*"(?:created|replayed)"\} (\d+)$/gm,
  );
  return Array.from(lines, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0);
}

describe('a process names the fault of the configuration:', () => {
  async function findFault(change: NodeJS.ProcessEnv, live: boolean) {
    const access = temporalAccess({ ...env, ...change });
    const { connection } = connectTemporal(access);
    const warnings: string[] = [];
    const log = createLogger('secured', 'warn', { write: (line) => void warnings.push(line) });
    try {
      await checkTemporal({ connection, namespace: access.namespace }, log, live, () => {});
      return warnings.length === 0 && 'none';
    } catch (error) {
      return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    } finally {
      await connection.close();
    }
  }

  const NO_TLS = /^ConfigFault: Temporal is not reached by TLS as set/;
  const OTHER_SERVER = /^ConfigFault: .*elsewhere.*TEMPORAL_NAMESPACE/s;
  const otherCa = () => createAuthority(folder, 'other').ca;
  test.each<[fault: string, change: () => NodeJS.ProcessEnv, expected: RegExp, live?: boolean]>([
    ['none where nothing is wrong', () => ({}), /^none$/],
    ['an unknown namespace', () => ({ TEMPORAL_NAMESPACE: 'elsewhere' }), OTHER_SERVER],
    ['another authority', () => ({ TEMPORAL_TLS_SERVER_CA_CERT_PATH: otherCa() }), NO_TLS],
    ['another name', () => ({ TEMPORAL_TLS_SERVER_NAME: 'other.example' }), NO_TLS],
    ['a server without TLS', () => ({ TEMPORAL_ADDRESS: temporalAddress() }), NO_TLS],
    ['a server for development', () => ({}), /^ConfigFault: Temporal is a development/, true],
  ])('%s', async (_fault, change, expected, live = false) => {
    // A server that does not answer in time is no fault: then it is asked again.
    expect(await eventually('an answer', () => findFault(change(), live))).toMatch(expected);
  });
});

/**
 * Proxy of a Temporal server for callers with a certificate of the authority, by HTTP/2 over TLS;
 * the development server has no TLS of its own.
 */
async function startTlsProxy(address: string) {
  const { cert, key } = authority.sign('temporal');
  const [host, port] = address.split(':');
  const sockets = new Set<TLSSocket>();
  const server = createServer(
    {
      ...{ cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(authority.ca) },
      ...{ requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2'] },
    },
    (inside) => {
      const outside = connect(Number(port), host);
      sockets.add(inside);
      pipeline(inside, outside, inside, () => sockets.delete(inside));
    },
  );
  // The handshake refuses a caller without a certificate.
  server.on('tlsClientError', () => {});
  const listenPort = await freePort();
  server.listen(listenPort, LOOPBACK);
  await once(server, 'listening');
  return {
    address: `${LOOPBACK}:${listenPort}`,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const UP_MS_MAX = 120_000;
const SET = 'secured';
const PASSWORD = 'no-secret';
const DATABASES = ['payments', 'payments_sandbox_bank'];

/** Starts a mongod that takes TLS only, from clients with a certificate, and users only. */
async function startSecuredMongo() {
  const command = await provisionQuietly(mongod);
  const port = await freePort();
  const dbPath = join(folder, 'mongodb');
  const keyFile = join(folder, 'set.key');
  const logFile = join(folder, 'mongodb.log');
  mkdirSync(dbPath);
  writeFileSync(keyFile, randomBytes(48).toString('base64'), { mode: 0o600 });
  const child = await startChild({
    name: 'MongoDB',
    command,
    args: [
      ...['--dbpath', dbPath, '--port', String(port), '--bind_ip', LOOPBACK, '--nounixsocket'],
      ...['--replSet', SET, '--auth', '--keyFile', keyFile, '--wiredTigerCacheSizeGB', '0.25'],
      ...['--tlsMode', 'requireTLS', '--tlsCAFile', authority.ca],
      ...['--tlsCertificateKeyFile', authority.sign('mongodb').both, '--oplogSize', '64'],
    ],
    logFile,
    graceMs: 2_000,
  });
  const watchdog = startWatchdog([child.pid], folder);
  const files = new URLSearchParams({
    tls: 'true',
    tlsCAFile: authority.ca,
    tlsCertificateKeyFile: authority.sign('service').both,
  });
  const host = `${LOOPBACK}:${port}`;
  const uri = (login: string, more = `replicaSet=${SET}`) =>
    `mongodb://${login}${host}/?${files}&${more}`;
  const runOn = (at: string, command: object) =>
    withClient(at, (client) => client.db('admin').command(command));
  const createUser = (name: string, roles: object[]) => ({
    createUser: name,
    pwd: PASSWORD,
    roles,
  });
  const first = uri('', 'directConnection=true');
  const set = { _id: SET, members: [{ _id: 0, host }] };
  // The first user may be made without one, from this machine.
  const owner = createUser('owner', [{ role: 'root', db: 'admin' }]);
  for (const command of [{ replSetInitiate: set }, owner]) {
    await waitUntilUp(child, logFile, UP_MS_MAX, () => runOn(first, command));
  }
  const roles = DATABASES.map((db) => ({ role: 'readWrite', db }));
  await runOn(uri(`owner:${PASSWORD}@`), createUser('service', roles));
  return {
    uri: uri(`service:${PASSWORD}@`),
    stop: async () => {
      watchdog.dismiss();
      await child.stop();
    },
  };
}

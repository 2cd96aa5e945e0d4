import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import os from 'node:os';
import Koa from 'koa';
import { type Db, MongoClient } from 'mongodb';
import { createDashboard } from '../../src/dashboard/dashboard';
import { beginSession } from '../../src/dashboard/session';
import { constantRing } from '../../src/keys/ring';
import { createSealer } from '../../src/keys/seal';
import { createLogger } from '../../src/log';
import { createPayers } from '../../src/merchants/payers';
import { createConnectors } from '../../src/routing';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { createEndpointLimits } from '../../src/webhooks/endpoint-limits';
import { postWebhook } from '../../src/webhooks/post';
import { fillLists, LARGE_MERCHANT } from '../lists/fill';
import { memoryOf } from '../memory';
import { mongoFor, timed } from '../mongo-only';
import { type Machine, machine } from '../result';
import type { Setting } from '../servers';
import { type Percentiles, percentiles } from '../statistics';
import { type DashboardPage, PAGES } from './pages';

const READS = 100;
const WARM_UP = 10;

/** Times in ms, beside those of the query that the page's rows come from. */
interface PageFigures {
  name: string;
  page: Percentiles;
  query: Percentiles;
  bytes: number;
}

export interface DashboardResult {
  machine: Machine;
  /** Payments of the merchant, over a year. */
  payments: number;
  reads: number;
  pages: PageFigures[];
  /** Export of all payments; memory in MiB that the process grew by at most. */
  export: { rows: number; bytes: number; seconds: number; grew_mib: number };
}

/**
 * Fills a store so that one merchant has this many payments, and measures the dashboard's pages over
 * HTTP beside their bare queries, and an export of all of them.
 * @param broken rejects when the run can't go on
 */
export async function runDashboardBench(
  payments: number,
  setting: Setting,
  broken: Promise<never>,
): Promise<DashboardResult> {
  const server = await mongoFor(setting);
  const mongo = await new MongoClient(server.uri, {
    appName: 'bench',
    readConcernLevel: 'majority',
    runtimeAdapters: { os },
  }).connect();
  const db = mongo.db(`bench_${process.pid}_dashboard`);
  const measuring = async (): Promise<DashboardResult> => {
    const stores = createStores(db);
    const size = { total: payments * 2, until: Date.now() };
    await setting.progress.during(`Filling ${payments} payments of one merchant`, (task) =>
      fillLists(db, size, task.say, setting.signal),
    );
    await setting.progress.during('Making indexes', () => ensureIndexes(stores));
    const visit = await openDashboard(mongo, db, stores);
    try {
      const pages = await setting.progress.during('Reading pages', async (task) => {
        const figures: PageFigures[] = [];
        for (const page of PAGES) {
          task.say(page.name);
          setting.signal.throwIfAborted();
          figures.push(await measurePage(page, visit.get, stores, payments));
        }
        return figures;
      });
      const exported = await setting.progress.during('Exporting', () => measureExport(visit.open));
      return { machine: machine(), payments, reads: READS, pages, export: exported };
    } finally {
      visit.close();
    }
  };
  try {
    return await Promise.race([measuring(), broken]);
  } finally {
    await db.dropDatabase();
    await mongo.close();
    await server.stop();
  }
}

/** Serves the dashboard for the merchant's staff; what acts on other servers is not there. */
async function openDashboard(mongo: MongoClient, db: Db, stores: Stores) {
  const created_at = new Date().toISOString();
  const user = {
    _id: 'user_bench',
    account_id: LARGE_MERCHANT,
    email: 'bench@example.com',
    role: 'owner',
    password_hash: '',
    totp: null,
    totp_offered: null,
    recovery_hashes: [],
    created_at,
    signed_in_at: null,
  } as const;
  await stores.users.insert({ ...user, recovery_hashes: [] });
  await stores.accounts.insert({
    _id: LARGE_MERCHANT,
    name: 'Bench',
    crypto: false,
    enabled_methods: [],
    dashboard: { email: 'bench@example.com', password_hash: '' },
    created_at,
  });
  const session = await beginSession(stores.sessions, user, 'whole', new Date());
  const absent = () => Promise.reject(new Error(`${db.databaseName} has no such server.`));
  const app = new Koa();
  const log = createLogger('bench', 'silent');
  const ring = constantRing({ current: 'k', keys: { k: randomBytes(32) } });
  const sealer = createSealer(ring);
  const router = createDashboard({
    stores,
    mongo,
    acts: { refund: absent, cancel: absent, settle: absent },
    redeliveries: { one: absent, count: absent, all: absent },
    connectors: createConnectors('none'),
    sealer,
    payers: createPayers({ accounts: stores.accounts, sealer, log }),
    keys: { pay_token: ring, fingerprint: ring },
    publicUrl: 'http://localhost',
    allowPrivateWebhooks: false,
    isDeniedAddress: () => false,
    limits: createEndpointLimits({ slots: 1 }),
    post: postWebhook,
    clientAddress: () => '127.0.0.1',
    now: () => new Date(),
    log,
  });
  app.use(router.routes());
  const server = createServer(app.callback());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = Object(server.address());
  const open = async (path: string): Promise<Response> => {
    const headers = { Cookie: `dashboard=${session}` };
    const url = `http://127.0.0.1:${port}/dashboard/sandbox${path}`;
    const response = await fetch(url, { headers, redirect: 'manual' });
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}.`);
    return response;
  };
  return {
    open,
    get: async (path: string): Promise<number> => (await (await open(path)).text()).length,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function measurePage(
  { name, path, query }: DashboardPage,
  get: (path: string) => Promise<number>,
  stores: Stores,
  payments: number,
): Promise<PageFigures> {
  const times = { page: [] as number[], query: [] as number[] };
  let bytes = 0;
  for (let read = 0; read < WARM_UP + READS; read += 1) {
    const n = 2 * Math.floor(Math.random() * payments);
    const queried = await timed(() => query(stores, n));
    const shown = await timed(() => get(path(n)));
    bytes = shown.result;
    if (read < WARM_UP) continue;
    times.query.push(queried.seconds * 1_000);
    times.page.push(shown.seconds * 1_000);
  }
  return { name, page: percentiles(times.page), query: percentiles(times.query), bytes };
}

/** Reads the whole export as it comes, and looks at the memory of this process meanwhile. */
async function measureExport(open: (path: string) => Promise<Response>) {
  const before = memoryOf(process.pid, 'now') ?? 0;
  let [rows, bytes, most] = [-1, 0, before];
  const { seconds } = await timed(async () => {
    const { body } = await open('/payments.csv');
    if (body === null) throw new Error('The export is empty.');
    for await (const chunk of body) {
      bytes += chunk.length;
      rows += chunk.filter((byte: number) => byte === 10).length;
      most = Math.max(most, memoryOf(process.pid, 'now') ?? 0);
    }
  });
  return { rows, bytes, seconds, grew_mib: most - before };
}

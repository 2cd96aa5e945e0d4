import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import pino from 'pino';
import type { createApp } from '../../src/api/app';
import { SCOPES, type Scope } from '../../src/domain/merchants/api-key';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import type { Stores } from '../../src/store';
import { hashKey, makeKey } from '../../src/store/keys';
import type { WorkerVersion } from '../../worker/versioning';
import { eventually } from './eventually';
import { useFixture } from './fixture';
import { type Client, createClient } from './http';
import { openParts, type ProductOptions, type ProductParts } from './product-parts';
import { sharedProduct } from './servers';

export type Service = ReturnType<typeof present> & {
  /** Starts more workers, of a version if need be; `stop` ends them too. */
  startWorkers: (version?: WorkerVersion) => Promise<{ stop: () => Promise<void> }>;
  stopWorkers: () => Promise<unknown>;
  stop: () => Promise<void>;
};

export interface ServiceOptions extends ProductOptions {
  /** Says that a file reads or changes what all accounts share, and so needs a product of its own. */
  alone?: boolean;
}

type Kind =
  | 'payments'
  | 'refunds'
  | 'payouts'
  | 'disputes'
  | 'crypto_payments'
  | 'crypto_settlements';

export interface AccountOptions {
  livemode?: boolean;
  scopes?: Scope[];
  methods?: string[];
}

type AppDeps = Parameters<typeof createApp>[0];

/** A product of its own: with other settings, or for what is asserted about a service as a whole. */
export async function startService(options: ProductOptions = {}) {
  // Here only: a file that joins the product does without half of the modules.
  const { startProduct }: typeof import('./product') = require('./product');
  const { parts, ...product } = await startProduct(options);
  return { ...present(parts), ...product };
}

/** The product that runs for all files, with autoplay off, without limits, in both environments. */
async function joinService(): Promise<Service> {
  const parts = await openParts(sharedProduct());
  const refuse = () => Promise.reject(new Error('Other files need the workers of this product.'));
  return { ...present(parts), startWorkers: refuse, stopWorkers: refuse, stop: parts.close };
}

/** Joins the product that runs for all files, or starts one where options say how it differs. */
export async function openService(options?: ServiceOptions): Promise<Service> {
  return options === undefined ? await joinService() : await startService(options);
}

/** As `openService`, for one file's tests. A function gives options that other fixtures decide. */
export function useService(options?: ServiceOptions | (() => ServiceOptions)): Service {
  return useFixture(
    () => openService(typeof options === 'function' ? options() : options),
    (service) => service.stop(),
  );
}

export type Account = Awaited<ReturnType<Service['account']>>;

export function useAccount(service: Service, options: AccountOptions = {}): Account {
  return useFixture(() => service.account(options));
}

function present({ deps, close: _, ...parts }: ProductParts) {
  const { url, stores, db } = parts;
  const callable = ({ account_id, key }: { account_id: string; key: string }, livemode = false) => {
    const client = createClient(url, key);
    return {
      account_id,
      key,
      ...client,
      post: createPost(client, stores),
      count: (collection: string) => db.collection(collection).countDocuments({ account_id }),
      events: async (resource_id: string) => {
        const rows = await stores.events.list({ account_id, livemode, resource_id, limit: 50 });
        return rows.map(({ type }) => type).reverse();
      },
    };
  };
  return {
    ...parts,
    collection: <T extends Document = Document>(of: string) => db.collection<T>(of),
    /** Waits until a resource is stored with a status, or with an attention reason. */
    becomes: (kind: Kind, id: string, values: { status?: string; attention?: string }) =>
      eventually(`${kind} ${JSON.stringify(values)}`, async () => {
        const stored = await stores[kind].get(id);
        const wanted = { status: stored?.status, attention: stored?.attention, ...values };
        return stored?.status === wanted.status && stored?.attention === wanted.attention;
      }),
    /** Serves the API once more with other dependencies; gives all that it logs. */
    withApp: async (
      {
        config = {},
        ...changes
      }: Partial<Omit<AppDeps, 'config'>> & { config?: Partial<AppDeps['config']> },
      run: (url: string) => Promise<void>,
    ): Promise<string> => {
      const api: typeof import('../../src/api/app') = require('../../src/api/app');
      const servers: typeof import('../../src/api/server') = require('../../src/api/server');
      const lines: string[] = [];
      const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) });
      const app = api.createApp({
        ...deps,
        log,
        ...changes,
        config: { ...deps.config, ...config },
      });
      const own = servers.createHttpServer(app.callback());
      own.listen(0, '127.0.0.1');
      await once(own, 'listening');
      const { port } = Object.assign({ port: 0 }, own.address());
      await run(`http://localhost:${port}`).finally(() => servers.closeServer(own, 100));
      return lines.join('');
    },
    withKey: async (
      { account_id }: { account_id: string },
      livemode: boolean,
      scopes?: Scope[],
    ) => {
      const key = await openKey(stores, account_id, livemode, scopes);
      return callable({ account_id, key }, livemode);
    },
    account: async (more: AccountOptions = {}) =>
      callable(await openAccount(stores, more), more.livemode),
  };
}

export async function openAccount(
  stores: Stores,
  { livemode = false, scopes = [...SCOPES], methods = [...PAYMENT_METHOD_IDS] }: AccountOptions,
) {
  const account_id = `acct_${randomUUID()}`;
  const created_at = new Date().toISOString();
  await stores.accounts.insert({
    ...{ _id: account_id, name: 'Test Shop', crypto: false, enabled_methods: methods, created_at },
    dashboard: { email: `${account_id}@example.com` },
  });
  return { account_id, key: await openKey(stores, account_id, livemode, scopes) };
}

export async function openKey(
  stores: Stores,
  account_id: string,
  livemode: boolean,
  scopes: Scope[] = [...SCOPES],
): Promise<string> {
  const key = makeKey(livemode);
  await stores.keys.insert({
    ...{ _id: `key_${randomUUID()}`, account_id, livemode, scopes },
    ...{ hash: hashKey(key), last4: key.slice(-4), created_at: new Date().toISOString() },
    ...{ revoked_at: null, last_used_at: null },
  });
  return key;
}

/** The API answers a simulation after this time also where its report is not applied yet. */
const ANSWERED_AFTER_MS = 5_000;
const PATIENCE_MS = 30_000;
const SIMULATION = /^\/v1\/sandbox\/((?:crypto\/)?\w+)\/([^/]+)\/simulate$/;

/**
 * Posts as a client does. The answer to a simulation shows what the report has changed, also where a
 * busy machine applies it after the answer.
 */
function createPost({ post, get }: Client, stores: Stores): Client['post'] {
  const resources = {
    payments: stores.payments,
    refunds: stores.refunds,
    payouts: stores.payouts,
    'crypto/payments': stores.crypto_payments,
    'crypto/settlements': stores.crypto_settlements,
  };
  return async (path, body, more) => {
    const [, kind = '', id = ''] = SIMULATION.exec(path) ?? [];
    const store = Object.entries(resources).find(([name]) => name === kind)?.[1];
    const before = await store?.get(id);
    const begun = Date.now();
    const answer = await post(path, body, more);
    const isLate = Date.now() - begun >= ANSWERED_AFTER_MS;
    if (store === undefined || !before || answer.status !== 200 || !isLate) return answer;
    const isApplied = async () => {
      const report = (await stores.callbacks.forResource(id)).at(-1);
      if (report?.unapplied != null || report?.parked != null) return true;
      return !isDeepStrictEqual(await store.get(id), before);
    };
    // A report may also change nothing, and nothing says so.
    await eventually(`the report of ${kind} ${id}`, isApplied, PATIENCE_MS).catch(() => undefined);
    const read = await get(`/v1/${kind}/${id}`);
    return read.status === 200 ? { ...answer, body: read.body, text: read.text } : answer;
  };
}

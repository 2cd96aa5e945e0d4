import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import Koa from 'koa';
import type { MongoClient } from 'mongodb';
import { createLogger } from '../../src/base/log';
import { connectMongo } from '../../src/base/mongo';
import type { Brand } from '../../src/domain/account/brand';
import type { PaymentStatus } from '../../src/domain/payment/payment';
import { hashSecret } from '../../src/pages/browser';
import type { CryptoPagePayment } from '../../src/pages/crypto-stage';
import { createPayPages } from '../../src/pages/pay';
import { createPaymentStore, type PaymentDocument } from '../../src/store/payments';
import { useFixture } from '../support/fixture';
import { retryUntilDone } from '../support/insist';
import { mongodbUri } from '../support/servers';
import { type Answer, ask } from './http';

const MERCHANT = 'Tulip & Sons <Flowers>';

export interface PayServer {
  url: string;
  mongo: MongoClient;
  database: string;
  payments: ReturnType<typeof createPaymentStore>;
  insert: (
    change?: Partial<PaymentDocument>,
  ) => Promise<{ token: string; payment: PaymentDocument }>;
  set: (id: string, change: Partial<PaymentDocument>) => Promise<void>;
  cancelled: string[];
  /** Crypto payments that the pages find, by the token in their address. */
  crypto: Map<string, CryptoPagePayment>;
  /** Brand of the merchant; each test begins without. */
  brand: Omit<Brand, 'display_name'>;
  /** Images by their hash. */
  logos: Map<string, Buffer>;
  /** The time that the pages see is this much ahead, in ms. */
  clock: { aheadMs: number };
  /** A browser's request; `cookie` is what an earlier answer set. */
  ask: (method: string, path: string, headers?: Record<string, string>) => Promise<Answer>;
  /** Opens a payment's page; the cookie that binds it to this browser. */
  open: (token: string) => Promise<{ cookie: string }>;
  stop: () => Promise<void>;
}

/** The hosted pages alone, on a real MongoDB; cancels are written straight to the document. */
export async function startPayServer(publicUrl?: string): Promise<PayServer> {
  const database = `test_pages_${randomBytes(6).toString('hex')}`;
  const mongo = await connectMongo(mongodbUri(), 'test-pages');
  const db = mongo.db(database);
  const documents = db.collection<PaymentDocument>('payments');
  const payments = createPaymentStore(db);
  await retryUntilDone(() => payments.ensureIndexes());
  const cancelled: string[] = [];
  const crypto = new Map<string, CryptoPagePayment>();
  const cryptoByHash = (hash: string) =>
    [...crypto].find(([token]) => hashSecret(token) === hash)?.[1] ?? null;
  const clock = { aheadMs: 0 };
  const brand: PayServer['brand'] = {};
  const logos = new Map<string, Buffer>();

  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const url = `http://localhost:${address.port}`;
  const set = async (id: string, change: Partial<PaymentDocument>) => {
    await documents.updateOne({ _id: id }, { $set: change });
  };
  const pages = createPayPages({
    payments,
    cryptoPayments: { byToken: async (hash) => cryptoByHash(hash) },
    getBrand: async () => ({ name: MERCHANT, ...brand }),
    readLogo: async (hash) => logos.get(hash) ?? null,
    cancelPayment: async ({ _id: id }) => {
      cancelled.push(id);
      const open: PaymentStatus[] = ['created', 'awaiting_customer'];
      const { modifiedCount } = await documents.updateOne(
        { _id: id, status: { $in: open } },
        { $set: { status: 'cancelled' } },
      );
      return modifiedCount === 1 ? 'cancelled' : 'cannot_cancel';
    },
    publicUrl: publicUrl ?? url,
    getNow: async () => new Date(Date.now() + clock.aheadMs),
    log: createLogger('test', 'silent'),
  });
  server.on('request', new Koa().use(pages.routes()).callback());
  return {
    url,
    mongo,
    database,
    payments,
    cancelled,
    crypto,
    clock,
    brand,
    logos,
    set,
    ask: (method, path, headers) => ask(url, method, path, headers),
    open: async (token) => {
      const { cookie } = await ask(url, 'POST', `/pay/${token}`);
      return { cookie };
    },
    insert: async (change = {}) => {
      const token = randomBytes(32).toString('base64url');
      const payment = { ...newPayment(hashSecret(token)), ...change };
      await documents.insertOne(payment);
      return { token, payment };
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await retryUntilDone(() => db.dropDatabase());
      await mongo.close();
    },
  };
}

/** The pages for one file's tests, each of which begins at the present time. */
export function usePayServer(): PayServer {
  const server = useFixture(startPayServer, (started) => started.stop());
  beforeEach(() => {
    server.clock.aheadMs = 0;
    for (const name of ['accent', 'logo'] as const) delete server.brand[name];
  });
  return server;
}

function newPayment(token_hash: string): PaymentDocument {
  const now = new Date().toISOString();
  const id = randomUUID();
  return {
    _id: id,
    account_id: 'acct_test',
    livemode: false,
    version: 1,
    transition: 1,
    position: `${now}-${id}`,
    status: 'awaiting_customer',
    amount: 4_950,
    currency: 'EUR',
    method: 'ideal',
    country: 'NL',
    reference: 'order-1042',
    customer: { reference: null, ciphertext: null },
    metadata: '{}',
    failure: null,
    refunded: 0,
    authorized_at: null,
    settled_at: null,
    cancelled_at: null,
    created_at: now,
    updated_at: now,
    success_url: 'https://shop.example/thanks?order=1042',
    error_url: 'https://shop.example/sorry?order=1042',
    expires_at: new Date(Date.now() + 1_800_000).toISOString(),
    connector: 'sandbox',
    bank_reference: 'SBX1',
    session_url: 'http://localhost:9/session/not-a-real-bank',
    token_hash,
    browser_hash: null,
    opened_at: null,
    attention: null,
    request_id: 'req_test',
    audit: [],
  };
}

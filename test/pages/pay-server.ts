import { randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import Koa from 'koa';
import { buildPayment } from '../../bench/product/documents';
import { createLogger } from '../../src/base/log';
import { connectMongo } from '../../src/base/mongo';
import type { Brand } from '../../src/domain/merchants/brand';
import type { PaymentStatus } from '../../src/domain/payment/payment';
import { hashSecret } from '../../src/pages/browser';
import type { CryptoPagePayment } from '../../src/pages/crypto-stage';
import { createPayPages } from '../../src/pages/pay';
import { createPaymentStore, type PaymentDocument } from '../../src/store/payments';
import { retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { mongodbUri } from '../support/servers';
import { receiveHttp } from '../webhooks/receiver';

const MERCHANT = 'Tulip & Sons <Flowers>';

/** The hosted pages alone, on a real MongoDB; cancels are written straight to the document. */
export async function startPayServer(publicUrl?: string) {
  const database = `test_pages_${randomBytes(6).toString('hex')}`;
  const mongo = await connectMongo(mongodbUri(), 'test-pages');
  const db = mongo.db(database);
  const documents = db.collection<PaymentDocument>('payments');
  const payments = createPaymentStore(db);
  await retryUntilDone(() => payments.ensureIndexes());
  const cancelled: string[] = [];
  /** Crypto payments that the pages find, by the token in their address. */
  const crypto = new Map<string, CryptoPagePayment>();
  const cryptoByHash = (hash: string) =>
    [...crypto].find(([token]) => hashSecret(token) === hash)?.[1] ?? null;
  /** The time that the pages see is this much ahead, in ms. */
  const clock = { aheadMs: 0 };
  const brand: Omit<Brand, 'display_name'> = {};
  /** Images by their hash. */
  const logos = new Map<string, Buffer>();

  let serve: RequestListener | undefined;
  const server = await receiveHttp((request, response) => serve?.(request, response));
  const url = `http://localhost:${server.port}`;
  const set = async (id: string, change: Partial<PaymentDocument>) => {
    await documents.updateOne({ _id: id }, { $set: change });
  };
  const pages = createPayPages({
    payments,
    cryptoPayments: { byToken: async (hash) => cryptoByHash(hash) },
    getBrand: async () => ({ name: MERCHANT, ...brand }),
    readLogo: async (hash) => {
      const image = logos.get(hash);
      return image === undefined ? null : { image, type: 'image/png' };
    },
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
  serve = new Koa().use(pages.routes()).callback();
  return {
    ...{ url, mongo, database, payments, cancelled, crypto, clock, brand, logos, set },
    /** A browser's request; `cookie` is what an earlier answer set. */
    ask: (method: string, path: string, headers?: Record<string, string>) =>
      ask(url, method, path, headers),
    /** Opens a payment's page; the cookie that binds it to this browser. */
    open: async (token: string) => {
      const { cookie } = await ask(url, 'POST', `/pay/${token}`);
      return { cookie };
    },
    insert: async (change: Partial<PaymentDocument> = {}) => {
      const token = randomBytes(32).toString('base64url');
      const payment = buildPayment({
        ...{ account_id: 'acct_test', token_hash: hashSecret(token), status: 'awaiting_customer' },
        ...{ amount: 4_950, authorized_at: null, settled_at: null, reference: 'order-1042' },
        created_at: new Date().toISOString(),
        expires_at: new Date(Date.now() + 1_800_000).toISOString(),
        success_url: 'https://shop.example/thanks?order=1042',
        error_url: 'https://shop.example/sorry?order=1042',
        session_url: 'http://localhost:9/session/not-a-real-bank',
        ...change,
      });
      await documents.insertOne(payment);
      return { token, payment };
    },
    stop: async () => {
      await server.close();
      await retryUntilDone(() => db.dropDatabase());
      await mongo.close();
    },
  };
}

/** The pages for one file's tests, each of which begins at the present time. */
export function usePayServer(): Awaited<ReturnType<typeof startPayServer>> {
  const server = useFixture(startPayServer, (started) => started.stop());
  beforeEach(() => {
    server.clock.aheadMs = 0;
    for (const name of ['accent', 'logo'] as const) delete server.brand[name];
  });
  return server;
}

/** Answer as a browser sees it. */
interface Answer {
  status: number;
  location: string | null;
  /** `name=value` of the cookie it set; empty when it set none. */
  cookie: string;
  headers: Headers;
  text: string;
}

/** A browser's request, redirects not followed; `cookie` is what an earlier answer set. */
async function ask(
  base: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${base}${path}`, { method, headers, redirect: 'manual' });
  return {
    status: response.status,
    location: response.headers.get('location'),
    cookie: (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '',
    headers: response.headers,
    text: await response.text(),
  };
}

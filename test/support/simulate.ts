import { isDeepStrictEqual } from 'node:util';
import type { Stores } from '../../src/store';
import { type Client, eventually } from './http';

/** The API answers a simulation after this time also where its report is not applied yet. */
const ANSWERED_AFTER_MS = 5_000;
const PATIENCE_MS = 30_000;
const SIMULATION = /^\/v1\/sandbox\/((?:crypto\/)?\w+)\/([^/]+)\/simulate$/;

/**
 * Posts as a client does. The answer to a simulation shows what the report has changed, also where a
 * busy machine applies it after the answer.
 */
export function createPost({ post, get }: Client, stores: Stores): Client['post'] {
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

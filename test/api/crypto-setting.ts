import { randomUUID } from 'node:crypto';
import { actOn } from '../../src/cli/act';
import type { CallbackName } from '../../src/domain/callback';
import { verifyLedger } from '../../src/ledger/verify/verify';
import { LIFECYCLES } from '../../src/lifecycles';
import { deliverCallback } from '../../src/temporal/bank-callbacks';
import { call, eventually } from '../support/http';
import type { Service } from '../support/service';

/** Smallest units of one ether. */
export const ETHER = 10n ** 18n;

export const IN_ETHER = { amount: 10_000, currency: 'EUR', asset: 'ETH', network: 'ethereum' };

/** A merchant with crypto, and all that happens to its coins. */
export async function openCryptoShop(service: Service, livemode = false) {
  const { url, stores, temporal, queues, coins, mongo, database } = service;
  const { account_id, key } = await service.account({ livemode });
  await stores.accounts.setCrypto(account_id, true);
  const get = (path: string) => call(url, 'GET', path, { key });
  const post = (path: string, body: object) => call(url, 'POST', path, { key, body });
  const inbox = { stores, temporal, lifecycleQueue: queues.lifecycle, now: () => new Date() };

  const report = (
    resource: 'crypto_payment' | 'crypto_settlement',
    resource_id: string,
    name: CallbackName,
    more: object,
  ) => {
    const occurred_at = new Date().toISOString();
    const callback = { callback_id: `cb-${randomUUID()}`, occurred_at, ...more };
    const about = { connector: coins, resource, resource_id, name, callback };
    return deliverCallback(inbox, about);
  };
  const read = async (id: string) => (await get(`/v1/crypto/payments/${id}`)).body;
  return {
    account_id,
    key,
    get,
    post,
    read,
    report,
    /** A payment of 100 EUR, one ether. */
    pay: async (changes: object = {}) => {
      const created = await post('/v1/crypto/payments', { ...IN_ETHER, ...changes });
      if (created.status !== 201) throw new Error(`Not created: ${created.text}`);
      return created.body;
    },
    /** Tells of a deposit. */
    deposit: (
      id: string,
      transaction_id: string,
      amount: bigint,
      confirmations = 3,
      more: object = {},
    ) =>
      report('crypto_payment', id, 'deposit', {
        transaction_id,
        amount: String(amount),
        confirmations,
        ...more,
      }),
    undo: (id: string, transaction_id: string) =>
      report('crypto_payment', id, 'deposit_undone', { transaction_id }),
    /** Waits until a payment is as it should be. */
    until: (id: string, what: string, isSo: (payment: Payment) => boolean): Promise<Payment> =>
      eventually(what, async () => {
        const payment: Payment = await read(id);
        return isSo(payment) && payment;
      }),
    attention: (id: string, mark: string | null) =>
      eventually(`${mark}`, async () => {
        const kept = await stores.crypto_payments.get(id);
        return kept?.attention === mark;
      }),
    act: (
      kind: 'crypto_payment' | 'crypto_settlement',
      id: string,
      what: string,
      hours?: number,
    ) => {
      const act = { what, operator: 'mia', reason: 'Ticket 42', hours };
      return actOn({ stores, temporal, lifecycleQueue: queues.lifecycle }, kind, id, act);
    },
    events: async (resource_id: string) => {
      const rows = await stores.events.list({
        ...{ account_id, livemode, resource_id, limit: 50 },
      });
      return rows.map(({ type }) => type).reverse();
    },
    /** Money of one coin. */
    balance: async (currency = 'ETH.ethereum') => {
      const rows = await stores.ledger.balances(account_id, livemode);
      const row = rows.find((each) => each.currency === currency);
      return { available: String(row?.available ?? 0), reserved: String(row?.reserved ?? 0) };
    },
    handle: (kind: 'crypto_payment' | 'crypto_settlement', id: string) =>
      temporal.workflow.getHandle(LIFECYCLES[kind].workflowId(id)),
    verify: () => verifyLedger(mongo, database, { full: true }),
  };
}

interface Payment {
  id: string;
  status: string;
  amount_received: string;
  deposits: { transaction_id: string; status: string; confirmations: number }[];
}

export type CryptoShop = Awaited<ReturnType<typeof openCryptoShop>>;

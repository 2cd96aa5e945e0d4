import { randomUUID } from 'node:crypto';
import { deliverCallback } from '../../src/callbacks/deliver';
import type { CallbackName } from '../../src/domain/banks/callback';
import { type VerifyOptions, verifyLedger } from '../../src/ledger-check/verify';
import { LIFECYCLES } from '../../src/lifecycles';
import { type Act, actOn } from '../../src/service/operators/act';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import type { Service } from '../support/service';

/** Smallest units of one ether. */
export const ETHER = 10n ** 18n;

export const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';

/** Time in which a busy machine carries out an act. */
export const ACT_MS_MAX = 180_000;

/** Asset that is paid and settled. */
export const ASSET = { asset: 'ETH', network: 'ethereum' };

export const IN_ETHER = { amount: 10_000, currency: 'EUR', ...ASSET };

type Kind = 'crypto_payment' | 'crypto_settlement';

/** A merchant with crypto, and all that happens to its assets. */
export async function openCryptoShop(service: Service, livemode = false) {
  const { stores, temporal, queues, chainConnector, mongo, database } = service;
  const account = await service.account({ livemode });
  const { account_id, get, post } = account;
  await stores.accounts.setCrypto(account_id, true);
  const inbox = { stores, temporal, lifecycleQueue: queues.lifecycle, now: () => new Date() };

  const report = async (resource: Kind, resource_id: string, name: CallbackName, more: object) => {
    // A product without a chain of its own has the chain of the sandbox bank.
    const stored = await stores[`${resource}s` as const].get(resource_id);
    const connector = stored?.connector ?? chainConnector;
    const occurred_at = new Date().toISOString();
    const callback = { callback_id: `cb-${randomUUID()}`, occurred_at, ...more };
    return deliverCallback(inbox, { connector, resource, resource_id, name, callback });
  };
  const read = async (id: string) => (await get(`/v1/crypto/payments/${id}`)).body;
  const pay = async (changes: object = {}) => {
    const created = await post('/v1/crypto/payments', { ...IN_ETHER, ...changes });
    if (created.status !== 201) throw new Error(`Not created: ${created.text}`);
    return created.body;
  };
  const deposit = (
    id: string,
    transaction_id: string,
    amount: bigint,
    confirmations = 3,
    more: object = {},
  ) => {
    const facts = { transaction_id, amount: String(amount), confirmations, ...more };
    return report('crypto_payment', id, 'deposit', facts);
  };
  const until = (id: string, what: string, isSo: (payment: Payment) => boolean) =>
    eventually(what, async () => {
      const payment: Payment = await read(id);
      return isSo(payment) && payment;
    });
  const untilStatus = (id: string, wanted: string) =>
    until(id, wanted, ({ status }) => status === wanted);
  return {
    ...account,
    read,
    report,
    pay,
    deposit,
    until,
    untilStatus,
    /** Creates a payment, reports one deposit, and waits for its status. */
    payBy: async (transaction_id: string, amount: bigint, wanted: string): Promise<string> => {
      const { id } = await pay();
      await deposit(id, transaction_id, amount);
      await untilStatus(id, wanted);
      return id;
    },
    /** Registers a wallet that takes effect at once. */
    registerWallet: () => {
      const now = new Date().toISOString();
      const wallet = { account_id, livemode, network: 'ethereum', address: WALLET } as const;
      return stores.wallets.set(wallet, { now, counts_from: now });
    },
    act: (kind: Kind, id: string, what: string, facts: Partial<Act> = {}) => {
      const act = { ...facts, what, operator: 'mia', reason: 'Ticket 42' };
      const deps = { stores, temporal, lifecycleQueue: queues.lifecycle, timeoutMs: ACT_MS_MAX };
      return actOn(deps, kind, id, act);
    },
    /** Balance of one asset; of ether by default. */
    balance: async (currency = 'ETH.ethereum') => {
      const rows = await stores.ledger.balances(account_id, livemode);
      const row = rows.find((each) => each.currency === currency);
      return { available: String(row?.available ?? 0), reserved: String(row?.reserved ?? 0) };
    },
    handle: (kind: Kind, id: string) =>
      temporal.workflow.getHandle(LIFECYCLES[kind].workflowId(id)),
    verify: (options: VerifyOptions = {}) =>
      verifyLedger(mongo, database, { full: true, ...options }),
  };
}

/** A merchant with crypto for one file's tests. */
export function useCryptoShop(service: Service): CryptoShop {
  return useFixture(() => openCryptoShop(service));
}

interface Payment {
  id: string;
  status: string;
  amount_received: string;
  deposits: { transaction_id: string; status: string; confirmations: number }[];
}

export type CryptoShop = Awaited<ReturnType<typeof openCryptoShop>>;

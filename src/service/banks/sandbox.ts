import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { ClientSession, Db } from 'mongodb';
import { deriveUuid } from '../../base/ids';
import type {
  BankCallback,
  BankResource,
  CallbackName,
  CallbackResource,
  PayeeResult,
} from '../../domain/banks/callback';
import { type BankDecision, decideMovements, type Movement } from '../../domain/banks/sandbox';
import type { CryptoCallback } from '../../domain/crypto/callback';
import { type SimulatedDeposit, simulateReport } from '../../domain/crypto/simulation';
import { omitUndefined } from '../../domain/defined';
import { Refusal } from '../../domain/errors';
import { isFinal, PAYMENT_STATUSES } from '../../domain/payment/payment';
import { callbackKey } from '../../store/callbacks';
import type { DisputeDocument } from '../../store/disputes';
import type { MerchantDeps, Owner } from '../access';
import { accountNow } from '../merchants/clock';
import { getCryptoPayment, getCryptoSettlement } from '../money/crypto';
import { getPayment } from '../money/payments';
import { getPayout } from '../money/payouts';
import { getRefund } from '../money/refunds';

export interface MovementDocument extends Movement {
  /** Resource and position, so that two decisions at once have a conflict. */
  _id: string;
  /** Callback or instruction. */
  decision: string;
  booked_at: Date;
  /** UTC day of the booking, and value date. */
  day: string;
  /** Null until a statement has it. */
  statement: string | null;
}

const MOVEMENTS = 'movements';

export function bankReference(instructionId: string): string {
  const digits = deriveUuid(`sandbox-bank:${instructionId}`).replaceAll('-', '');
  return `SBX${digits.slice(0, 12).toUpperCase()}`;
}

export function sandboxBankDatabase(database: string): string {
  return `${database}_sandbox_bank`;
}

export type MovementStore = ReturnType<typeof createMovementStore>;

/** @param db the bank's own */
export function createMovementStore(db: Db, now: () => Date) {
  const movements = db.collection<MovementDocument>(MOVEMENTS);
  return {
    collection: movements,
    ensureIndexes: () =>
      movements.createIndexes([
        { key: { resource_id: 1 }, name: 'resource' },
        { key: { decision: 1 }, name: 'decision' },
        { key: { bank_reference: 1 }, name: 'reference', unique: true },
        { key: { currency: 1, statement: 1, booked_at: 1 }, name: 'statement' },
      ]),
    hasMoved: async (decision: string): Promise<boolean> =>
      (await movements.findOne({ decision })) !== null,
    /** Finds it also if it was sent back since. */
    findSettlement: (resource_id: string, session: ClientSession) =>
      movements.findOne({ resource_id, name: 'settled' }, { session }),
    /**
     * Writes what a decision moves, once, in the transaction of the decision.
     * @throws MongoServerError duplicate key if another decision about the resource was faster
     */
    book: async (
      decision: BankDecision & { decision: string },
      session: ClientSession,
    ): Promise<void> => {
      const { resource, resource_id, name, bank_reference, fee, currency } = decision;
      const earlier = await movements.find({ resource_id }, { session }).toArray();
      if (earlier.some((each) => each.decision === decision.decision)) return;
      const booked_at = now();
      const rows = decideMovements(decision, earlier).map((amount, index) => {
        const _id = `${resource_id}:${earlier.length + index + 1}`;
        const isFree =
          index === 0 && !earlier.some((each) => each.bank_reference === bank_reference);
        return {
          _id,
          ...{ resource, resource_id, name, amount, currency, ...omitUndefined({ fee }) },
          bank_reference: isFree ? bank_reference : bankReference(`movement:${_id}`),
          decision: decision.decision,
          booked_at,
          day: booked_at.toISOString().slice(0, 10),
          statement: null,
        };
      });
      if (rows.length > 0) await movements.insertMany(rows, { session });
    },
  };
}

/** The workflow has to handle the event in this time. */
const SETTLE_MS = 5_000;
const POLL_MS = { first: 20, factor: 1.5, most: 250 };

interface SimulatedEvent<Name extends CallbackName> {
  event: Name;
  code?: string | null;
  reason?: string | null;
  /** Minor units; absent: the amount of the resource. */
  amount?: number | null;
  currency?: string;
  dispute_id?: string | null;
  /** Minor units. */
  fee?: number | null;
  result?: PayeeResult | null;
}

interface Report {
  name: CallbackName;
  callback: Omit<BankCallback, 'callback_id'> | Omit<CryptoCallback, 'callback_id'>;
  /** The sandbox bank has a book of the money that it moves. */
  decision?: BankDecision & { body: BankCallback };
}

interface SimulatedResource {
  _id: string;
  connector: string;
  applied_callbacks?: readonly string[];
}

interface BankDocument extends SimulatedResource {
  status: string;
  amount: number;
  currency: string;
  bank_reference: string | null;
  /** Disputes of a payment. */
  disputes?: readonly DisputeDocument[];
}

type Find<D extends SimulatedResource> = (
  deps: MerchantDeps,
  caller: Owner,
  id: string,
) => Promise<D>;

/**
 * Reports an event as every bank callback.
 * @returns the changed resource
 * @throws Refusal 403 for a live caller; 404
 * @see docs/decisions.md#sandbox
 */
export const simulatePayment = createBankSimulation('payment', async (deps, caller, id) => {
  const payment = await getPayment(deps, caller, id);
  return { ...payment, disputes: await deps.stores.disputes.forPayment(payment._id) };
});
export const simulateRefund = createBankSimulation('refund', getRefund);
export const simulatePayout = createBankSimulation('payout', getPayout);

export async function simulateCryptoSettlement(
  deps: MerchantDeps,
  caller: Owner,
  id: string,
  { event: name, ...facts }: SimulatedEvent<CallbackName>,
) {
  return await simulate(deps, caller, {
    id,
    resource: 'crypto_settlement',
    find: getCryptoSettlement,
    buildReport: (_settlement, { at }) => ({ name, callback: buildCallback(at, facts) }),
  });
}

export async function simulateCryptoPayment(
  deps: MerchantDeps,
  caller: Owner,
  id: string,
  deposit: SimulatedDeposit,
) {
  return await simulate(deps, caller, {
    id,
    resource: 'crypto_payment',
    find: getCryptoPayment,
    buildReport: (payment, { at }) =>
      simulateReport(payment, deposit, {
        transaction_id: `${payment.network === 'ethereum' ? '0x' : ''}${randomBytes(32).toString('hex')}`,
        now: at.toISOString(),
      }),
  });
}

function createBankSimulation<D extends BankDocument>(resource: BankResource, find: Find<D>) {
  return (
    deps: MerchantDeps,
    caller: Owner,
    id: string,
    { event: name, ...facts }: SimulatedEvent<BankDecision['name']>,
  ): Promise<D> => {
    const buildReport: Simulation<D>['buildReport'] = (document, { callback_id, at }) => {
      const { _id: resource_id, amount, currency } = document;
      // A repeated report of a dispute takes no money again.
      const own = facts.dispute_id && `${resource_id}:${facts.dispute_id}`;
      const decisionId = (name === 'dispute_opened' && own) || callback_id;
      // The session's own reference is for its first settlement alone.
      const isEnded = PAYMENT_STATUSES.some((each) => each === document.status && isFinal(each));
      const isOther = resource === 'payment' && (name !== 'settled' || isEnded);
      const own_reference = document.bank_reference ?? bankReference(resource_id);
      const bank_reference = isOther ? bankReference(decisionId) : own_reference;
      const callback = {
        ...buildCallback(at, facts),
        ...(resource === 'payment' && RECEIPTS.has(name) ? { bank_reference } : {}),
        ...(name === 'dispute_opened' && {
          evidence_due_at: new Date(at.getTime() + ANSWER_MS).toISOString(),
        }),
      };
      const moved = getDisputeAmount(document, name, facts) ?? facts.amount ?? amount;
      const fee = name === 'settled' ? facts.fee : null;
      const charge = fee == null ? {} : { fee };
      const money = { amount: moved, currency: facts.currency ?? currency, ...charge };
      const body = { callback_id, ...callback };
      const decision = { resource, resource_id, name, bank_reference, ...money, body };
      return { name, callback, decision };
    };
    return simulate(deps, caller, { id, resource, find, buildReport });
  };
}

const ANSWER_MS = 7 * 86_400_000;

/** Callbacks that name money of a payment by the bank's reference. */
const RECEIPTS: ReadonlySet<string> = new Set([
  'settled',
  'reversed',
  'clawed_back',
  'dispute_opened',
  'dispute_withdrawn',
  'dispute_reinstated',
  'dispute_won',
]);

/** Minor units with the fee, as the statement has them. */
function getDisputeAmount(
  { amount, disputes = [] }: BankDocument,
  name: BankDecision['name'],
  { dispute_id, amount: stated, fee }: Omit<SimulatedEvent<CallbackName>, 'event'>,
): number | undefined {
  if (!name.startsWith('dispute_')) return undefined;
  if (name === 'dispute_opened') return (stated ?? amount) + (fee ?? 0);
  // A lost one may be won later.
  const dispute = disputes.find(
    ({ status, name: own }) => status !== 'won' && own === (dispute_id ?? own),
  );
  return (stated ?? dispute?.amount ?? 0) + (fee ?? 0);
}

function buildCallback(
  at: Date,
  facts: Omit<SimulatedEvent<CallbackName>, 'event'>,
): Omit<BankCallback, 'callback_id'> {
  const stated = Object.entries(facts).filter(([, value]) => value != null);
  return { occurred_at: at.toISOString(), ...Object.fromEntries(stated) };
}

interface Simulation<D extends SimulatedResource> {
  id: string;
  resource: CallbackResource;
  find: Find<D>;
  buildReport: (document: D, facts: { callback_id: string; at: Date }) => Report;
}

async function simulate<D extends SimulatedResource>(
  deps: MerchantDeps,
  caller: Owner,
  { id, resource, find, buildReport }: Simulation<D>,
): Promise<D> {
  if (caller.livemode) {
    const message = 'Only sandbox keys can simulate what a bank reports.';
    throw new Refusal('api_key_scope_insufficient', message);
  }
  const before = await find(deps, caller, id);
  const { _id: resource_id, connector } = before;
  const callback_id = `simulated_${randomUUID()}`;
  const { name, callback, decision } = buildReport(before, {
    callback_id,
    at: await accountNow(deps, caller),
  });
  // The bank repeats the callback from here if this process ends before it is delivered. A bank's
  // test system has its own books, which no simulation changes.
  if (decision !== undefined && connector === deps.connectors.sandbox) {
    const report = { _id: callback_id, connector, ...decision, at: deps.now() };
    await deps.stores.sandboxReports.add(report);
  }
  await deps.callbacks.deliver({
    connector,
    resource,
    resource_id,
    name,
    callback: { callback_id, ...callback },
  });
  // Until it is applied, or cannot be: the resource may change for others meanwhile.
  const deadline = Date.now() + SETTLE_MS;
  for (let pause = POLL_MS.first; Date.now() < deadline; pause *= POLL_MS.factor) {
    const current = await find(deps, caller, id);
    if (current.applied_callbacks?.includes(callback_id)) return current;
    const storedCallback = await deps.stores.callbacks.get(callbackKey(connector, callback_id));
    if (storedCallback?.unapplied != null || storedCallback?.parked != null) break;
    await wait(Math.min(pause, POLL_MS.most));
  }
  return await find(deps, caller, id);
}

import type { ClientSession } from 'mongodb';
import { inTransaction } from '../src/base/mongo';
import { omitUndefined } from '../src/domain/defined';
import { reportId } from '../src/domain/payment/receipt';
import {
  computeRest,
  findReportedSent,
  isOpenSent,
  isUnbooked,
  type SendingKind,
  type SentHeld,
  type SentTransition,
  takeSent,
} from '../src/domain/sent-held';
import type { Owned } from '../src/ledger/resource-entries';
import { buildSentHeld, buildSentResolved } from '../src/ledger/sent-entries';
import type { Stores } from '../src/store';
import type { MoneyReport } from './shared/record-inputs';
import type { RecordDeps } from './shared/record-table';

interface SentHeldReport extends MoneyReport<number | string> {
  kind: SendingKind;
  resource_id: string;
  says?: 'sent' | 'completed';
}

interface SentHeldResult {
  sent_held: SentHeld[];
}

/** Posts what a bank sent otherwise than instructed. */
export function createSentHeld(deps: RecordDeps) {
  return {
    /** Posts to suspense, once. */
    recordSentHeld: (input: SentHeldReport): Promise<SentHeldResult> => recordSentHeld(deps, input),
    /** Posts out of suspense, once, since the bank has the money back. */
    recordSentBack: (input: SentHeldReport): Promise<SentHeldResult> => recordSentBack(deps, input),
  };
}

async function recordSentHeld(deps: RecordDeps, input: SentHeldReport): Promise<SentHeldResult> {
  const { kind, resource_id, bank_reference } = input;
  const store = pickStore(deps.stores, kind);
  await inTransaction(deps.mongo, async (session) => {
    const resource = await store.get(resource_id, session);
    if (resource === null || !isUnbooked(resource, kind, input)) return;
    const known = findReportedSent(resource.sent_held ?? [], input);
    if (known !== undefined) {
      if (bank_reference) await store.nameSentHeld(resource_id, known, bank_reference, session);
      return;
    }
    const { amount = resource.amount, currency = resource.currency, at } = input;
    const named = { id: reportId(input), bank_reference: bank_reference || null };
    const held = { ...named, amount, currency, at };
    if (!(await store.recordSentHeld(resource_id, held, session))) return;
    await deps.stores.ledger.post(buildSentHeld(kind, resource, held, input), session);
  });
  return await readSentHeld(deps, input);
}

async function recordSentBack(deps: RecordDeps, input: SentHeldReport): Promise<SentHeldResult> {
  const { kind, resource_id, at, callback_id: by } = input;
  const store = pickStore(deps.stores, kind);
  await inTransaction(deps.mongo, async (session) => {
    const resource = await store.get(resource_id, session);
    const items = resource?.sent_held ?? [];
    if (resource === null || items.some(({ resolved }) => resolved?.by === by)) return;
    const { amount, currency = resource.currency } = input;
    const held = items.find(
      (each) =>
        isOpenSent(each) &&
        each.currency === currency &&
        (amount === undefined || BigInt(amount) === computeRest(each)),
    );
    if (held === undefined) return;
    if (!(await store.resolveSentHeld(resource_id, held, { as: 'returned', at, by }, session)))
      return;
    const entry = buildSentResolved(kind, resource, held, { as: 'returned', at });
    await deps.stores.ledger.post(entry, session);
  });
  return await readSentHeld(deps, input);
}

async function readSentHeld(
  { stores }: RecordDeps,
  { kind, resource_id }: SentHeldReport,
): Promise<SentHeldResult> {
  const resource = await pickStore(stores, kind).get(resource_id);
  if (resource === null) throw new Error(`The record of ${resource_id} is not there.`);
  return { sent_held: resource.sent_held ?? [] };
}

type SendingStore = Pick<
  Stores['payouts'],
  'recordSentHeld' | 'nameSentHeld' | 'replaceSentHeld' | 'resolveSentHeld'
> & { get(id: string, session?: ClientSession): Promise<Sender | null> };

type Sender = Owned & {
  status: string;
  amount: number | string;
  applied_callbacks?: string[];
  sent_held?: SentHeld[];
};

function pickStore(stores: Stores, kind: SendingKind): SendingStore {
  const { refunds: refund, payouts: payout, crypto_settlements: crypto_settlement } = stores;
  return { refund, payout, crypto_settlement }[kind];
}

interface Leaving extends Pick<SentTransition, 'sent'> {
  to: readonly string[];
  at: string;
  change: { bank_reference?: string; transaction_id?: string };
  audit?: object | undefined;
}

/**
 * Empties suspense with the transition that settles or fails the resource.
 * @returns smallest units that the transition's entry takes
 */
export async function leaveSuspense(
  stores: Stores,
  kind: SendingKind,
  resource: Sender & { _id: string },
  { to, at, change, audit, sent }: Leaving,
  session: ClientSession,
): Promise<bigint> {
  const before = resource.sent_held ?? [];
  if (!before.some(isOpenSent)) return 0n;
  const isAct = audit !== undefined;
  const { currency, _id } = resource;
  const named = omitUndefined({ bank_reference: change.transaction_id ?? change.bank_reference });
  const isFailed = to.includes('failed');
  const { items, posted, back } = takeSent(before, {
    isFailed,
    sent,
    currency,
    isAct,
    at,
    ...named,
  });
  await pickStore(stores, kind).replaceSentHeld(_id, items, session);
  for (const held of back) {
    const as = isAct ? 'never_sent' : 'returned';
    await stores.ledger.post(buildSentResolved(kind, resource, held, { as, at }), session);
  }
  return posted;
}

export function pickSentHeld({ sent_held = [] }: Pick<Sender, 'sent_held'>) {
  return sent_held.length === 0 ? {} : { sent_held };
}

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
import type { ResourceDocument } from '../src/store/resource';
import type { Known, MoneyReport, Written } from './shared/record-inputs';
import type { RecordDeps } from './shared/record-table';
import { bookOnce } from './shared/written';

interface SentHeldReport extends MoneyReport<number | string>, Known {
  kind: SendingKind;
  resource_id: string;
  says?: 'sent' | 'completed';
}

interface SentHeldList {
  sent_held: SentHeld[];
}

type SentHeldResult = Written<SentHeldList>;

/** Posts what a bank sent otherwise than instructed. */
export function createSentHeld(deps: RecordDeps) {
  return {
    /** Posts to suspense, once. */
    recordSentHeld: (input: SentHeldReport): Promise<SentHeldResult> =>
      changeHeld(deps, input, addSent),
    /** Posts out of suspense, once, since the bank has the money back. */
    recordSentBack: (input: SentHeldReport): Promise<SentHeldResult> =>
      changeHeld(deps, input, clearSent),
  };
}

/** @returns whether it has written */
type Change = (
  stores: Stores,
  resource: Sender & { _id: string },
  input: SentHeldReport,
  session: ClientSession,
) => Promise<boolean>;

async function changeHeld(
  { mongo, stores }: RecordDeps,
  input: SentHeldReport,
  change: Change,
): Promise<SentHeldResult> {
  const { kind, resource_id } = input;
  const store = pickStore(stores, kind);
  return await bookOnce<SenderDocument, SentHeldList>(
    (work) => inTransaction(mongo, work),
    store,
    { resource_id, known: input },
    async (resource, session) => {
      const isNew = await change(stores, resource, input, session);
      const { sent_held = [] } = (await store.get(resource_id, session)) ?? resource;
      return { answer: { sent_held }, isNew };
    },
  );
}

const addSent: Change = async (stores, resource, input, session) => {
  const { kind, resource_id, bank_reference } = input;
  const store = pickStore(stores, kind);
  if (!isUnbooked(resource, kind, input)) return false;
  const known = findReportedSent(resource.sent_held ?? [], input);
  if (known !== undefined) {
    if (!bank_reference) return false;
    return await store.nameSentHeld(resource_id, known, bank_reference, session);
  }
  const { amount = resource.amount, currency = resource.currency, at } = input;
  const named = { id: reportId(input), bank_reference: bank_reference || null };
  const held = { ...named, amount, currency, at };
  if (!(await store.recordSentHeld(resource_id, held, session))) return false;
  await stores.ledger.post(buildSentHeld(kind, resource, held, input), session);
  return true;
};

const clearSent: Change = async (stores, resource, input, session) => {
  const { kind, resource_id, at, callback_id: by } = input;
  const store = pickStore(stores, kind);
  const items = resource.sent_held ?? [];
  if (items.some(({ resolved }) => resolved?.by === by)) return false;
  const { amount, currency = resource.currency } = input;
  const held = items.find(
    (each) =>
      isOpenSent(each) &&
      each.currency === currency &&
      (amount === undefined || BigInt(amount) === computeRest(each)),
  );
  if (held === undefined) return false;
  const resolution = { as: 'returned', at, by } as const;
  if (!(await store.resolveSentHeld(resource_id, held, resolution, session))) return false;
  await stores.ledger.post(
    buildSentResolved(kind, resource, held, { as: 'returned', at }),
    session,
  );
  return true;
};

type SendingStore = Pick<
  Stores['payouts'],
  | 'recordSentHeld'
  | 'nameSentHeld'
  | 'replaceSentHeld'
  | 'resolveSentHeld'
  | 'markAttention'
  | 'countWrite'
> & { get(id: string, session?: ClientSession): Promise<SenderDocument | null> };

type Sender = Owned & {
  status: string;
  amount: number | string;
  applied_callbacks?: string[];
  sent_held?: SentHeld[];
};

type SenderDocument = Sender & ResourceDocument;

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

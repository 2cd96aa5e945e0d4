import type { CallbackResource } from '../../domain/banks/callback';
import type { Outcome } from '../../domain/banks/movement';
import type { Deposit } from '../../domain/crypto/deposit';
import {
  countTimes,
  findDepositMovement,
  isFromSuspense,
  isReorged,
} from '../../domain/crypto/deposit-money';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { amountInJson } from '../../domain/money/money';
import { describeRemedy, findRemedy } from '../../domain/operators/remedies';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { toBigInt } from '../../ledger/ledger-accounts';
import { LIFECYCLES, type Resource, type ResourceStores } from '../../lifecycles';
import type { Stores } from '../../store';
import type { CallbackDocument } from '../../store/callbacks';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import type { DisputeDocument } from '../../store/disputes';
import type { MovementDocument } from '../../store/movements';
import type { PaymentDocument } from '../../store/payments';
import type { PayoutDocument } from '../../store/payouts';
import type { RecipientDocument } from '../../store/recipients';
import type { RefundDocument } from '../../store/refunds';
import { presentMovement } from '../banks/movements';
import { presentOldest, withDeliveries } from '../events/list';
import { readReported } from '../money/resources/read';

const ROWS_MAX = 100;

/** Others, such as customers and URLs with tokens, are never shown. */
const SHARED_FIELDS = [
  ...['account_id', 'livemode', 'status', 'version', 'amount', 'currency'],
  ...['method', 'connector', 'bank_reference', 'attention', 'failure', 'request_id'],
  ...['created_at', 'updated_at'],
];

/** Shown only when set. */
const RARE = [
  'settled_amount',
  'returned_amount',
  'disputed_at',
  'refunded_over',
  'late_amount',
] satisfies (keyof PaymentDocument | keyof PayoutDocument | keyof RefundDocument)[];

/** @throws ServiceError `payment_not_found`, `refund_not_found`, … */
export async function findResource(stores: ResourceStores, kind: CallbackResource, id: string) {
  const resource = await LIFECYCLES[kind].get(stores, id);
  if (resource !== null) return resource;
  throw new ServiceError(`${kind}_not_found`, `There is no ${kind} ${id}.`);
}

export type ResourcePage = Awaited<ReturnType<typeof readPage>>;

/** @throws ServiceError `payment_not_found`, `refund_not_found`, … */
export async function readPage(stores: Stores, kind: CallbackResource, id: string) {
  const resource = await findResource(stores, kind, id);
  const { account_id, livemode } = resource;
  const [events, { entries, callbacks }, movements, related] = await Promise.all([
    stores.events.list({ account_id, livemode, resource_id: id, limit: ROWS_MAX }),
    readReported(stores, resource),
    stores.movements.forResource(id),
    findRelated(stores, resource),
  ]);
  return {
    resource: pickFields(kind, resource),
    ...related,
    ...('deposits' in resource
      ? { deposits: resource.deposits.map((each) => presentDeposit(each, movements)) }
      : {}),
    events: (await withDeliveries({ stores }, events.reverse())).map(({ event, deliveries }) => ({
      id: event._id,
      type: event.type,
      created: event.created,
      delivery: presentOldest(deliveries),
    })),
    // Steps of one transition have the same time.
    postings: entries
      .sort((a, b) =>
        a.at === b.at
          ? KIND_ORDER.indexOf(a.kind) - KIND_ORDER.indexOf(b.kind)
          : Date.parse(a.at) - Date.parse(b.at),
      )
      .map(({ _id, kind: own, at, book, lines, value_date = null, bank_reference = null }) => {
        const legs = lines.map(({ account, amount }) => {
          // It may have been read without 64-bit integers.
          return { account, amount: amountInJson(toBigInt(amount) ?? BigInt(String(amount))) };
        });
        return { id: _id, kind: own, at, value_date, bank_reference, book, legs };
      }),
    movements: movements.map(presentMovement),
    callbacks: callbacks.map(presentCallback),
    audit: resource.audit.map(({ who, when, what, why, before, after, ...act }) => {
      const { approved_by, approval_id, bank_confirmed_not_executed } = act;
      const names = { approved_by, approval_id, bank_confirmed_not_executed };
      return omitUndefined({ who, when, what, why, before, after, ...names });
    }),
  };
}

function pickFields(kind: CallbackResource, resource: Resource): Record<string, unknown> {
  const all = new Map<string, unknown>(Object.entries(resource));
  const names = [...SHARED_FIELDS, ...LIFECYCLES[kind].fields];
  const common = names.map((field) => [field, all.get(field) ?? null]);
  const rare = RARE.filter((field) => all.get(field)).map((field) => [field, all.get(field)]);
  const workflow_id = LIFECYCLES[kind].workflowId(resource._id);
  const remedy = findRemedy(kind, resource.attention ?? '');
  return {
    ...{ id: resource._id, workflow_id, ...Object.fromEntries([...common, ...rare]) },
    ...(remedy === undefined ? {} : { remedy: describeRemedy(remedy) }),
  };
}

interface Related {
  /** Facts that do not identify a person. */
  recipient?: Pick<RecipientDocument, 'type' | 'scheme' | 'last4' | 'deleted_at'> | null;
  refunds?: ReturnType<typeof presentRefund>[];
  disputes?: ShownDispute[];
}

async function findRelated(stores: Stores, resource: Resource): Promise<Related> {
  const { refunds, recipients, disputes } = stores;
  if ('recipient_id' in resource) {
    const recipient = await recipients.get(resource.recipient_id);
    if (recipient === null) return { recipient: null };
    const { type, scheme, last4, deleted_at } = recipient;
    return { recipient: { type, scheme, last4, ...(deleted_at ? { deleted_at } : {}) } };
  }
  if ('deposits' in resource) return {};
  if ('payment_id' in resource || 'wallet_address' in resource) return {};
  const { _id: payment_id, account_id, livemode } = resource;
  const rows = await refunds.list({ account_id, livemode, payment_id, limit: ROWS_MAX });
  const disputed = await disputes.forPayment(payment_id);
  return { refunds: rows.map(presentRefund), disputes: disputed.map(presentDispute) };
}

type ShownDispute = ReturnType<typeof presentDispute>;

function presentDispute({
  _id,
  name,
  kind,
  status,
  amount,
  fee,
  transfers,
  ...row
}: DisputeDocument) {
  const owed = transfers.reduce((sum, transfer) => sum + transfer.owed, 0);
  const { currency, created_at, attention } = row;
  return { id: _id, name, kind, status, amount, currency, fee, owed, created_at, attention };
}

export type ShownDeposit = ReturnType<typeof presentDeposit>;

/** Lists the deposits of a payment with what the register says of them. */
export async function listDeposits(
  { movements }: Pick<Stores, 'movements'>,
  { _id, deposits }: Pick<CryptoPaymentDocument, '_id' | 'deposits'>,
): Promise<ShownDeposit[]> {
  const rows = await movements.forResource(_id);
  return deposits.map((deposit) => presentDeposit(deposit, rows));
}

/** @param movements rows of the register that its payment has */
export function presentDeposit(
  { key, ...deposit }: Deposit,
  movements: readonly MovementDocument[],
) {
  const row = findDepositMovement(movements, { key });
  const times = countTimes(key);
  const { as, by, address } = row?.resolutions.at(-1) ?? {};
  const back = movements.find(({ _id }) => _id === by);
  const transaction_id = back?.bank_reference ?? undefined;
  const word = as && LEFT[as];
  const left = word && { as: word, ...omitUndefined({ transaction_id, address }) };
  const isReturned = row?.is_debited ?? row?.resolutions.some(({ as }) => as === 'merchant');
  return {
    ...deposit,
    undone: isReorged(row),
    ...omitUndefined({
      times: times === 1 ? undefined : times,
      held: row && isFromSuspense(row) ? true : undefined,
      returned: isReturned || undefined,
      withdrawn: row?.is_debited,
      left,
    }),
  };
}

/** Says how a deposit has left suspense; none that the merchant has. */
const LEFT: Partial<Record<Outcome, string>> = {
  customer: 'returned',
  loss: 'written_off',
  never_happened: 'undone',
};

function presentRefund({ _id, status, amount, created_at, attention }: RefundDocument) {
  return { id: _id, status, amount, created_at, attention };
}

const KIND_ORDER: readonly string[] = Object.keys(ENTRY_LINES);

function presentCallback(callback: CallbackDocument) {
  const { connector, name, body, received_at, signalled_at, unapplied, parked } = callback;
  const { callback_id, occurred_at, bank_reference = null, code = null, reason = null } = body;
  const money = { currency: undefined, value_date: undefined, ...body };
  const { amount = null, currency = null, value_date = null } = money;
  return {
    ...{ callback_id, connector, name, occurred_at, received_at, signalled_at },
    ...{ bank_reference, amount, currency, value_date, code, reason, unapplied, parked },
  };
}

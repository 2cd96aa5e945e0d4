import { assertNever } from '../domain/assert';
import { computeRest, type Movement, type Resolution } from '../domain/banks/movement';
import { parseBookCurrency } from '../domain/crypto/assets';
import { computeBorneFee, type DisputeTransfer } from '../domain/dispute/report';
import { MAIN_BALANCE } from '../domain/money/money';
import type { PayoutStatus } from '../domain/payout/payout';
import { type EntryKind, type EntryLine, type NewEntry, operationId } from './entries';
import { ENTRY_LINES } from './entry-lines';

export interface Owned {
  _id: string;
  account_id: string;
  livemode: boolean;
  /** ISO 4217, or an asset and its network. */
  currency: string;
  connector: string;
  bank_reference?: string | null | undefined;
}

/** Amounts in minor units. */
type PaymentFacts = Owned & {
  amount: number;
  settled_amount?: number | null;
  /** `YYYY-MM-DD` from which the merchant can use it; absent: at once. */
  available_on?: string;
};

type RefundFacts = Owned & { amount: number; settled_amount?: number | null };

type PayoutFacts = Owned & {
  amount: number;
  fee: number;
  balance_account: string;
  created_at: string;
  returned_amount?: number | null;
};

export interface BookingTime {
  /** ISO 8601, ms. */
  at: string;
  value_date?: string | undefined;
}

/** The bank names each movement of its own. */
type BankReport = BookingTime & { bank_reference?: string | undefined };

/** Minor units; an operator may have booked a different amount. */
export function settledAmount(of: Pick<PaymentFacts, 'amount' | 'settled_amount'>): number {
  return of.settled_amount ?? of.amount;
}

export function returnedAmount(of: Pick<PayoutFacts, 'amount' | 'returned_amount'>): number {
  return of.returned_amount ?? of.amount;
}

export function buildEntry(
  kind: EntryKind,
  { _id: resource_id, account_id, livemode, currency, bank_reference }: Omit<Owned, 'connector'>,
  lines: EntryLine[],
  { at, value_date }: BookingTime,
): NewEntry {
  const owner = { account_id, livemode, currency };
  return { kind, resource_id, ...owner, at, value_date, bank_reference, lines };
}

/**
 * @param held minor units of the settled amount that were in suspense
 * @param fee minor units of the acquirer's fee that the merchant bears
 */
export function buildSettlement(
  payment: PaymentFacts,
  { held, fee }: { held: number; fee: number },
  time: BookingTime,
): NewEntry {
  const { connector, available_on } = payment;
  const amount = settledAmount(payment);
  const lines = ENTRY_LINES.payment_settled(connector, amount, held, fee, available_on);
  return { ...buildEntry('payment_settled', payment, lines, time), fee };
}

/** Builds the entry of what a dispute took, or gave back, with its fee. */
export function buildDisputeTransfer(
  payment: PaymentFacts,
  kind: 'dispute_opened' | 'clawed_back',
  transfer: Omit<DisputeTransfer, 'at' | 'by'>,
  report: BankReport,
): NewEntry {
  const { step, held, owed, amount } = transfer;
  const fee = computeBorneFee(transfer);
  // Another movement has another name at the bank.
  const owner = { ...payment, bank_reference: report.bank_reference };
  if (transfer.direction === 'in') {
    const lines = ENTRY_LINES.payment_dispute_won(payment.connector, amount, fee);
    return { ...buildEntry('payment_dispute_won', owner, lines, report), step };
  }
  const lines =
    kind === 'clawed_back'
      ? ENTRY_LINES.payment_clawed_back(payment.connector, held, owed)
      : ENTRY_LINES.payment_dispute_opened(payment.connector, held, owed, fee);
  const entry = buildEntry(`payment_${kind}`, owner, lines, report);
  return { ...entry, step, fee: Math.min(fee, held) };
}

/** @param held minor units of what the bank sent that are in suspense */
export function buildRefundEntry(
  kind: 'refund_accepted' | 'refund_settled' | 'refund_failed',
  refund: RefundFacts,
  time: BookingTime,
  held = 0,
): NewEntry {
  const { connector, amount } = refund;
  const lines =
    kind === 'refund_settled'
      ? ENTRY_LINES.refund_settled(connector, amount, settledAmount(refund), held)
      : ENTRY_LINES[kind](amount);
  return buildEntry(kind, refund, lines, time);
}

interface PayoutTransition extends BookingTime {
  from: { status: PayoutStatus };
  to: readonly PayoutStatus[];
}

/** @param owed_max minor units of debt above which it is refused */
export function buildReservation(payout: PayoutFacts, owed_max?: number): NewEntry {
  const { balance_account, amount, fee, created_at } = payout;
  const lines = ENTRY_LINES.payout_reserved(balance_account, amount, fee);
  return { ...buildEntry('payout_reserved', payout, lines, { at: created_at }), fee, owed_max };
}

/** Minor units that a transition takes out of suspense. */
export interface FromSuspense {
  in: number;
  out: number;
}

/** @param payout after the transition */
export function buildPayoutEntries(
  payout: PayoutFacts,
  transition: PayoutTransition,
  taken: FromSuspense = { in: 0, out: 0 },
): NewEntry[] {
  const { balance_account: balance, amount, fee, connector } = payout;
  const build = (kind: EntryKind, lines: EntryLine[]) => [
    buildEntry(kind, payout, lines, transition),
  ];
  return transition.to.flatMap((status): NewEntry[] => {
    switch (status) {
      case 'sent':
        return build(
          'payout_captured',
          ENTRY_LINES.payout_captured(balance, connector, amount, fee, taken.out),
        );
      case 'failed':
        return transition.from.status === 'sent'
          ? build(
              'payout_reversed',
              ENTRY_LINES.payout_reversed(balance, connector, amount, fee, taken.in),
            )
          : build('payout_released', ENTRY_LINES.payout_released(balance, amount, fee));
      case 'returned': {
        const lines = ENTRY_LINES.payout_returned(
          balance,
          connector,
          returnedAmount(payout),
          taken.in,
        );
        return build('payout_returned', lines);
      }
      case 'created':
      case 'submitted':
      case 'completed':
        return [];
      default:
        return assertNever(status);
    }
  });
}

/** Kinds whose movements are in the register. */
export type MovingKind = 'payment' | 'refund' | 'payout' | 'crypto_settlement';

type Owner = Omit<Owned, 'bank_reference'> & { balance_account?: string };

/** Entry with its id, by which a movement names it. */
interface NamedEntry {
  id: string;
  entry: NewEntry;
}

/** Builds the entry that holds a movement, in the book of the currency that moved. */
export function buildMovementHeld(
  kind: MovingKind,
  resource: Owner,
  movement: Omit<Movement, 'names' | 'reported_at' | 'sources' | 'reason'>,
  at: string,
): NamedEntry {
  const { id: step, direction, currency, bank_reference, value_date } = movement;
  const amount = toLineAmount(movement.amount, currency);
  const lines = ENTRY_LINES[`${kind}_held`](resource.connector, direction, amount);
  const owner = { ...resource, currency, bank_reference };
  const time = { at, value_date: value_date ?? undefined };
  const entry = { ...buildEntry(`${kind}_held`, owner, lines, time), step };
  return { id: operationId(entry), entry };
}

/** Builds the entry of the part that leaves suspense; each resolution has one. */
export function buildMovementResolved(
  kind: MovingKind,
  resource: Owner,
  movement: Omit<Movement, 'names' | 'reported_at' | 'sources' | 'reason'>,
  { as, amount, owed = 0, fee = 0 }: Pick<Resolution, 'as' | 'amount' | 'owed' | 'fee'>,
  { bank_reference, ...time }: BankReport,
): NamedEntry {
  const { id, direction, currency, resolutions, available_on: day } = movement;
  const { connector, balance_account: balance = MAIN_BALANCE } = resource;
  const bearer = { as, connector, balance, owed, fee, day };
  const units = toLineAmount(amount, currency);
  const lines = ENTRY_LINES[`${kind}_resolved`](direction, units, bearer);
  const owner = { ...resource, currency, bank_reference };
  const step = resolutions.length === 0 ? id : `${id}#${resolutions.length + 1}`;
  // What never moved is on no statement.
  const isWhole = BigInt(movement.amount) === BigInt(amount) && computeRest(movement) > 0n;
  const held = { kind: `${kind}_held`, resource_id: resource._id, step: id };
  const offsets = as === 'never_happened' && isWhole ? operationId(held) : undefined;
  const entry = { ...buildEntry(`${kind}_resolved`, owner, lines, time), step, offsets, fee };
  return { id: operationId(entry), entry };
}

export function toLineAmount(units: number | string | bigint, currency: string): number | bigint {
  return parseBookCurrency(currency) === undefined ? Number(units) : BigInt(units);
}

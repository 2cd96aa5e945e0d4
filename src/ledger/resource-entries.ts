import { assertNever } from '../domain/assert';
import { bookCurrency, parseUnits } from '../domain/crypto/assets';
import type { Deposit } from '../domain/crypto/deposit';
import type { PayoutStatus } from '../domain/payout/payout';
import type { EntryKind, EntryLine, NewEntry, ResourceEntryKind } from './entries';
import { ENTRY_LINES } from './entry-lines';

interface Owned {
  _id: string;
  account_id: string;
  livemode: boolean;
  /** ISO 4217, or an asset and its network. */
  currency: string;
  connector: string;
}

/** Facts that the entries of a resource need; amounts in minor units. */
type PaymentFacts = Owned & { amount: number; settled_amount?: number | null };
type RefundFacts = Owned & { amount: number; settled_amount?: number | null };
type PayoutFacts = Owned & {
  amount: number;
  fee: number;
  balance_account: string;
  created_at: string;
  returned_amount?: number | null;
};
type CryptoPaymentFacts = Omit<Owned, 'currency'> & { asset: string; network: string };
/** In the smallest unit of the asset. */
type CryptoSettlementFacts = Owned & { amount: string; fee: string };

interface BookingTime {
  /** ISO 8601, ms. */
  at: string;
  /** Day on which the bank books it. */
  value_date?: string | undefined;
}

/** Minor units that settled; an operator may have booked a different amount. */
export function settledAmount({
  amount,
  settled_amount,
}: Pick<PaymentFacts, 'amount' | 'settled_amount'>): number {
  return settled_amount ?? amount;
}

export function buildPaymentEntry(
  kind: 'payment_settled' | 'payment_late_received' | 'payment_late_reversed',
  payment: PaymentFacts,
  amount: number,
  { at, value_date }: BookingTime,
): NewEntry {
  const lines = ENTRY_LINES[kind](payment.connector, amount);
  return { kind, ...getOwner(payment), at, value_date, legs: lines };
}

/** @param held part that `main` holds; the merchant owes the rest */
export function buildChargeback(
  payment: PaymentFacts,
  { held, owed }: { held: number; owed: number },
  { at, value_date }: BookingTime,
): NewEntry {
  const lines = ENTRY_LINES.payment_clawed_back(payment.connector, held, owed);
  return { kind: 'payment_clawed_back', ...getOwner(payment), at, value_date, legs: lines };
}

function getOwner({
  _id: resource_id,
  account_id,
  livemode,
  currency,
}: Pick<PaymentFacts, '_id' | 'account_id' | 'livemode' | 'currency'>) {
  return { resource_id, account_id, livemode, currency };
}

export function buildRefundEntry(
  kind: 'refund_accepted' | 'refund_settled' | 'refund_failed',
  refund: RefundFacts,
  { at, value_date }: BookingTime,
): NewEntry {
  const { connector, amount } = refund;
  const lines =
    kind === 'refund_settled'
      ? ENTRY_LINES.refund_settled(connector, amount, settledAmount(refund))
      : ENTRY_LINES[kind](amount);
  return { kind, ...getOwner(refund), at, value_date, legs: lines };
}

/** Minor units of a payout that came back. */
export function returnedAmount({
  amount,
  returned_amount,
}: Pick<PayoutFacts, 'amount' | 'returned_amount'>): number {
  return returned_amount ?? amount;
}

interface PayoutTransition {
  from: { status: PayoutStatus };
  to: readonly PayoutStatus[];
  /** ISO 8601, ms. */
  at: string;
  value_date?: string | undefined;
}

export function buildReservation(payout: PayoutFacts): NewEntry {
  const { balance_account, amount, fee, created_at } = payout;
  const lines = ENTRY_LINES.payout_reserved(balance_account, amount, fee);
  return buildPayoutEntry('payout_reserved', payout, lines, { at: created_at });
}

/** @param payout after the transition */
export function buildPayoutEntries(payout: PayoutFacts, transition: PayoutTransition): NewEntry[] {
  const { from, to } = transition;
  const { balance_account, amount, fee, connector } = payout;
  return to.flatMap((status): NewEntry[] => {
    switch (status) {
      case 'sent': {
        const lines = ENTRY_LINES.payout_captured(balance_account, connector, amount, fee);
        return [buildPayoutEntry('payout_captured', payout, lines, transition)];
      }
      case 'failed': {
        if (from.status !== 'sent') {
          const lines = ENTRY_LINES.payout_released(balance_account, amount, fee);
          return [buildPayoutEntry('payout_released', payout, lines, transition)];
        }
        const lines = ENTRY_LINES.payout_reversed(balance_account, connector, amount, fee);
        return [buildPayoutEntry('payout_reversed', payout, lines, transition)];
      }
      case 'returned': {
        const lines = ENTRY_LINES.payout_returned(
          balance_account,
          connector,
          returnedAmount(payout),
        );
        return [buildPayoutEntry('payout_returned', payout, lines, transition)];
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

export function buildDepositEntry(
  kind: ResourceEntryKind<'crypto_payment'>,
  payment: CryptoPaymentFacts,
  { transaction_id: step, amount }: Pick<Deposit, 'transaction_id' | 'amount'>,
  at: string,
): NewEntry {
  const { _id: resource_id, account_id, livemode, connector } = payment;
  const lines = ENTRY_LINES[kind](connector, parseUnits(amount));
  return {
    kind,
    resource_id,
    step,
    account_id,
    livemode,
    currency: bookCurrency(payment),
    at,
    legs: lines,
  };
}

export function settlementDraw({
  amount,
  fee,
}: Pick<CryptoSettlementFacts, 'amount' | 'fee'>): bigint {
  return parseUnits(amount) + parseUnits(fee);
}

export function buildSettlementEntry(
  kind: ResourceEntryKind<'crypto_settlement'>,
  settlement: CryptoSettlementFacts,
  at: string,
): NewEntry {
  const draw = settlementDraw(settlement);
  const lines =
    kind === 'crypto_settlement_captured'
      ? ENTRY_LINES[kind](settlement.connector, draw)
      : ENTRY_LINES[kind](draw);
  return { kind, ...getOwner(settlement), at, legs: lines };
}

function buildPayoutEntry(
  kind: EntryKind,
  payout: PayoutFacts,
  lines: EntryLine[],
  { at, value_date }: BookingTime,
): NewEntry {
  return { kind, ...getOwner(payout), at, value_date, legs: lines };
}

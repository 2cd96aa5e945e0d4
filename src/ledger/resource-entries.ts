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

/** Facts of each resource that its entries are made of; amounts in minor units. */
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
/** Amounts are integers in the asset's smallest unit. */
type CryptoSettlementFacts = Owned & { amount: string; fee: string };

/** When a step takes place. */
interface BookingTime {
  /** ISO 8601, ms. */
  at: string;
  /** Day on which the bank books it, where it says so. */
  value_date?: string | undefined;
}

/** Minor units that moved when a payment or refund settled, where that is not what was asked. */
export function settledAmount({
  amount,
  settled_amount,
}: Pick<PaymentFacts, 'amount' | 'settled_amount'>): number {
  return settled_amount ?? amount;
}

/** Posting of a payment: its settlement, or what goes wrong with its money; each at most once. */
export function buildPaymentEntry(
  kind: 'payment_settled' | 'payment_late_received' | 'payment_late_reversed',
  payment: PaymentFacts,
  amount: number,
  { at, value_date }: BookingTime,
): NewEntry {
  const lines = ENTRY_LINES[kind](payment.connector, amount);
  return { kind, ...getOwner(payment), at, value_date, legs: lines };
}

/** Posting of a claw-back. @param held what `main` holds of it; the merchant owes the rest */
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

/** Posting of a refund's step; at most one of each kind. */
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

/** Moves of a payout, as far as its postings depend on them. */
interface PayoutTransition {
  from: { status: PayoutStatus };
  to: readonly PayoutStatus[];
  /** ISO 8601, ms. */
  at: string;
  value_date?: string | undefined;
}

/** Posting that reserves amount and fee when the payout is accepted. */
export function buildReservation(payout: PayoutFacts): NewEntry {
  const { balance_account, amount, fee, created_at } = payout;
  const lines = ENTRY_LINES.payout_reserved(balance_account, amount, fee);
  return buildPayoutEntry('payout_reserved', payout, lines, { at: created_at });
}

/** Postings of a payout's move. @param payout after the move */
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

/** Posting of a deposit that counts, or goes back: one for each of a crypto payment's transactions. */
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

/** Units that a settlement draws. */
export function settlementDraw({
  amount,
  fee,
}: Pick<CryptoSettlementFacts, 'amount' | 'fee'>): bigint {
  return parseUnits(amount) + parseUnits(fee);
}

/** Posting of a settlement's step; at most one of each kind. */
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

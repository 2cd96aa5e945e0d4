import { assertNever } from '../domain/assert';
import { bookCurrency, parseUnits } from '../domain/crypto/assets';
import type { Deposit } from '../domain/crypto/deposit';
import type { Receipt } from '../domain/payment/receipt';
import type { PayoutStatus } from '../domain/payout/payout';
import type { SentAgain } from '../domain/sent-again';
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
type CryptoSettlementFacts = Owned & { amount: string; fee: string };

interface BookingTime {
  /** ISO 8601, ms. */
  at: string;
  value_date?: string | undefined;
}

/** Minor units that settled; an operator may have booked a different amount. */
export function settledAmount(of: Pick<PaymentFacts, 'amount' | 'settled_amount'>): number {
  return of.settled_amount ?? of.amount;
}

export function returnedAmount(of: Pick<PayoutFacts, 'amount' | 'returned_amount'>): number {
  return of.returned_amount ?? of.amount;
}

export function settlementDraw(of: Pick<CryptoSettlementFacts, 'amount' | 'fee'>): bigint {
  return parseUnits(of.amount) + parseUnits(of.fee);
}

function buildEntry(
  kind: EntryKind,
  { _id: resource_id, account_id, livemode, currency }: Omit<Owned, 'connector'>,
  legs: EntryLine[],
  { at, value_date }: BookingTime,
): NewEntry {
  return { kind, resource_id, account_id, livemode, currency, at, value_date, legs };
}

/** @param held minor units of the settled amount that were in suspense */
export function buildSettlement(payment: PaymentFacts, held: number, time: BookingTime): NewEntry {
  const lines = ENTRY_LINES.payment_settled(payment.connector, settledAmount(payment), held);
  return buildEntry('payment_settled', payment, lines, time);
}

/** Kinds of the two entries of a receipt: into suspense, and back. */
export function receiptKinds({ reason }: Pick<Receipt, 'reason'>) {
  return reason === 'late'
    ? ({ held: 'payment_late_received', returned: 'payment_late_reversed' } as const)
    : ({ held: 'payment_receipt_held', returned: 'payment_receipt_returned' } as const);
}

/** Builds an entry in the book of the currency that came. */
export function buildReceiptEntry(
  step: 'held' | 'returned',
  payment: PaymentFacts,
  receipt: Receipt,
  time: BookingTime,
): NewEntry {
  const kind = receiptKinds(receipt)[step];
  const lines = ENTRY_LINES[kind](payment.connector, receipt.amount);
  const owner = { ...payment, currency: receipt.currency };
  return { ...buildEntry(kind, owner, lines, time), step: receipt.id };
}

/** @param held part that `main` holds; the merchant owes the rest */
export function buildChargeback(
  payment: PaymentFacts,
  { held, owed }: { held: number; owed: number },
  time: BookingTime,
): NewEntry {
  const lines = ENTRY_LINES.payment_clawed_back(payment.connector, held, owed);
  return buildEntry('payment_clawed_back', payment, lines, time);
}

export function buildRefundEntry(
  kind: 'refund_accepted' | 'refund_settled' | 'refund_failed',
  refund: RefundFacts,
  time: BookingTime,
): NewEntry {
  const { connector, amount } = refund;
  const lines =
    kind === 'refund_settled'
      ? ENTRY_LINES.refund_settled(connector, amount, settledAmount(refund))
      : ENTRY_LINES[kind](amount);
  return buildEntry(kind, refund, lines, time);
}

/** @param held part that `main` holds; the merchant owes the rest */
export function buildLateRefund(
  refund: RefundFacts,
  { held, owed }: { held: number; owed: number },
  time: BookingTime,
): NewEntry {
  const lines = ENTRY_LINES.refund_sent_late(refund.connector, held, owed);
  return buildEntry('refund_sent_late', refund, lines, time);
}

/** Builds the entry of money that the bank sent once more, in the book of its currency. */
export function buildSentAgain(
  kind: 'refund_sent_again' | 'payout_sent_again',
  resource: Owned,
  { id, amount, currency }: Pick<SentAgain, 'id' | 'amount' | 'currency'>,
  time: BookingTime,
): NewEntry {
  const lines = ENTRY_LINES[kind](resource.connector, amount);
  return { ...buildEntry(kind, { ...resource, currency }, lines, time), step: id };
}

interface PayoutTransition extends BookingTime {
  from: { status: PayoutStatus };
  to: readonly PayoutStatus[];
}

export function buildReservation(payout: PayoutFacts): NewEntry {
  const { balance_account, amount, fee, created_at } = payout;
  const lines = ENTRY_LINES.payout_reserved(balance_account, amount, fee);
  return { ...buildEntry('payout_reserved', payout, lines, { at: created_at }), fee };
}

/** @param payout after the transition */
export function buildPayoutEntries(payout: PayoutFacts, transition: PayoutTransition): NewEntry[] {
  const { balance_account: balance, amount, fee, connector } = payout;
  const build = (kind: EntryKind, lines: EntryLine[]) => [
    buildEntry(kind, payout, lines, transition),
  ];
  return transition.to.flatMap((status): NewEntry[] => {
    switch (status) {
      case 'sent':
        return build(
          'payout_captured',
          ENTRY_LINES.payout_captured(balance, connector, amount, fee),
        );
      case 'failed':
        return transition.from.status === 'sent'
          ? build('payout_reversed', ENTRY_LINES.payout_reversed(balance, connector, amount, fee))
          : build('payout_released', ENTRY_LINES.payout_released(balance, amount, fee));
      case 'returned': {
        const lines = ENTRY_LINES.payout_returned(balance, connector, returnedAmount(payout));
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

export function buildDepositEntry(
  kind: ResourceEntryKind<'crypto_payment'>,
  payment: CryptoPaymentFacts,
  { transaction_id: step, amount }: Pick<Deposit, 'transaction_id' | 'amount'>,
  at: string,
): NewEntry {
  const lines = ENTRY_LINES[kind](payment.connector, parseUnits(amount));
  const owner = { ...payment, currency: bookCurrency(payment) };
  return { ...buildEntry(kind, owner, lines, { at }), step };
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
  const entry = buildEntry(kind, settlement, lines, { at });
  return kind === 'crypto_settlement_reserved'
    ? { ...entry, fee: parseUnits(settlement.fee) }
    : entry;
}

/**
 * Money that the bank took from a settled payment, by its report or an operator's. The journal has
 * an entry for each step that moves money.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export interface Dispute {
  /** Name at the bank, or id of the report or act that opened it. */
  id: string;
  /** Reported by the bank, or posted by an operator. */
  kind: 'dispute_opened' | 'clawed_back';
  /** Absent for the first chargeback by an operator. */
  step?: string;
  /** Minor units. */
  amount: number;
  currency: string;
  /** Minor units, in addition to the amount. */
  fee: number;
  /** Parts of both that the balance held, and that the merchant owes. */
  held: number;
  owed: number;
  state: 'opened' | 'won' | 'lost';
  opened_at: string;
  /** Callback or act. */
  opened_by: string;
  closed_at?: string;
  closed_by?: string;
  /** Minor units that came back. */
  won?: number;
  fee_returned?: number;
  /** The money came back by the reversal of its entry. */
  is_reversed?: true;
}

/** State after each report of a bank. */
export const DISPUTE_STATES = {
  dispute_opened: 'opened',
  dispute_won: 'won',
  dispute_lost: 'lost',
} as const satisfies Record<string, Dispute['state']>;

export type DisputeCallbackName = keyof typeof DISPUTE_STATES;

/** Amounts in minor units. */
export interface DisputedPayment {
  amount: number;
  settled_amount?: number | null;
  refunded: number;
  refunded_over?: number;
  currency: string;
  disputes?: readonly Dispute[];
}

/** Minor units that disputes took, without what came back. */
export function sumDisputed(disputes: readonly Dispute[] = []): number {
  return disputes.reduce((sum, { amount, won = 0 }) => sum + amount - won, 0);
}

export function isDisputeOpen({ disputes = [] }: { disputes?: readonly Dispute[] }): boolean {
  return disputes.some(({ state }) => state === 'opened');
}

/** Minor units. */
export function undisputedAmount({ amount, settled_amount, disputes }: DisputedPayment): number {
  return (settled_amount ?? amount) - sumDisputed(disputes);
}

export interface DisputeReport {
  name: DisputeCallbackName;
  callback_id: string;
  dispute_id?: string;
  /** Minor units; absent: all that settled, or all of the dispute. */
  amount?: number;
  currency?: string;
  /** Minor units, charged or returned. */
  fee?: number;
}

export type DisputeDecision =
  | { kind: 'open'; id: string; amount: number; fee: number }
  | { kind: 'close'; dispute: Dispute; won: number; fee_returned: number }
  /** @param isOwn whether this report was posted itself */
  | { kind: 'repeated'; isOwn: boolean }
  /** @param why for operators */
  | { kind: 'refused'; why: string };

/** A report that does not fit changes nothing. */
export function decideDispute(payment: DisputedPayment, report: DisputeReport): DisputeDecision {
  const { currency = payment.currency } = report;
  if (currency !== payment.currency) {
    return refused(
      `the bank reports a dispute in ${currency}, and the payment is in another currency`,
    );
  }
  return report.name === 'dispute_opened'
    ? decideOpening(payment, report)
    : decideClosing(payment, report);
}

function refused(why: string): DisputeDecision {
  return { kind: 'refused', why };
}

function decideOpening(payment: DisputedPayment, report: DisputeReport): DisputeDecision {
  const { callback_id, fee = 0 } = report;
  const id = report.dispute_id ?? callback_id;
  const known = payment.disputes?.find(
    (dispute) => dispute.id === id || dispute.opened_by === callback_id,
  );
  if (known !== undefined) {
    const isSame = (report.amount ?? known.amount) === known.amount && fee === known.fee;
    return isSame
      ? { kind: 'repeated', isOwn: known.opened_by === callback_id }
      : refused(`the dispute ${id} is known, with another amount or fee`);
  }
  const { amount = payment.settled_amount ?? payment.amount } = report;
  const left = undisputedAmount(payment) - payment.refunded - (payment.refunded_over ?? 0);
  if (amount > left) {
    return refused(`the bank disputes ${amount}, and ${left} is left of the payment (minor units)`);
  }
  return { kind: 'open', id, amount, fee };
}

function decideClosing(payment: DisputedPayment, report: DisputeReport): DisputeDecision {
  const { name, callback_id, dispute_id } = report;
  const { disputes = [] } = payment;
  const [only, another] = disputes;
  const dispute =
    dispute_id === undefined
      ? (disputes.find(({ closed_by }) => closed_by === callback_id) ??
        (another ? undefined : only))
      : disputes.find(({ id }) => id === dispute_id);
  if (dispute === undefined) return refused('the payment has no such dispute');
  const state = DISPUTE_STATES[name];
  const { won, fee_returned, fault } = readClosing(dispute, report);
  if (fault !== undefined) return refused(fault);
  // A lost dispute may be won later, by arbitration: the bank gives the money back.
  const mayClose = dispute.state === 'opened' || (dispute.state === 'lost' && state === 'won');
  if (mayClose) return { kind: 'close', dispute, won, fee_returned };
  const isSame =
    dispute.state === state &&
    (dispute.won ?? 0) === won &&
    (dispute.fee_returned ?? 0) === fee_returned;
  return isSame
    ? { kind: 'repeated', isOwn: dispute.closed_by === callback_id }
    : refused(`the dispute ${dispute.id} is ${dispute.state} already`);
}

function readClosing(
  { id, ...dispute }: Dispute,
  { name, amount = dispute.amount, fee }: DisputeReport,
): { won: number; fee_returned: number; fault?: string } {
  if (name === 'dispute_won') {
    const fee_returned = fee ?? 0;
    const closing = { won: amount, fee_returned };
    if (amount <= dispute.amount && fee_returned <= dispute.fee) return closing;
    return { ...closing, fault: `more came back than the dispute ${id} took` };
  }
  const closing = { won: 0, fee_returned: 0 };
  if (amount === dispute.amount && (fee ?? dispute.fee) === dispute.fee) return closing;
  return { ...closing, fault: `the dispute ${id} has another amount or fee` };
}

import {
  type DisputeAnswer,
  type DisputeStatus,
  isDisputeClosed,
  type OpenDisputeStatus,
} from './dispute';

/** Money that a dispute moved, by a bank's report or an operator's act; each has an entry. */
export interface DisputeTransfer {
  /** Separates its entry from those of the other transfers; absent for a payment's first chargeback. */
  step?: string;
  /** `out`: taken. */
  direction: 'in' | 'out';
  /** Minor units, without the fee. */
  amount: number;
  /** Minor units, in addition to the amount. */
  fee: number;
  /** Side that bears the fee; absent: the merchant. */
  fee_bearer?: 'service';
  /** Minor units of the fee that the merchant bears, where each side bears a part. */
  fee_borne?: number;
  /** Parts that the balance held, and that the merchant owes, of what the merchant bears. */
  held: number;
  owed: number;
  at: string;
  /** Callback or act. */
  by: string;
  bank_reference?: string;
  /** The money came back by the reversal of its entry. */
  is_reversed?: true;
}

export const DISPUTE_CALLBACKS = [
  'dispute_opened',
  'dispute_updated',
  'dispute_withdrawn',
  'dispute_reinstated',
  'dispute_won',
  'dispute_lost',
] as const;
export type DisputeCallbackName = (typeof DISPUTE_CALLBACKS)[number];

/** Reports that may be the first about a dispute. */
export const OPENING_CALLBACKS: readonly string[] = ['dispute_opened', 'dispute_withdrawn'];

/** Amounts in minor units. */
export interface DisputedPayment {
  amount: number;
  settled_amount?: number | null;
  refunded: number;
  refunded_over?: number;
  currency: string;
  /** Sum that disputes took, without what came back. */
  disputed?: number;
}

export interface DisputeFacts {
  status: DisputeStatus;
  reason: string | null;
  evidence_due_at: string | null;
  transfers: readonly DisputeTransfer[];
  /** Time of the bank's last report of a status. */
  reported_at?: string;
  /** Answer that is being sent to the bank. */
  answering?: DisputeAnswer | null;
}

export interface DisputeReport {
  name: DisputeCallbackName;
  callback_id: string;
  occurred_at: string;
  /** Minor units; absent: all that settled, or all that the dispute took. */
  amount?: number;
  currency?: string;
  /** Minor units, charged or returned. */
  fee?: number;
  bank_reference?: string;
  /** The scheme's. */
  code?: string;
  dispute_status?: OpenDisputeStatus;
  evidence_due_at?: string;
}

export type DisputeDecision =
  | {
      kind: 'applied';
      to: DisputeStatus;
      transfer?: Pick<DisputeTransfer, 'direction' | 'amount' | 'fee'>;
      /** Known facts that change. */
      change: Partial<Pick<DisputeFacts, 'reason' | 'evidence_due_at' | 'reported_at'>>;
    }
  /** Names a posted transfer of the same money. @param by its report */
  | { kind: 'named'; by: string; bank_reference: string }
  /** @param isOwn whether this report was posted itself */
  | { kind: 'repeated'; isOwn: boolean }
  /** Comes too late to matter. @param why for operators */
  | { kind: 'late'; why: string }
  /**
   * @param why for operators
   * @param isEarly whether a withdrawal that is still to come may let it fit
   */
  | { kind: 'refused'; why: string; isEarly?: true };

export type ChargedFee = Pick<DisputeTransfer, 'fee' | 'fee_bearer' | 'fee_borne'>;

/** Minor units of the fee that the merchant bears. @see docs/ledger.md#fees-of-acquirers */
export function computeBorneFee({ fee, fee_bearer, fee_borne }: ChargedFee): number {
  return fee_borne ?? (fee_bearer === 'service' ? 0 : fee);
}

/**
 * Shares a fee that comes back between those who bore it: one that only the service bore is the
 * service's, and of any other the merchant has their part first.
 */
export function shareReturnedFee(transfers: readonly DisputeTransfer[], fee: number): ChargedFee {
  let [ofMerchant, ofService] = [0, 0];
  for (const transfer of transfers) {
    const sign = transfer.direction === 'out' ? 1 : -1;
    const borne = computeBorneFee(transfer);
    ofMerchant += sign * borne;
    ofService += sign * (transfer.fee - borne);
  }
  const same = transfers.filter((each) => each.direction === 'out' && each.fee === fee);
  const isOfService = same.length > 0 && same.every((each) => each.fee_bearer === 'service');
  // A reversed entry may have given the merchant more than their part.
  const left = Math.max(0, Math.min(fee, ofMerchant));
  const fee_borne = isOfService && fee <= ofService ? 0 : left;
  if (fee_borne === fee) return { fee };
  return fee_borne === 0 ? { fee, fee_bearer: 'service' } : { fee, fee_borne };
}

/** Minor units that a dispute took, without what came back. */
export function sumTaken(transfers: readonly DisputeTransfer[]): { amount: number; fee: number } {
  const sum = { amount: 0, fee: 0 };
  for (const { direction, amount, fee } of transfers) {
    const sign = direction === 'out' ? 1 : -1;
    sum.amount += sign * amount;
    sum.fee += sign * fee;
  }
  return sum;
}

/** Minor units. */
export function undisputedAmount({ amount, settled_amount, disputed = 0 }: DisputedPayment) {
  return (settled_amount ?? amount) - disputed;
}

/**
 * Decides what a bank's report means. What does not fit changes nothing.
 * @param dispute as it is; null: the bank reports it for the first time
 */
export function decideReport(
  payment: DisputedPayment,
  dispute: DisputeFacts | null,
  report: DisputeReport,
): DisputeDecision {
  const { currency = payment.currency, callback_id } = report;
  // An update moves no money.
  if (currency !== payment.currency && report.name !== 'dispute_updated') {
    return refused(
      `the bank reports a dispute in ${currency}, and the payment is in another currency`,
    );
  }
  if (dispute?.transfers.some(({ by }) => by === callback_id))
    return { kind: 'repeated', isOwn: true };
  switch (report.name) {
    case 'dispute_opened':
      return decideOpening(payment, dispute, report);
    case 'dispute_withdrawn':
      return decideMovement('out', payment, dispute, report);
    case 'dispute_reinstated':
      return decideMovement('in', payment, dispute, report);
    case 'dispute_updated':
      return dispute === null ? refused(UNKNOWN) : decideUpdate(dispute, report);
    default:
      return dispute === null ? refused(UNKNOWN) : decideClosing(dispute, report);
  }
}

const UNKNOWN = 'the payment has no such dispute';

function refused(why: string): DisputeDecision {
  return { kind: 'refused', why };
}

const REPEATED = { kind: 'repeated', isOwn: false } as const;

function decideOpening(
  payment: DisputedPayment,
  dispute: DisputeFacts | null,
  report: DisputeReport,
): DisputeDecision {
  const { fee = 0, dispute_status } = report;
  const first = dispute?.transfers.find(({ direction }) => direction === 'out');
  const amount = report.amount ?? first?.amount ?? payment.settled_amount ?? payment.amount;
  const facts = readFacts(dispute, report);
  const status = dispute?.status ?? dispute_status ?? 'needs_response';
  if (first !== undefined && amount + fee > 0) {
    const isSame = amount === first.amount && fee === first.fee;
    if (!isSame) return refused('the dispute is known, with another amount or fee');
    return isChanged(facts) ? { kind: 'applied', to: status, change: facts } : REPEATED;
  }
  if (amount + fee > 0) return takeMoney(payment, dispute, report, { amount, fee });
  if (dispute !== null && !isChanged(facts)) return REPEATED;
  return { kind: 'applied', to: status, change: facts };
}

/** Takes money that is left of the payment. */
function takeMoney(
  payment: DisputedPayment,
  dispute: DisputeFacts | null,
  report: DisputeReport,
  { amount, fee }: { amount: number; fee: number },
): DisputeDecision {
  const left = undisputedAmount(payment) - payment.refunded - (payment.refunded_over ?? 0);
  if (amount > left) {
    return refused(`the bank disputes ${amount}, and ${left} is left of the payment (minor units)`);
  }
  return {
    kind: 'applied',
    to: dispute?.status ?? report.dispute_status ?? 'needs_response',
    transfer: { direction: 'out', amount, fee },
    change: readFacts(dispute, report),
  };
}

/** Decides about money that moved, of which a report without a status names the movement. */
function decideMovement(
  direction: DisputeTransfer['direction'],
  payment: DisputedPayment,
  dispute: DisputeFacts | null,
  report: DisputeReport,
): DisputeDecision {
  if (direction === 'in' && dispute === null) return refused(UNKNOWN);
  const { amount = 0, fee = 0, bank_reference } = report;
  if (!bank_reference) return refused('the report does not name its movement by a bank reference');
  if (amount + fee === 0) return refused('the report names no money');
  const known = decideKnown(dispute, direction, { amount, fee }, report);
  if (known !== undefined) return known;
  if (direction === 'out' || dispute === null) {
    return takeMoney(payment, dispute, report, { amount, fee });
  }
  const taken = sumTaken(dispute.transfers);
  if (amount > taken.amount || fee > taken.fee) {
    return { kind: 'refused', why: TOO_MUCH, isEarly: true };
  }
  const transfer = { direction, amount, fee } as const;
  return { kind: 'applied', to: dispute.status, transfer, change: {} };
}

const TOO_MUCH = 'more came back than the dispute took';

/** Finds whether a report is about a posted transfer; one without a name is named by it. */
function decideKnown(
  dispute: DisputeFacts | null,
  direction: DisputeTransfer['direction'],
  { amount, fee }: { amount: number; fee: number },
  { bank_reference = '' }: DisputeReport,
): DisputeDecision | undefined {
  const transfers = dispute?.transfers.filter((transfer) => transfer.direction === direction) ?? [];
  const isSame = (transfer: DisputeTransfer) => transfer.amount === amount && transfer.fee === fee;
  const named = transfers.find((transfer) => transfer.bank_reference === bank_reference);
  if (named !== undefined) {
    return isSame(named) ? REPEATED : refused('the movement is known, with another amount or fee');
  }
  const unnamed = transfers.find(
    (transfer) => transfer.bank_reference === undefined && isSame(transfer),
  );
  return unnamed && { kind: 'named', by: unnamed.by, bank_reference };
}

function decideUpdate(dispute: DisputeFacts, report: DisputeReport): DisputeDecision {
  const { status, reported_at } = dispute;
  const { dispute_status = status, occurred_at } = report;
  if (isDisputeClosed(status)) return { kind: 'late', why: `the dispute is ${status} already` };
  if (reported_at !== undefined && Date.parse(occurred_at) < Date.parse(reported_at)) {
    return { kind: 'late', why: 'the bank has reported a later status before' };
  }
  const change = readFacts(dispute, report);
  if (dispute_status === status && !isChanged(change)) return REPEATED;
  return { kind: 'applied', to: dispute_status, change };
}

function decideClosing(dispute: DisputeFacts, report: DisputeReport): DisputeDecision {
  const { status, transfers } = dispute;
  const to = report.name === 'dispute_won' ? 'won' : 'lost';
  const taken = sumTaken(transfers);
  if (status === to) {
    const back = transfers.findLast(({ direction }) => direction === 'in') ?? { amount: 0, fee: 0 };
    const known = to === 'won' ? back : taken;
    const { amount = known.amount, fee = known.fee } = report;
    const isSame = amount === known.amount && fee === known.fee;
    return isSame ? REPEATED : refused(`the dispute is ${status} already`);
  }
  // A lost dispute may be won later, by arbitration: the bank gives the money back.
  if (isDisputeClosed(status) && to !== 'won' && status !== 'accepted') {
    return refused(`the dispute is ${status} already`);
  }
  const { amount = taken.amount, fee } = report;
  if (to === 'won') {
    if (amount > taken.amount || (fee ?? 0) > taken.fee) return refused(TOO_MUCH);
    const transfer = { direction: 'in', amount, fee: fee ?? 0 } as const;
    const moved = amount + transfer.fee === 0 ? {} : { transfer };
    return { kind: 'applied', to, ...moved, change: close(dispute, report) };
  }
  if (amount !== taken.amount || (fee ?? taken.fee) !== taken.fee) {
    return refused('the dispute has another amount or fee');
  }
  // Who gives in has lost, and the bank may say so before it has answered.
  if (status === 'accepted') return REPEATED;
  const reached = dispute.answering === 'acceptance' ? 'accepted' : to;
  return { kind: 'applied', to: reached, change: close(dispute, report) };
}

function close(dispute: DisputeFacts, report: DisputeReport) {
  return { ...readFacts(dispute, report), reported_at: report.occurred_at };
}

/** Finds what the report says for the first time, or otherwise. */
function readFacts(
  dispute: DisputeFacts | null,
  { name, code, evidence_due_at, occurred_at }: DisputeReport,
): Partial<Pick<DisputeFacts, 'reason' | 'evidence_due_at' | 'reported_at'>> {
  const due = evidence_due_at && new Date(evidence_due_at).toISOString();
  // A deadline changes by an update only: other reports may be older.
  const isDueNew = due && (name === 'dispute_updated' || !dispute?.evidence_due_at);
  const isStatus = name === 'dispute_updated';
  return {
    ...(code && !dispute?.reason ? { reason: code } : {}),
    ...(isDueNew && due !== dispute?.evidence_due_at ? { evidence_due_at: due } : {}),
    ...(isStatus ? { reported_at: new Date(occurred_at).toISOString() } : {}),
  };
}

function isChanged({ reason, evidence_due_at }: Partial<DisputeFacts>): boolean {
  return (reason ?? evidence_due_at) != null;
}

/** Kinds for which a bank is instructed to send money. */
export const SENDING_KINDS = ['refund', 'payout', 'crypto_settlement'] as const;
export type SendingKind = (typeof SENDING_KINDS)[number];

/** The merchant or the service bears it, or the bank has it. */
export const SENT_OUTCOMES = ['merchant', 'loss', 'returned', 'never_sent'] as const;
export type SentOutcome = (typeof SENT_OUTCOMES)[number];

/**
 * Money that a bank sent otherwise than instructed. It is in suspense until the resource's own
 * entry takes it, or an operator decides who bears it.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export interface SentHeld {
  /** Bank reference, or id of the callback without one. */
  id: string;
  /** Null while the bank has not named it. */
  bank_reference: string | null;
  /** Minor units, or an asset's smallest as text. */
  amount: number | string;
  /** ISO 4217, or an asset and its network. */
  currency: string;
  /** ISO 8601, ms. */
  at: string;
  /** Taken by the entry of the resource, in the same units. */
  posted?: number | string;
  resolved?: SentResolution;
}

export interface SentResolution {
  as: SentOutcome;
  /** ISO 8601, ms. */
  at: string;
  /** Report of the bank, if any. */
  by?: string;
  /** Minor units of the merchant's part that the balance did not hold. */
  owed?: number;
}

/** Smallest units in suspense, or that were until an operator decided. */
export function computeRest({ amount, posted = 0 }: Pick<SentHeld, 'amount' | 'posted'>): bigint {
  return BigInt(amount) - BigInt(posted);
}

export function isOpenSent(held: SentHeld): boolean {
  return held.resolved === undefined && computeRest(held) > 0n;
}

export function holdsSent({ sent_held = [] }: { sent_held?: readonly SentHeld[] }): boolean {
  return sent_held.some(isOpenSent);
}

/** Smallest units that the resource's own entry has taken. */
export function sumPosted({ sent_held = [] }: { sent_held?: readonly SentHeld[] }): bigint {
  return sent_held.reduce((sum, { posted = 0 }) => sum + BigInt(posted), 0n);
}

interface SentReport {
  callback_id: string;
  bank_reference?: string | undefined;
  /** Payouts only. */
  says?: 'sent' | 'completed' | undefined;
}

/**
 * Finds money that a report repeats. Reports without a bank's name are all about the same; one with
 * a name may be about money that had none.
 */
export function findReportedSent(
  items: readonly SentHeld[],
  { callback_id, bank_reference }: SentReport,
): SentHeld | undefined {
  if (!bank_reference) return items.find(({ id }) => id === callback_id) ?? items.at(0);
  const isNamed = (held: SentHeld) =>
    held.id === bank_reference || held.bank_reference === bank_reference;
  return items.find(isNamed) ?? items.find((held) => held.bank_reference === null);
}

interface Instructed {
  status: string;
  bank_reference?: string | null | undefined;
  /** ISO 8601; set once a payout was sent, also if it failed later. */
  sent_at?: string | null | undefined;
  applied_callbacks?: readonly string[];
}

export function isUnbooked(
  { status, bank_reference = null, sent_at = null, applied_callbacks = [] }: Instructed,
  kind: SendingKind,
  report: SentReport,
): boolean {
  if (applied_callbacks.includes(report.callback_id)) return false;
  if (status === 'settled' || status === 'completed' || status === 'returned') return false;
  // Failed after it was sent: the bank repeats what came before.
  const isRepeat = status === 'sent' || (sent_at !== null && report.says === 'sent');
  if (kind !== 'payout' || !isRepeat) return true;
  return report.bank_reference && bank_reference !== null
    ? report.bank_reference !== bank_reference
    : false;
}

export interface SentTransition {
  isFailed: boolean;
  /** Smallest units that the transition's entry sends; 0: none. */
  sent: bigint;
  currency: string;
  bank_reference?: string | undefined;
  /** An operator decides, who has checked all of it with the bank. */
  isAct: boolean;
  /** ISO 8601, ms. */
  at: string;
}

/**
 * Takes out of suspense what is sent by the transition, or all if nothing is.
 * @returns all money, and what changed
 */
export function takeSent(
  items: readonly SentHeld[],
  { isFailed, sent, currency, bank_reference, isAct, at }: SentTransition,
): { items: SentHeld[]; posted: bigint; back: SentHeld[] } {
  if (isFailed) {
    const resolved = { as: isAct ? 'never_sent' : 'returned', at } as const;
    const back = items.filter(isOpenSent);
    return {
      items: items.map((held) => (isOpenSent(held) ? { ...held, resolved } : held)),
      posted: 0n,
      back,
    };
  }
  const isOwn = (held: SentHeld) =>
    isAct || !bank_reference || (held.bank_reference ?? bank_reference) === bank_reference;
  let left = sent;
  const after = items.map((held) => {
    if (!isOpenSent(held) || held.currency !== currency || !isOwn(held)) return held;
    const rest = computeRest(held);
    const part = rest < left ? rest : left;
    left -= part;
    return part === 0n ? held : { ...held, posted: toAmount(held, part) };
  });
  return { items: after, posted: sent - left, back: [] };
}

function toAmount({ amount, posted = 0 }: SentHeld, part: bigint): number | string {
  const sum = BigInt(posted) + part;
  return typeof amount === 'number' ? Number(sum) : String(sum);
}

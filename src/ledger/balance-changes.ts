import { buildPosition } from '../domain/cursor';
import type { BalanceTransactionType } from '../domain/money/money';
import { KINDS } from '../domain/resources';
import type { BalanceChange, EntryDocument } from './documents';
import type { BankEntryKind, EntryKind, NewEntry } from './entries';
import { toBigInt, toStoredInteger } from './integers';
import { readAvailable } from './ledger-accounts';

/** An entry without a line on an available balance has no row, whatever its kind. */
const TYPES = {
  funded: 'funding',
  adjusted: 'adjustment',
  reversed: 'adjustment',
  debt_collected: 'adjustment',
  payment_settled: 'payment',
  payment_held: 'payment',
  payment_resolved: 'payment',
  payment_clawed_back: 'chargeback',
  payment_dispute_opened: 'chargeback',
  payment_dispute_won: 'chargeback_reversal',
  refund_accepted: 'refund',
  /** Credits what the bank did not send. */
  refund_settled: 'refund_failure',
  refund_failed: 'refund_failure',
  refund_held: 'refund',
  refund_resolved: 'refund',
  payout_reserved: 'payout',
  payout_captured: 'payout',
  payout_released: 'payout_failure',
  payout_reversed: 'payout_failure',
  payout_returned: 'payout_return',
  payout_held: 'payout',
  payout_resolved: 'payout',
  crypto_payment_held: 'crypto_payment',
  crypto_payment_credited: 'crypto_payment',
  crypto_payment_returned: 'crypto_payment',
  crypto_payment_withdrawn: 'crypto_payment',
  crypto_payment_sent_back: 'crypto_payment',
  crypto_payment_written_off: 'crypto_payment',
  crypto_settlement_reserved: 'crypto_settlement',
  crypto_settlement_captured: 'crypto_settlement',
  crypto_settlement_released: 'crypto_settlement_failure',
  crypto_settlement_fee: 'crypto_settlement',
  crypto_settlement_held: 'crypto_settlement',
  crypto_settlement_resolved: 'crypto_settlement',
} as const satisfies Record<
  Exclude<EntryKind, BankEntryKind | 'made_available' | 'platform_posted'>,
  BalanceTransactionType
>;

/**
 * @returns undefined when no available balance changes
 * @param tie tie-break of its list position
 */
export function buildBalanceChange(
  entry: NewEntry,
  writtenAt: Date,
  tie: number,
): BalanceChange | undefined {
  const line = findAvailableLine(entry.lines);
  const { account_id, livemode, currency, kind, fee = 0 } = entry;
  if (line === undefined || !isMerchantKind(kind)) return undefined;
  const written = writtenAt.getTime();
  // By account time: later than the write where a sandbox's clock was moved.
  const isChargebackReversal = kind === 'reversed' && findSource(entry).object === 'payment';
  return {
    ...{ account_id, livemode, currency, balance_account: line.balance_account },
    type: isChargebackReversal ? 'chargeback_reversal' : TYPES[kind],
    position: buildPosition(livemode ? written : Math.max(written, Date.parse(entry.at)), tie),
    ...(BigInt(fee) === 0n ? {} : { fee: toStoredInteger(fee, currency) }),
  };
}

function isMerchantKind(kind: EntryKind): kind is keyof typeof TYPES {
  return Object.hasOwn(TYPES, kind);
}

export function readChange({ lines, fee }: Pick<EntryDocument & BalanceChange, 'lines' | 'fee'>) {
  const net = toBigInt(findAvailableLine(lines)?.amount) ?? 0n;
  const exactFee = toBigInt(fee) ?? 0n;
  return { amount: net + exactFee, fee: exactFee, net };
}

/** @returns the day from which the money of a change can be used, `YYYY-MM-DD`; null: at once */
export function readDueDay({ lines }: Pick<EntryDocument, 'lines'>): string | null {
  return findAvailableLine(lines)?.day || null;
}

/** Finds the resource or act that an entry is about; for a reversal, what it reverses. */
export function findSource({ kind, resource_id: id }: { kind: string; resource_id: string }): {
  object: string;
  id: string;
} {
  if (kind === 'reversed') {
    const end = id.indexOf(':');
    return findSource({ kind: id.slice(0, end), resource_id: id.slice(end + 1) });
  }
  if (kind === 'funded') return { object: 'funding', id };
  const resource = KINDS.find((name) => kind.startsWith(`${name}_`));
  if (resource === undefined) return { object: 'adjustment', id };
  // A reversed entry may be a step of its resource, whose id has no colon.
  return { object: resource, id: id.split(':')[0] ?? id };
}

function findAvailableLine(lines: readonly { account: string; amount: unknown }[]) {
  for (const { account, amount } of lines) {
    const found = readAvailable(account);
    if (found !== undefined) return { balance_account: found.name, amount, day: found.day };
  }
  return undefined;
}

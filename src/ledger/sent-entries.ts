import { MAIN_BALANCE } from '../domain/account/balance-account';
import { assertNever } from '../domain/assert';
import { parseBookCurrency } from '../domain/crypto/assets';
import {
  computeRest,
  type SendingKind,
  type SentHeld,
  type SentOutcome,
  type SentResolution,
} from '../domain/sent-held';
import { type NewEntry, operationId } from './entries';
import { ENTRY_LINES } from './entry-lines';
import { type BookingTime, buildEntry, type Owned } from './resource-entries';
import type { SentBearer } from './sent-lines';

type Sender = Owned & { balance_account?: string };

export function toLineAmount(units: bigint, currency: string): number | bigint {
  return parseBookCurrency(currency) === undefined ? Number(units) : units;
}

/** Builds the entry in the book of the currency that the bank sent. */
export function buildSentHeld(
  kind: SendingKind,
  resource: Sender,
  { id, amount, currency, bank_reference }: SentHeld,
  time: BookingTime,
): NewEntry {
  const lines = ENTRY_LINES[`${kind}_sent_held`](
    resource.connector,
    toLineAmount(BigInt(amount), currency),
  );
  const owner = { ...resource, currency, bank_reference };
  return { ...buildEntry(`${kind}_sent_held`, owner, lines, time), step: id };
}

export function sentHeldId(kind: SendingKind, resource_id: string, step: string): string {
  return operationId({ kind: `${kind}_sent_held`, resource_id, step });
}

/** Builds the entry of the rest that the resource's own entry left in suspense. */
export function buildSentResolved(
  kind: SendingKind,
  resource: Sender,
  held: SentHeld,
  { as, owed = 0, at }: Omit<SentResolution, 'by'>,
): NewEntry {
  const { id, currency } = held;
  const amount = toLineAmount(computeRest(held), currency);
  const bearer = buildBearer(resource, as, owed);
  const lines = ENTRY_LINES[`${kind}_sent_resolved`](amount, bearer);
  const owner = { ...resource, currency, bank_reference: null };
  // What never moved is on no statement.
  const offsets = as === 'never_sent' ? sentHeldId(kind, resource._id, id) : undefined;
  return { ...buildEntry(`${kind}_sent_resolved`, owner, lines, { at }), step: id, offsets };
}

function buildBearer(
  { connector, balance_account: balance = MAIN_BALANCE }: Sender,
  as: SentOutcome,
  owed: number,
): SentBearer {
  switch (as) {
    case 'returned':
    case 'never_sent':
      return { to: 'bank', connector };
    case 'loss':
      return { to: 'loss' };
    case 'merchant':
      return { to: 'merchant', balance, owed };
    default:
      return assertNever(as);
  }
}

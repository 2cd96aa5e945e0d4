import type { PayoutStatus } from '../../domain/payout/payout';
import type { EntryKind, ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { returnedAmount } from '../../ledger/resource-entries';
import type { PayoutDocument } from '../../store/payouts';
import type { ExpectedKinds, ResourceRule } from '../rule';
import { COMMON, listHeld, listResolved, sumFromSuspense, type WithMovements } from './common';

const PAYOUT_FIELDS = [
  ...COMMON,
  'amount',
  'connector',
  'fee',
  'balance_account',
  'sent_at',
  'returned_amount',
] as const;

export type PayoutPart = Pick<PayoutDocument, (typeof PAYOUT_FIELDS)[number]> & WithMovements;

const RESERVED = ['payout_reserved', 'payout_held', 'payout_resolved'] as const;
const CAPTURED = [...RESERVED, 'payout_captured'] as const;

export const PAYOUTS: ResourceRule<PayoutPart, ResourceEntryKind<'payout'>> = {
  collection: 'payouts',
  fields: PAYOUT_FIELDS,
  entries: {
    created: RESERVED,
    submitted: RESERVED,
    sent: CAPTURED,
    completed: CAPTURED,
    failed: ({ sent_at }) =>
      sent_at === null ? [...RESERVED, 'payout_released'] : [...CAPTURED, 'payout_reversed'],
    returned: [...CAPTURED, 'payout_returned'],
  } satisfies Record<PayoutStatus, ExpectedKinds<PayoutPart, EntryKind>>,
  lines: {
    payout_reserved: ({ balance_account, amount, fee }) =>
      ENTRY_LINES.payout_reserved(balance_account, amount, fee),
    payout_captured: (payout) =>
      ENTRY_LINES.payout_captured(
        payout.balance_account,
        payout.connector,
        payout.amount,
        payout.fee,
        sumTaken(payout, 'out'),
      ),
    payout_released: ({ balance_account, amount, fee }) =>
      ENTRY_LINES.payout_released(balance_account, amount, fee),
    payout_reversed: (payout) =>
      ENTRY_LINES.payout_reversed(
        payout.balance_account,
        payout.connector,
        payout.amount,
        payout.fee,
        sumTaken(payout, 'in'),
      ),
    payout_returned: (payout) =>
      ENTRY_LINES.payout_returned(
        payout.balance_account,
        payout.connector,
        returnedAmount(payout),
        sumTaken(payout, 'in'),
      ),
    payout_held: () => [],
    payout_resolved: () => [],
  },
  steps: {
    payout_held: (payout) => listHeld('payout', payout),
    payout_resolved: (payout) => listResolved('payout', payout),
  },
};

function sumTaken({ movements }: PayoutPart, direction: 'in' | 'out'): number {
  return Number(sumFromSuspense(movements, direction));
}

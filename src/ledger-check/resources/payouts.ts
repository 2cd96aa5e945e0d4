import { sumHeldReturns } from '../../domain/payout/held-return';
import type { PayoutStatus } from '../../domain/payout/payout';
import { sumPosted } from '../../domain/sent-held';
import type { EntryKind, ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { returnedAmount } from '../../ledger/resource-entries';
import type { PayoutDocument } from '../../store/payouts';
import type { ExpectedKinds, ResourceRule } from '../rule';
import { COMMON, listHeldReturns, listSentAgain, listSentHeld, listSentResolved } from './common';

const PAYOUT_FIELDS = [
  ...COMMON,
  'amount',
  'connector',
  'fee',
  'balance_account',
  'sent_at',
  'returned_amount',
  'sent_again',
  'returns_held',
  'sent_held',
] as const;

export type PayoutPart = Pick<PayoutDocument, (typeof PAYOUT_FIELDS)[number]>;
const RESERVED = [
  ...(['payout_reserved', 'payout_return_held'] as const),
  ...(['payout_sent_held', 'payout_sent_resolved'] as const),
] as const;
const CAPTURED = [...RESERVED, 'payout_captured'] as const;

export const PAYOUTS: ResourceRule<PayoutPart, ResourceEntryKind<'payout'>> = {
  collection: 'payouts',
  fields: PAYOUT_FIELDS,
  entries: {
    created: RESERVED,
    submitted: RESERVED,
    sent: CAPTURED,
    completed: [...CAPTURED, 'payout_sent_again'],
    failed: ({ sent_at }) =>
      sent_at === null ? [...RESERVED, 'payout_released'] : [...CAPTURED, 'payout_reversed'],
    returned: [...CAPTURED, 'payout_sent_again', 'payout_returned'],
  } satisfies Record<PayoutStatus, ExpectedKinds<PayoutPart, EntryKind>>,
  lines: {
    payout_reserved: ({ balance_account, amount, fee }) =>
      ENTRY_LINES.payout_reserved(balance_account, amount, fee),
    payout_captured: ({ balance_account, connector, amount, fee, ...payout }) =>
      ENTRY_LINES.payout_captured(
        balance_account,
        connector,
        amount,
        fee,
        Number(sumPosted(payout)),
      ),
    payout_released: ({ balance_account, amount, fee }) =>
      ENTRY_LINES.payout_released(balance_account, amount, fee),
    payout_reversed: (payout) =>
      ENTRY_LINES.payout_reversed(
        payout.balance_account,
        payout.connector,
        payout.amount,
        payout.fee,
        sumHeldReturns(payout),
      ),
    payout_returned: (payout) =>
      ENTRY_LINES.payout_returned(
        payout.balance_account,
        payout.connector,
        returnedAmount(payout),
        sumHeldReturns(payout),
      ),
    payout_return_held: () => [],
    payout_sent_again: () => [],
    payout_sent_held: () => [],
    payout_sent_resolved: () => [],
  },
  steps: {
    payout_sent_again: (payout) => listSentAgain(payout),
    payout_return_held: (payout) => listHeldReturns(payout),
    payout_sent_held: (payout) => listSentHeld('payout', payout),
    payout_sent_resolved: (payout) => listSentResolved('payout', payout),
  },
};

import type { CryptoSettlementStatus } from '../../domain/crypto/settlement';
import { buildNetworkFee, settlementDraw } from '../../ledger/crypto-entries';
import { bookId, type EntryKind, type ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import type { CryptoSettlementDocument } from '../../store/crypto-settlements';
import type { ExpectedStep, ResourceRule } from '../rule';
import { COMMON, listHeld, listResolved, sumFromSuspense, type WithMovements } from './common';

const SETTLEMENT_FIELDS = [
  ...COMMON,
  ...(['connector', 'amount', 'fee', 'network', 'network_fee'] as const),
] as const;

type SettlementPart = Pick<CryptoSettlementDocument, (typeof SETTLEMENT_FIELDS)[number]> &
  WithMovements;

function listNetworkFees({ status, ...settlement }: SettlementPart): ExpectedStep[] {
  const entry = buildNetworkFee({ ...settlement, _id: '' }, '');
  return entry === undefined ? [] : [{ lines: [...entry.lines], book: bookId(entry) }];
}

const SETTLEMENT_RESERVED = [
  'crypto_settlement_reserved',
  'crypto_settlement_held',
  'crypto_settlement_resolved',
] as const;

export const CRYPTO_SETTLEMENTS: ResourceRule<
  SettlementPart,
  ResourceEntryKind<'crypto_settlement'>
> = {
  collection: 'crypto_settlements',
  fields: SETTLEMENT_FIELDS,
  entries: {
    pending: SETTLEMENT_RESERVED,
    sent: SETTLEMENT_RESERVED,
    completed: [...SETTLEMENT_RESERVED, 'crypto_settlement_captured', 'crypto_settlement_fee'],
    failed: [...SETTLEMENT_RESERVED, 'crypto_settlement_released', 'crypto_settlement_fee'],
  } satisfies Record<CryptoSettlementStatus, readonly EntryKind[]>,
  lines: {
    crypto_settlement_reserved: (part) =>
      ENTRY_LINES.crypto_settlement_reserved(settlementDraw(part)),
    crypto_settlement_captured: (part) =>
      ENTRY_LINES.crypto_settlement_captured(
        part.connector,
        settlementDraw(part),
        sumFromSuspense(part.movements, 'out'),
      ),
    crypto_settlement_released: (part) =>
      ENTRY_LINES.crypto_settlement_released(settlementDraw(part)),
    crypto_settlement_fee: () => [],
    crypto_settlement_held: () => [],
    crypto_settlement_resolved: () => [],
  },
  steps: {
    crypto_settlement_fee: listNetworkFees,
    crypto_settlement_held: (part) => listHeld('crypto_settlement', part),
    crypto_settlement_resolved: (part) => listResolved('crypto_settlement', part),
  },
  reportedTransitions: ({ status, transition }) =>
    status === 'completed' || status === 'failed' ? [transition] : [],
};

import type { Direction } from '../../domain/banks/movement';
import type { CryptoSettlementStatus } from '../../domain/crypto/settlement';
import type { PayoutStatus } from '../../domain/payout/payout';
import { buildNetworkFee, settlementDraw } from '../../ledger/crypto-entries';
import { bookId, type EntryKind, type ResourceEntryKind } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { returnedAmount } from '../../ledger/resource-entries';
import type { CryptoSettlementDocument } from '../../store/crypto-settlements';
import type { PayoutDocument } from '../../store/payouts';
import {
  COMMON,
  type ExpectedKinds,
  expectOne,
  listHeld,
  listResolved,
  type ResourceRule,
  sumFromSuspense,
  type WithMovements,
} from '../rule';

const PAYOUT_FIELDS = [
  ...COMMON,
  ...(['amount', 'connector', 'fee', 'balance_account', 'sent_at', 'returned_amount'] as const),
] as const;

type PayoutPart = Pick<PayoutDocument, (typeof PAYOUT_FIELDS)[number]> & WithMovements;

const RESERVED = ['payout_reserved', 'payout_held', 'payout_resolved'] as const;
const CAPTURED = [...RESERVED, 'payout_captured'] as const;

const sumTaken = ({ movements }: WithMovements, direction: Direction) =>
  Number(sumFromSuspense(movements, direction));

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
  steps: {
    payout_reserved: ({ balance_account, amount, fee }) =>
      expectOne(ENTRY_LINES.payout_reserved(balance_account, amount, fee)),
    payout_captured: ({ balance_account: balance, connector, amount, fee, ...payout }) => {
      const held = sumTaken(payout, 'out');
      return expectOne(ENTRY_LINES.payout_captured(balance, connector, amount, fee, held));
    },
    payout_released: ({ balance_account, amount, fee }) =>
      expectOne(ENTRY_LINES.payout_released(balance_account, amount, fee)),
    payout_reversed: ({ balance_account: balance, connector, amount, fee, ...payout }) => {
      const held = sumTaken(payout, 'in');
      return expectOne(ENTRY_LINES.payout_reversed(balance, connector, amount, fee, held));
    },
    payout_returned: (payout) => {
      const { balance_account, connector } = payout;
      const [amount, held] = [returnedAmount(payout), sumTaken(payout, 'in')];
      return expectOne(ENTRY_LINES.payout_returned(balance_account, connector, amount, held));
    },
    payout_held: (payout) => listHeld('payout', payout),
    payout_resolved: (payout) => listResolved('payout', payout),
  },
};

const SETTLEMENT_FIELDS = [
  ...COMMON,
  ...(['connector', 'amount', 'fee', 'network', 'network_fee'] as const),
] as const;

type SettlementPart = Pick<CryptoSettlementDocument, (typeof SETTLEMENT_FIELDS)[number]> &
  WithMovements;

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
  steps: {
    crypto_settlement_reserved: (part) =>
      expectOne(ENTRY_LINES.crypto_settlement_reserved(settlementDraw(part))),
    crypto_settlement_captured: (part) => {
      const held = sumFromSuspense(part.movements, 'out');
      const draw = settlementDraw(part);
      return expectOne(ENTRY_LINES.crypto_settlement_captured(part.connector, draw, held));
    },
    crypto_settlement_released: (part) =>
      expectOne(ENTRY_LINES.crypto_settlement_released(settlementDraw(part))),
    crypto_settlement_fee: ({ status, ...settlement }) => {
      const entry = buildNetworkFee({ ...settlement, _id: '' }, '');
      return entry === undefined ? [] : [{ lines: [...entry.lines], book: bookId(entry) }];
    },
    crypto_settlement_held: (part) => listHeld('crypto_settlement', part),
    crypto_settlement_resolved: (part) => listResolved('crypto_settlement', part),
  },
  reportedTransitions: ({ status, transition }) =>
    status === 'completed' || status === 'failed' ? [transition] : [],
};

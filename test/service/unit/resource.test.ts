import type { Resolution } from '../../../src/domain/banks/movement';
import type { Deposit } from '../../../src/domain/crypto/deposit';
import { presentDeposit } from '../../../src/service/operators/resource';
import type { MovementDocument } from '../../../src/store/movements';
import { makeMovement } from '../../support/movements';

const FACTS: Omit<Deposit, 'key'> = {
  ...{ transaction_id: '0x1', amount: '5', confirmations: 0, required_confirmations: 12 },
  ...{ status: 'rejected', seen_at: '2026-03-01T12:00:00.000Z', late: true, screening: null },
};
const DEPOSIT: Deposit = { key: '0x1', ...FACTS };

/** Row of the register of a deposit of which all has left suspense. */
function buildRow(
  entry: 'held' | 'credited',
  { as, ...more }: Partial<MovementDocument> & { as?: Resolution['as'] } = {},
): MovementDocument {
  const { id: _id, ...movement } = makeMovement({ id: 'mv_1', amount: '5' });
  const decided = { amount: '5', operator: 'mia', reason: 'Ticket 42', at: '' };
  return {
    ...movement,
    ...{ _id, connector: 'evm', livemode: false, account_id: 'acct_1' },
    ...{ resource: 'crypto_payment', resource_id: 'cp_1', order: 2, state: 'resolved' },
    entry: `crypto_payment_${entry}:cp_1:0x1`,
    sources: [{ kind: 'block', id: '0x1', at: '' }],
    resolutions: as === undefined ? [] : [{ as, ...decided }],
    ...more,
  };
}

const BACK: MovementDocument = {
  ...buildRow('held'),
  ...{ _id: 'mv_2', direction: 'out', bank_reference: '0x2', sources: [] },
};
const SENT: Resolution = {
  ...{ as: 'customer', amount: '5', operator: 'mia', reason: 'Ticket 42', at: '' },
  ...{ by: 'mv_2', address: '0xabc' },
};
const GONE = ['credited', { reason: 'deposit_undone' }] as const;
const DEBITED = { is_debited: true as const, resolutions: [SENT] };
const LEFT = { as: 'returned', transaction_id: '0x2', address: '0xabc' };
const WENT = { undone: false, returned: true, withdrawn: true, left: LEFT };

test.each<[string, MovementDocument[], object]>([
  ['is not confirmed', [], { undone: false }],
  ['is held', [buildRow('held')], { undone: false, held: true }],
  [
    'the chain has dropped while it was held',
    [buildRow('held', { as: 'never_happened' })],
    { undone: true, held: true, left: { as: 'undone' } },
  ],
  ['is gone after it was credited', [buildRow(...GONE)], { undone: true }],
  [
    'is gone, and debited',
    [buildRow('credited', { ...GONE[1], as: 'merchant' })],
    { undone: true, returned: true },
  ],
  [
    'is given up',
    [buildRow('held', { as: 'loss' })],
    { undone: false, held: true, left: { as: 'written_off' } },
  ],
  ['was debited, and sent back', [buildRow('credited', DEBITED), BACK], WENT],
])('the JSON of a deposit that %s says so by its movement', (_, movements, flags) => {
  expect(presentDeposit(DEPOSIT, movements)).toEqual({ ...FACTS, ...flags });
});

test('the JSON of a deposit says how often the chain had it', () => {
  expect(presentDeposit({ ...DEPOSIT, key: '0x1:USDC#3' }, [])).toMatchObject({ times: 3 });
});

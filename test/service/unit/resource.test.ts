import type { Deposit } from '../../../src/domain/crypto/deposit';
import { presentDeposit } from '../../../src/service/operators/resource';

const DEPOSIT: Deposit = {
  transaction_id: '0x1',
  amount: '5',
  confirmations: 0,
  required_confirmations: 12,
  status: 'rejected',
  seen_at: '2026-03-01T12:00:00.000Z',
  late: true,
  screening: null,
  reorged: true,
  left: { as: 'reorged' },
};

test('the JSON of a deposit says `undone` of one that the chain has dropped', () => {
  const { reorged: _, ...facts } = DEPOSIT;
  expect(presentDeposit(DEPOSIT)).toEqual({ ...facts, undone: true, left: { as: 'undone' } });
  const { left: _left, ...counted } = { ...DEPOSIT, reorged: false };
  expect(presentDeposit(counted)).toMatchObject({ undone: false });
});

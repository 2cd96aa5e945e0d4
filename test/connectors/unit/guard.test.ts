import { createInstructionGuard } from '../../../connectors/contract/guard';

/** Guard over one resource in flight, of an account that is frozen or not. */
function guardOf(status: string, frozen: boolean) {
  const found = { account_id: 'acct_1', status, version: 1 };
  const get = async () => found;
  const account = frozen ? { frozen: { at: '2026-03-01T00:00:00.000Z', reason: 'Leak' } } : {};
  const resources = { payouts: { get }, refunds: { get }, crypto_settlements: { get } };
  const stores = { ...resources, accounts: { get: async () => account } };
  return createInstructionGuard(Object(stores));
}

const OUTDATED = { outcome: 'outdated' };
const payout = { resource: 'payout', id: 'p', version: 1 } as const;

test('a payout of a frozen account is held, and goes once it is free', async () => {
  await expect(guardOf('created', true)(payout)).rejects.toThrow('The account is frozen');
  await expect(guardOf('created', false)(payout)).resolves.toBeUndefined();
});

test('a settlement of coins of a frozen account is held, and goes once it is free', async () => {
  const settlement = { ...payout, resource: 'crypto_settlement' } as const;
  await expect(guardOf('pending', true)(settlement)).rejects.toThrow('The account is frozen');
  await expect(guardOf('pending', false)(settlement)).resolves.toBeUndefined();
});

test('a refund of a frozen account goes on', async () => {
  const refund = { ...payout, resource: 'refund' } as const;
  await expect(guardOf('processing', true)(refund)).resolves.toBeUndefined();
});

test('an instruction at a version that the document has left is outdated', async () => {
  expect(await guardOf('created', false)({ ...payout, version: 0 })).toEqual(OUTDATED);
});

test.each(['completed', 'failed', 'returned'])(
  'a payout that is %s is outdated',
  async (status) => {
    expect(await guardOf(status, false)(payout)).toEqual(OUTDATED);
  },
);

test('a document behind its workflow is not instructed, and makes the attempt fail', async () => {
  await expect(guardOf('created', false)({ ...payout, version: 2 })).rejects.toThrow(
    'behind its workflow: not instructed',
  );
});

import { Registry } from 'prom-client';
import {
  beginAttempt,
  createGuardMeter,
  createInstructionGuard,
} from '../../../connectors/contract/guard';

const OUTDATED = { outcome: 'outdated' };
const OF_PRODUCT = { account_id: 'acct_1', connector: 'acme', version: 1, bank_reference: null };
const MONEY = { amount: 3_400, currency: 'EUR', method: 'sepa_instant', livemode: true };
const REVERSED = { id: 'b-2', reason: 'late', state: 'suspense', amount: 1_050, currency: 'EUR' };
const REFUND = { payment_id: 'pay_1', payment_bank_reference: 'B-1', ...MONEY };
const COINS = { asset: 'ETH', network: 'ethereum', amount: '10', wallet_address: '0xA' };

/** Instruction of each kind as the workflow gives it, and the document that it repeats. */
const KINDS = {
  payout: {
    instruction: { payout_id: 'p', version: 1, ...MONEY },
    document: { _id: 'p', status: 'created', ...OF_PRODUCT, ...MONEY },
  },
  refund: {
    instruction: { refund_id: 'r', version: 1, ...REFUND },
    document: { _id: 'r', status: 'processing', ...OF_PRODUCT, ...REFUND },
  },
  crypto_settlement: {
    instruction: { crypto_settlement_id: 's', version: 1, ...COINS, livemode: true },
    document: { _id: 's', status: 'pending', ...OF_PRODUCT, ...COINS, livemode: true },
  },
  payment: {
    instruction: {
      payment_id: 'pay_1',
      instruction_id: 'reversal:pay_1:b-2',
      amount: 1_050,
      currency: 'EUR',
    },
    document: {
      ...{ _id: 'pay_1', status: 'cancelled', ...OF_PRODUCT, ...MONEY },
      receipts: [{ ...REVERSED, id: 'b-1' }, REVERSED],
    },
  },
} as const;

const EACH = ['payout', 'refund', 'crypto_settlement', 'payment'] as const;
type Kind = (typeof EACH)[number];

/** Guard of the connector `acme` over one document, and what it reports. */
function guardOver(
  kind: Kind,
  change: object = {},
  { frozen = false, connector = 'acme' }: { frozen?: boolean; connector?: string } = {},
) {
  const document = { ...KINDS[kind].document, ...change };
  const account = frozen ? { frozen: { at: '2026-03-01T00:00:00.000Z', reason: 'Leak' } } : {};
  const registry = new Registry();
  const logged: object[] = [];
  const { findOutdated, mayStillSend } = createInstructionGuard(
    Object({
      [`${kind}s`]: { get: async () => document },
      accounts: { get: async () => account },
      connector,
      log: { error: (fields: object) => logged.push(fields) },
      meter: createGuardMeter(registry),
    }),
  );
  const ask = (given: object = {}, attempt?: ReturnType<typeof beginAttempt>) =>
    findOutdated(kind, Object({ ...KINDS[kind].instruction, ...given }), attempt);
  const stillSends = (given: object = {}) =>
    mayStillSend(Object({ ...KINDS.payout.instruction, ...given }));
  return { ask, stillSends, logged, counted: () => registry.metrics() };
}

function changeFact(fact: string, value: unknown): unknown {
  // A later version is not another fact: the document is behind.
  if (fact === 'version') return '1';
  if (typeof value === 'number') return value + 1;
  return typeof value === 'boolean' ? !value : `${value}9`;
}

/** Each fact of each kind, as another one and left out. */
const DIFFERING = EACH.flatMap((kind) =>
  Object.entries(KINDS[kind].instruction).flatMap(([fact, value]) =>
    [changeFact(fact, value), undefined].map((other) => [kind, fact, other] as const),
  ),
);

test.each(DIFFERING)(
  'a %s whose %s is %s is refused, logged and counted',
  async (kind, fact, other) => {
    const { ask, logged, counted } = guardOver(kind);
    await expect(ask({ [fact]: other })).rejects.toThrow(/^The instruction differs from .*: not/);
    expect(logged).toEqual([
      expect.objectContaining({ connector: 'acme', differing: expect.arrayContaining([fact]) }),
    ]);
    const labels = `{connector="acme",resource="${kind}"}`;
    expect(await counted()).toContain(`payments_instructions_refused_total${labels} 1\n`);
  },
);

describe.each(EACH)('a %s', (kind) => {
  test('that says what its document says goes, at the connector that the document names', async () => {
    const { ask, logged } = guardOver(kind);
    expect(await ask()).toBeUndefined();
    expect(logged).toEqual([]);
    const elsewhere = guardOver(kind, {}, { connector: 'other' });
    await expect(elsewhere.ask()).rejects.toThrow(`differs from the ${kind} in connector`);
  });
});

test.each(['payout', 'crypto_settlement'] as const)(
  'a %s of a frozen account is held',
  async (kind) => {
    await expect(guardOver(kind, {}, { frozen: true }).ask()).rejects.toThrow('is frozen');
  },
);

test('a refund of a frozen account goes on', async () => {
  expect(await guardOver('refund', {}, { frozen: true }).ask()).toBeUndefined();
});

test.each(['completed', 'failed', 'returned'])(
  'a payout that is %s is outdated',
  async (status) => {
    expect(await guardOver('payout', { status }).ask()).toEqual(OUTDATED);
  },
);

test('a version that the document has left is outdated, and one that it has not reached waits', async () => {
  expect(await guardOver('payout', { version: 2 }).ask()).toEqual(OUTDATED);
  await expect(guardOver('payout').ask({ version: 2 })).rejects.toThrow('behind its workflow');
});

test('late funds that are no longer in suspense are not sent back', async () => {
  const receipts = [
    { ...REVERSED, id: 'b-1' },
    { ...REVERSED, state: 'credited' },
  ];
  expect(await guardOver('payment', { receipts }).ask()).toEqual(OUTDATED);
});

test('an attempt that took too long instructs nobody', async () => {
  const clock = { ms: 0 };
  const attempt = beginAttempt(() => new Date(clock.ms));
  expect(attempt.deadline).toEqual(new Date(25_000));
  const { ask } = guardOver('payout');
  clock.ms = 24_999;
  expect(await ask({}, attempt)).toBeUndefined();
  clock.ms = 25_000;
  await expect(ask({}, attempt)).rejects.toThrow('took too long');
  expect(attempt.assertInTime).toThrow('took too long');
});

describe('a payout in a file that is cut later', () => {
  test.each([
    ['created', 1, true],
    ['submitted', 2, true],
    ['sent', 3, false],
    ['failed', 3, false],
  ])('that is %s at version %d may still be sent: %s', async (status, version, expected) => {
    expect(await guardOver('payout', { status, version }).stillSends()).toBe(expected);
  });

  test('stays out of it while it differs, is frozen or behind', async () => {
    const submitted = { status: 'submitted', version: 2 };
    const { stillSends, logged } = guardOver('payout', submitted);
    await expect(stillSends({ amount: 3_401 })).rejects.toThrow(
      'differs from the payout in amount',
    );
    expect(logged).toHaveLength(1);
    await expect(stillSends({ version: 3 })).rejects.toThrow('behind its workflow');
    const frozen = guardOver('payout', submitted, { frozen: true });
    await expect(frozen.stillSends()).rejects.toThrow('is frozen');
  });
});

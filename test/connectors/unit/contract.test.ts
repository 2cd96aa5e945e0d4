import { Registry } from 'prom-client';
import * as guard from '../../../connectors/contract/guard';
import {
  createRecipientDecrypter,
  RecipientDeleted,
} from '../../../connectors/contract/recipients';
import { readSandboxBankConfig } from '../../../connectors/sandbox/config';
import type { Movement } from '../../../src/domain/banks/movement';
import { makeMovement } from '../../support/movements';

const OUTDATED = { outcome: 'outdated' };
/** Reasons and bookings have counted in the version. */
const COUNTS = { version: 9, transition: 1 };
const PRODUCT = { account_id: 'acct_1', connector: 'acme', ...COUNTS, bank_reference: null };
const MONEY = { amount: 3_400, currency: 'EUR', method: 'sepa_instant', livemode: true };
const REFUND = { payment_id: 'pay_1', payment_bank_reference: 'B-1', ...MONEY };
const ASSET = { asset: 'ETH', network: 'ethereum', amount: '10', wallet_address: '0xA' };
const SETTLEMENT = { ...ASSET, livemode: true };
const DISPUTE = { payment_id: 'pay_1', livemode: true };
const ANSWER = { instruction_id: 'evidence:d' };
const ANSWERED = { name: 'D1', answering: 'evidence' };
const REVERSAL = { payment_id: 'pay_1', instruction_id: 'reversal:pay_1:mv_2' };

/** Instruction of each kind as the workflow gives it, and the document that it repeats. */
const KINDS = {
  payout: {
    instruction: { payout_id: 'p', version: 1, ...MONEY },
    document: { _id: 'p', status: 'created', ...PRODUCT, ...MONEY },
  },
  refund: {
    instruction: { refund_id: 'r', version: 1, ...REFUND },
    document: { _id: 'r', status: 'processing', ...PRODUCT, ...REFUND },
  },
  crypto_settlement: {
    instruction: { crypto_settlement_id: 's', version: 1, ...SETTLEMENT },
    document: { _id: 's', status: 'pending', ...PRODUCT, ...SETTLEMENT },
  },
  dispute: {
    instruction: { ...ANSWER, dispute_id: 'd', bank_dispute_id: 'D1', version: 1, ...DISPUTE },
    document: { _id: 'd', status: 'needs_response', ...PRODUCT, ...DISPUTE, ...ANSWERED },
  },
  payment: {
    instruction: { ...REVERSAL, amount: 1_050, currency: 'EUR' },
    document: { _id: 'pay_1', status: 'cancelled', ...PRODUCT, ...MONEY },
  },
} as const;

const EACH = ['payout', 'refund', 'crypto_settlement', 'dispute', 'payment'] as const;

const EARLIER = makeMovement({ id: 'mv_1', reason: 'late', amount: 1_050 });
const LATE = { ...EARLIER, id: 'mv_2' };

/** Creates the guard of a connector over one document. */
function createGuard(
  kind: (typeof EACH)[number],
  change: object = {},
  { frozen = false, connector = 'acme', movements = [EARLIER, LATE] as readonly Movement[] } = {},
) {
  const document = { ...KINDS[kind].document, ...change };
  const account = frozen ? { frozen: { at: '2026-03-01T00:00:00.000Z', reason: 'Leak' } } : {};
  const registry = new Registry();
  const logged: object[] = [];
  const { findOutdated, mayStillSend } = guard.createInstructionGuard(
    Object({
      [`${kind}s`]: { get: async () => document },
      movements: {
        forResource: async () => movements.map(({ id: _id, ...row }) => ({ _id, ...row })),
      },
      accounts: { get: async () => account },
      connector,
      log: { error: (fields: object) => logged.push(fields) },
      meter: guard.createGuardMeter(registry),
    }),
  );
  const check = (facts: object = {}, attempt?: ReturnType<typeof guard.beginAttempt>) =>
    findOutdated(kind, Object({ ...KINDS[kind].instruction, ...facts }), attempt);
  const checkLater = (facts: object = {}) =>
    mayStillSend(Object({ ...KINDS.payout.instruction, ...facts }));
  return { check, checkLater, logged, readMetrics: () => registry.metrics() };
}

function changeFact(fact: string, value: unknown): unknown {
  // A later version is not a different fact: the document is behind.
  if (fact === 'version') return '1';
  if (typeof value === 'number') return value + 1;
  return typeof value === 'boolean' ? !value : `${value}9`;
}

/** Each fact of each kind, changed and left out. */
const DIFFERING = EACH.flatMap((kind) =>
  Object.entries(KINDS[kind].instruction).flatMap(([fact, value]) =>
    [changeFact(fact, value), undefined].map((other) => [kind, fact, other] as const),
  ),
);

test.each(DIFFERING)(
  'an instruction for a %s is refused, logged and counted if %s is %j',
  async (kind, fact, other) => {
    const { check, logged, readMetrics } = createGuard(kind);
    await expect(check({ [fact]: other })).rejects.toThrow(/^The instruction differs from .*: not/);
    const differing = expect.arrayContaining([fact]);
    expect(logged).toEqual([expect.objectContaining({ connector: 'acme', differing })]);
    const labels = `{connector="acme",resource="${kind}"}`;
    expect(await readMetrics()).toContain(`payments_instructions_refused_total${labels} 1\n`);
  },
);

test.each(EACH)('an instruction for a %s passes at the connector of its document', async (kind) => {
  const { check, logged } = createGuard(kind);
  expect(await check()).toBeUndefined();
  expect(logged).toEqual([]);
  const elsewhere = createGuard(kind, {}, { connector: 'other' });
  await expect(elsewhere.check()).rejects.toThrow(`differs from the ${kind} in connector`);
});

test('a frozen account holds its payouts and crypto settlements, but not its refunds', async () => {
  const check = (kind: (typeof EACH)[number]) => createGuard(kind, {}, { frozen: true }).check();
  await expect(check('payout')).rejects.toThrow('is frozen');
  await expect(check('crypto_settlement')).rejects.toThrow('is frozen');
  expect(await check('refund')).toBeUndefined();
});

test.each([
  ['a payout that is completed', 'payout', { status: 'completed' }],
  ['a payout that has failed', 'payout', { status: 'failed' }],
  ['a payout that has returned', 'payout', { status: 'returned' }],
  ['a dispute that is lost', 'dispute', { status: 'lost' }],
  ['an earlier transition of the document', 'payout', { transition: 2 }],
] as const)('an instruction for %s is outdated', async (_, kind, change) => {
  expect(await createGuard(kind, change).check()).toEqual(OUTDATED);
});

const BY = { operator: null, reason: null, at: '2026-03-04T05:06:07.089Z' };
const BACK = { as: 'customer', amount: 1_050, ...BY } as const;

test.each([
  ['that the payment has taken', { ...LATE, applied: 1_050 }],
  ['that are back', { ...LATE, resolutions: [BACK] }],
])('an instruction for late funds %s is outdated', async (_, movement) => {
  const movements = [EARLIER, movement];
  expect(await createGuard('payment', {}, { movements }).check()).toEqual(OUTDATED);
});

test('an instruction for late funds of which a part is taken has the rest as its amount', async () => {
  const { check } = createGuard('payment', {}, { movements: [EARLIER, { ...LATE, applied: 50 }] });
  expect(await check({ amount: 1_000 })).toBeUndefined();
  await expect(check()).rejects.toThrow('differs from the payment in amount');
});

test('the first late funds have the instruction of the payment, and what is not late has its own', async () => {
  const differing = { ...EARLIER, reason: 'amount_differs' } as const;
  const { check } = createGuard('payment', {}, { movements: [differing, LATE] });
  expect(await check({ instruction_id: 'reversal:pay_1' })).toBeUndefined();
  expect(await check({ instruction_id: 'reversal:pay_1:mv_1' })).toBeUndefined();
  await expect(check()).rejects.toThrow('differs from the payment in');
});

test('an instruction for a later transition waits for the document', async () => {
  await expect(createGuard('payout').check({ version: 2 })).rejects.toThrow('behind its workflow');
});

test('an attempt instructs nobody after 25 seconds', async () => {
  const clock = { ms: 0 };
  const attempt = guard.beginAttempt(() => new Date(clock.ms));
  expect(attempt.deadline).toEqual(new Date(25_000));
  const { check } = createGuard('payout');
  clock.ms = 24_999;
  expect(await check({}, attempt)).toBeUndefined();
  clock.ms = 25_000;
  await expect(check({}, attempt)).rejects.toThrow('took too long');
  expect(attempt.assertInTime).toThrow('took too long');
});

test.each([
  ['created', 1, true],
  ['submitted', 2, true],
  ['sent', 3, false],
  ['failed', 3, false],
])('a payout that is %s after transition %d goes into a later file: %s', async (...row) => {
  const [status, transition, goes] = row;
  expect(await createGuard('payout', { status, transition }).checkLater()).toBe(goes);
});

test('a payout does not go into a later file if it differs, is frozen or behind', async () => {
  const submitted = { status: 'submitted', transition: 2 };
  const { checkLater, logged } = createGuard('payout', submitted);
  await expect(checkLater({ amount: 3_401 })).rejects.toThrow('differs from the payout in amount');
  expect(logged).toHaveLength(1);
  await expect(checkLater({ version: 3 })).rejects.toThrow('behind its workflow');
  const frozen = createGuard('payout', submitted, { frozen: true });
  await expect(frozen.checkLater()).rejects.toThrow('is frozen');
});

const OWNER = { account_id: 'acct_1', livemode: true };
const PAYOUT = { ...OWNER, connector: 'acme', status: 'created', recipient_id: 'r' };
const RECIPIENT = { ...OWNER, ciphertext: 'ciphertext' };

/** Creates the decrypter of the connector `acme` over one payout and one recipient. */
function createDecrypter(payout: object | null, recipient: object | null) {
  const [decrypted, logged]: [string[], object[]] = [[], []];
  const decrypt = async (_ciphertext: string, owner: string) => {
    decrypted.push(owner);
    return '{}';
  };
  const deps = {
    payouts: { get: async () => payout },
    recipients: { get: async () => recipient },
    encrypter: { decrypt },
    connector: 'acme',
    log: { info: (facts: object) => logged.push(facts) },
  };
  return { read: createRecipientDecrypter(Object(deps)), decrypted, logged };
}

test.each([
  ['of another connector', { ...PAYOUT, connector: 'other' }, RECIPIENT],
  ['that was sent', { ...PAYOUT, status: 'sent' }, RECIPIENT],
  ['that has failed', { ...PAYOUT, status: 'failed' }, RECIPIENT],
  ['that does not exist', null, RECIPIENT],
  ['without its recipient', PAYOUT, null],
  ['whose recipient is of another account', PAYOUT, { ...RECIPIENT, account_id: 'acct_2' }],
  ['whose recipient is of the sandbox', PAYOUT, { ...RECIPIENT, livemode: false }],
])('nothing is decrypted for a payout %s', async (_, payout, recipient) => {
  const { read, decrypted, logged } = createDecrypter(payout, recipient);
  await expect(read('p')).rejects.toThrow(/no such|has to send/);
  expect([decrypted, logged]).toEqual([[], []]);
});

test('an erased recipient has an error of its own, so that the payout is refused for good', async () => {
  const { read, decrypted } = createDecrypter(PAYOUT, { ...RECIPIENT, ciphertext: null });
  await expect(read('p')).rejects.toThrow(RecipientDeleted);
  expect(decrypted).toEqual([]);
});

test('a recipient is decrypted for its own record alone, and both IDs are logged', async () => {
  const { read, decrypted, logged } = createDecrypter(PAYOUT, RECIPIENT);
  await expect(read('p')).rejects.toThrow('not what this version writes');
  expect(decrypted).toEqual(['recipient/r']);
  expect(logged).toEqual([{ payout_id: 'p', recipient_id: 'r' }]);
});

test('the sandbox bank starts with the key pairs of recipients, and without the key file', () => {
  const servers = { MONGODB_URI: 'mongodb://localhost' };
  expect(readSandboxBankConfig({ ...servers, KEYS_DIR: 'keys' })).not.toHaveProperty('KEYS_FILE');
  expect(() => readSandboxBankConfig(servers)).toThrow('KEYS_DIR');
});

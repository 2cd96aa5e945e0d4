import { Refusal } from '../../../src/domain/errors';
import { derivePublicKey, signAs } from '../../../src/encryption/audit-keys';
import {
  type ChainsCheck,
  createSignatureCheck,
  verifyChains,
} from '../../../src/service/operators/audit/chains';
import { withAuditLine } from '../../../src/service/operators/audit/log';
import {
  type AuditLine,
  type ChainedLine,
  type ChainHead,
  hashLine,
} from '../../../src/store/audit';

const line = (account_id: string | null, n: number): AuditLine => ({
  _id: `2026-03-01T00:00:0${n}.000Z_0000000000000000`,
  at: `2026-03-01T00:00:0${n}.000Z`,
  account_id,
  livemode: null,
  actor: { via: 'command_line', system_user: 'mia', host: 'ops-1' },
  act: 'account.updated',
  target: account_id,
  before: { crypto: false },
  after: { crypto: true, fees: [`card_payout=${n}`] },
});

const KEYS = {
  ...{ api: 'key of the api', worker: 'of the worker', command_line: 'of the command line' },
};
const toPublic = (key: string, created_at = '2026-01-01T00:00:00.000Z') => ({
  ...{ public_key: derivePublicKey(key), created_at },
});
const PROCESSES = {
  ...{ api: [toPublic(KEYS.api)], worker: [toPublic(KEYS.worker)] },
  command_line: [toPublic(KEYS.command_line)],
};

const sign = (
  { signature: _, ...whole }: Omit<ChainedLine, 'hash'>,
  key = KEYS.command_line,
): ChainedLine => {
  const hash = hashLine(whole);
  return { ...whole, hash, signature: signAs(key, hash) };
};

/** Builds a chain as the store writes it. */
function chain(account_id: string | null, length: number): ChainedLine[] {
  const lines: ChainedLine[] = [];
  for (let seq = 1; seq <= length; seq += 1) {
    const whole = { ...line(account_id, seq), seq, prev: lines.at(-1)?.hash ?? null };
    lines.push(sign(whole));
  }
  return lines;
}

const findHead = (lines: ChainedLine[]): ChainHead[] => {
  const last = lines.at(-1);
  const _id = last?.account_id ?? 'installation';
  return last === undefined ? [] : [{ _id, seq: last.seq, hash: last.hash }];
};

const WHOLE = [...chain(null, 1), ...chain('acct_a', 4), ...chain('acct_b', 2)];
const HEADS = [chain(null, 1), chain('acct_a', 4), chain('acct_b', 2)].flatMap(findHead);

const KEY = 'opkey_of_ada';
const OPERATORS = [
  { name: 'ada', public_key: derivePublicKey('opkey_older'), revoked_at: null },
  { name: 'ada', public_key: derivePublicKey(KEY), revoked_at: '2026-02-28T23:50:02.000Z' },
  { name: 'ben', public_key: derivePublicKey('opkey_of_ben'), revoked_at: null },
];

const verify = async (
  lines: ChainedLine[],
  heads = HEADS,
  known: ChainsCheck['heads'] = [],
  signers = { operators: OPERATORS, processes: PROCESSES },
) =>
  verifyChains(
    {
      heads: async () => heads,
      head: async (name) => heads.find(({ _id }) => _id === name) ?? null,
      listChained: () => Object(lines),
    },
    await createSignatureCheck(async () => signers),
    known,
  );
const changed = (n: number, change: Partial<ChainedLine>) =>
  WHOLE.map((one, index) => (index === n ? { ...one, ...change } : one));
const without = (n: number) => WHOLE.filter((_, index) => index !== n);

test('whole chains have no fault, and the check lists their heads', async () => {
  expect(await verify(WHOLE)).toEqual({
    lines: 7,
    chains: 3,
    unchained: 0,
    broken: [],
    heads: HEADS.map(({ _id, ...head }) => ({ chain: _id, ...head })),
  });
});

const VIA = {
  api: { via: 'api', key_id: 'key_1' },
  dashboard: { via: 'dashboard', user_id: 'user_1', email: 'ana@x.example' },
  service: { via: 'service' },
  update: { via: 'workflow', operator: 'ada' },
  command: { via: 'command_line', system_user: 'mia', host: 'ops-1' },
  operator: { via: 'command_line', system_user: 'mia', host: 'ops-1', operator: 'Ada' },
} as const;

/** Finds faults of a chain of one line. */
async function findFaults(
  whole: Partial<ChainedLine>,
  sign?: (hash: string) => string | undefined,
) {
  const chained = { ...line('acct_a', 1), seq: 1, prev: null, ...whole };
  const hash = hashLine(chained);
  const signature = sign?.(hash);
  const lines = [{ ...chained, hash, ...(signature && { signature }) }];
  return (await verify(lines, findHead(lines))).broken.map(({ fault }) => fault);
}
const signBy = (key: string) => (hash: string) => signAs(key, hash);

test.each([
  ['of an operator is signed', 1, VIA.operator, signBy(KEY), true],
  ['of an operator is not signed', 1, VIA.operator, () => undefined, false],
  ['of an operator has no signature but a text', 1, VIA.operator, () => 'x', false],
  ['of an operator is signed by another', 1, VIA.operator, signBy('opkey_of_ben'), false],
  ['has the signature of another line', 1, VIA.operator, () => signAs(KEY, 'x'), false],
  ['ends soon after its key was revoked', 2, VIA.operator, signBy(KEY), true],
  ['begins after its key was revoked', 3, VIA.operator, signBy(KEY), false],
  ['is signed, but names no operator', 1, VIA.command, () => 'x', false],
] as const)('a line that %s is found where it is forged', async (_, n, actor, sign, isBelieved) => {
  const faults = await findFaults({ ...line('acct_a', n), actor }, sign);
  expect(faults).toEqual(isBelieved ? [] : ['not_signed']);
});

test('a line that the key of a new operator signs is not found, though it was listed before', async () => {
  const whole = { ...line('acct_a', 1), actor: VIA.operator, seq: 1, prev: null };
  const hash = hashLine(whole);
  const chained = { ...whole, hash, signature: signAs(KEY, hash) };
  const lists = [[], OPERATORS];
  const log = { heads: async () => [], head: async () => findHead([chained])[0] ?? null };
  const check = await verifyChains(
    { ...log, listChained: () => Object([chained]) },
    await createSignatureCheck(async () => ({ operators: lists.shift() ?? [], processes: {} })),
  );
  expect(check.broken).toEqual([]);
});

test.each([
  ['a merchant’s act', VIA.api, 'recipient.deleted', KEYS.api, true],
  ['a team member’s act', VIA.dashboard, 'api_key.created', KEYS.api, true],
  ['an answer to a dispute', VIA.dashboard, 'dispute.answered', KEYS.api, true],
  ['an acceptance of a dispute', VIA.dashboard, 'dispute.accepted', KEYS.api, true],
  ['what the service does', VIA.service, 'webhook.disabled', KEYS.worker, true],
  ['an update in Temporal', VIA.update, 'payout.act', KEYS.worker, true],
  ['an act by a command', VIA.operator, 'payout.act', KEYS.worker, true],
  ['an act that a command rebuilds', VIA.update, 'payout.act', KEYS.command_line, true],
  ['a command', VIA.command, 'wallet.set', KEYS.command_line, true],
  ['a command, signed by the API', VIA.command, 'wallet.set', KEYS.api, false],
  ['a command, signed by the worker', VIA.command, 'wallet.set', KEYS.worker, false],
  ['an operator, signed by the API', VIA.operator, 'wallet.set', KEYS.api, false],
  ['an operator, signed by a command', VIA.operator, 'wallet.set', KEYS.command_line, false],
  ['an act, signed by the API', VIA.operator, 'payout.act', KEYS.api, false],
  ['the service, signed by the API', VIA.service, 'webhook.disabled', KEYS.api, false],
  ['a team member, signed by the worker', VIA.dashboard, 'wallet.set', KEYS.worker, false],
  ['limits by a team member', VIA.dashboard, 'account.updated', KEYS.api, false],
  ['limits by the service', VIA.service, 'account.updated', KEYS.worker, false],
  ['an unfreeze without an operator', VIA.command, 'account.unfrozen', KEYS.command_line, false],
  ['an unfreeze by a team member', VIA.dashboard, 'account.unfrozen', KEYS.api, false],
  ['a key that no process has', VIA.api, 'wallet.set', 'another', false],
] as const)('of %s, a line is believed only from its process', async (...row) => {
  const [, actor, act, key, isBelieved] = row;
  const faults = await findFaults({ actor, act }, signBy(key));
  expect(faults).toEqual(isBelieved ? [] : ['not_signed']);
});

test('an earlier key of a process signs for a day after the next one', async () => {
  const { at } = line('acct_a', 2);
  const nextAt = new Date(Date.parse(at) - 24 * 60 * 60_000).toISOString();
  const command_line = [toPublic(KEYS.command_line), toPublic('the next key', nextAt)];
  const signers = { operators: OPERATORS, processes: { ...PROCESSES, command_line } };
  const lines = chain('acct_a', 4);
  const { broken, heads } = await verify(lines, findHead(lines), [], signers);
  expect(broken).toMatchObject([
    { seq: 3, fault: 'not_signed' },
    { seq: 4, fault: 'not_signed' },
  ]);
  expect(heads).toMatchObject([{ chain: 'acct_a', seq: 4 }]);
});

test.each([undefined, null, '2'])(
  'a line with the place %j is unchained, and no other has a fault',
  async (seq) => {
    const added = { ...line('acct_a', 1), seq, prev: null, hash: '' };
    const broken = [{ chain: 'acct_a', seq: 0, line_id: added._id, fault: 'unchained' }];
    const heads = [{}, {}, {}];
    const check = await verify([...WHOLE.slice(0, 1), Object(added), ...WHOLE.slice(1)]);
    expect(check).toMatchObject({ unchained: 1, broken, heads });
    const alone = await verify([...WHOLE, Object({ ...added, account_id: 'acct_c' })]);
    expect(alone).toMatchObject({ broken: [{ chain: 'acct_c', fault: 'unchained' }], heads });
  },
);

test('the order of the fields of a line is no part of its hash', () => {
  const { after, ...rest } = line('acct_a', 1);
  const other = { ...rest, seq: 1, prev: null, after: { fees: after?.['fees'], crypto: true } };
  expect(hashLine(other)).toBe(hashLine({ ...line('acct_a', 1), seq: 1, prev: null }));
});

/** Builds another second line of `acct_a`, with its hash. */
const forge = () => {
  const { hash: _, ...rest } = WHOLE[2] ?? chain('acct_a', 1)[0] ?? { ...line(null, 1), hash: '' };
  const whole = { ...rest, seq: 2, prev: WHOLE[1]?.hash ?? null, after: { crypto: false } };
  return sign(whole);
};

test.each([
  ['was changed', changed(2, { after: { crypto: false } }), 2, 'changed'],
  ['has another actor', changed(4, { actor: { via: 'workflow', operator: 'x' } }), 4, 'changed'],
  ['was changed with its hash', changed(2, forge()), 3, 'not_linked'],
  ['at the end was changed with its hash', changed(4, { ...forge(), seq: 4 }), 4, 'changed'],
  ['was taken out', without(2), 2, 'missing'],
  ['was taken from the end', without(4), 4, 'missing'],
] as const)('the first broken line is reported: one that %s', async (_, lines, seq, fault) => {
  const { broken } = await verify([...lines]);
  expect(broken).toEqual([expect.objectContaining({ chain: 'acct_a', seq, fault })]);
});

test('a chain that is removed with its head is missed only by heads that are stored elsewhere', async () => {
  const left = WHOLE.filter(({ account_id }) => account_id !== 'acct_a');
  const heads = HEADS.filter(({ _id }) => _id !== 'acct_a');
  expect((await verify(left, heads)).broken).toEqual([]);
  expect((await verify(left)).broken).toMatchObject([{ seq: 1, fault: 'missing' }]);
  const { heads: known } = await verify(WHOLE);
  expect((await verify(left, heads, known)).broken).toMatchObject([
    { chain: 'acct_a', seq: 1, line_id: null, fault: 'missing' },
  ]);
  const other = chain('acct_a', 5).map((one) => ({ ...one, act: 'account.created' as const }));
  const whole = other.map(({ hash: _, ...one }) => sign(one));
  const first = whole.slice(0, 1);
  const end = [...heads, ...findHead(first)];
  const [one] = known.filter(({ chain }) => chain === 'acct_a');
  const earlier = one === undefined ? [] : [{ ...one, seq: 1 }];
  expect((await verify([...left, ...first], end, earlier)).broken).toMatchObject([
    { chain: 'acct_a', seq: 1, fault: 'not_as_kept' },
  ]);
});

describe('an audit line', () => {
  const CHANGE = { act: 'refund.created', account_id: 'a', livemode: true, target: 'p' } as const;

  test.each<[string, () => Promise<object>, unknown[]]>([
    ['is done', async () => ({}), ['requested', 'done']],
    [
      'is refused',
      () => Promise.reject(new Refusal('account_frozen', '')),
      ['requested', 'account_frozen'],
    ],
    ['fails', () => Promise.reject(new Error('away')), ['requested', 'unknown']],
    ['never ends', () => new Promise(() => undefined), ['requested']],
  ])('an act that %s has lines with its outcomes', async (_, act, outcomes) => {
    const lines: unknown[] = [];
    const audit: Parameters<typeof withAuditLine>[0] = async ({ after }) =>
      void lines.push(after?.['outcome']);
    const result = withAuditLine(audit, CHANGE, act);
    // An act whose process ends in between never ends.
    await Promise.race([result.catch(() => undefined), new Promise(setImmediate)]);
    expect(lines).toEqual(outcomes);
  });

  test('an act does not begin when its first line cannot be written', async () => {
    const act = jest.fn(async () => ({}));
    const audit = () => Promise.reject(new Error('away'));
    await expect(withAuditLine(audit, CHANGE, act)).rejects.toThrow('away');
    expect(act).not.toHaveBeenCalled();
  });
});

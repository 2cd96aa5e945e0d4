import { Refusal } from '../../../src/domain/errors';
import { createConnectors } from '../../../src/routing';
import { createInShare, createShares, type WorkKind } from '../../../src/service/shares';
import { gate } from '../../support/gate';

const REFUSED = {
  code: 'temporarily_unavailable',
  message: expect.stringContaining('Nothing was done'),
};

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

type Calls = { livemode?: boolean; kind?: WorkKind; connector?: string };

function setUp(creates = 100) {
  const runInShare = createShares(creates, () => Date.now());
  const begun: string[] = [];
  const refused: string[] = [];
  const running: { account_id: string; release: () => void }[] = [];
  /** Starts calls of an account. @returns the accounts whose calls begin */
  const call = async (account_id: string, count = 1, calls: Calls = {}) => {
    const caller = { account_id, livemode: false, kind: 'create' as const, ...calls };
    for (let i = 0; i < count; i += 1) {
      const { opened, release } = gate();
      const work = () => {
        begun.push(account_id);
        running.push({ account_id, release });
        return opened;
      };
      runInShare(caller, work).catch(() => refused.push(account_id));
    }
    return await pass(0);
  };
  const pass = async (ms: number) => {
    await jest.advanceTimersByTimeAsync(ms);
    return begun.splice(0);
  };
  /** Ends running calls, those of one account where it is named. */
  const end = async (count: number, account?: string) => {
    for (let ended = 0; ended < count; ended += 1) {
      const at = running.findIndex(({ account_id }) => account_id === (account ?? account_id));
      running.splice(at, 1)[0]?.release();
    }
    return await pass(0);
  };
  return { runInShare, call, pass, end, refused };
}

test.each([
  { kind: 'create', alone: 80, nextToOthers: 6 },
  { kind: 'simulation', alone: 8, nextToOthers: 1 },
  { kind: 'delivery', alone: 8, nextToOthers: 1 },
  { kind: 'change', alone: 2, nextToOthers: 2 },
  { kind: 'read', alone: 15, nextToOthers: 15 },
  { kind: 'visit', alone: 2, nextToOthers: 2 },
  { kind: 'owner_visit', alone: 2, nextToOthers: 2 },
  { kind: 'owner_rescue', alone: 1, nextToOthers: 1 },
] as const)(
  'an account has $alone calls of kind $kind at once, next to others $nextToOthers',
  async ({ kind, alone, nextToOthers }) => {
    expect(await setUp().call('a', alone + 5, { kind })).toHaveLength(alone);
    const { call, pass } = setUp();
    await call('other', 1, { kind });
    const begun = await call('a', alone + 5, { kind });
    expect([...begun, ...(await pass(2_000))]).toHaveLength(nextToOthers);
  },
);

test('next to others, three calls begin at once, and more over the time that calls take', async () => {
  const { call, pass, end } = setUp(64);
  await call('other');
  expect(await call('a', 6)).toHaveLength(3);
  // Four at once, of two seconds each at first.
  expect([await pass(499), await pass(1)]).toEqual([[], ['a']]);
  // Then they take one second on average.
  expect(await end(3, 'a')).toEqual([]);
  expect([await pass(499), await pass(1)]).toEqual([[], ['a']]);
});

test('calls of one kind take nothing from those of another, and live nothing from the sandbox', async () => {
  const { call } = setUp();
  await call('a', 20, { kind: 'simulation' });
  expect(await call('a', 1, { kind: 'change' })).toEqual(['a']);
  expect(await call('a', 20, { kind: 'simulation', livemode: true })).toHaveLength(8);
});

test('a call that ends lets the one begin that has waited longest', async () => {
  const { call, end } = setUp();
  await call('a', 2, { kind: 'change' });
  expect(await call('a', 1, { kind: 'change' })).toEqual([]);
  expect(await end(1)).toEqual(['a']);
});

test('accounts that wait begin one after the other, however many calls each has', async () => {
  const { call, end } = setUp(1);
  expect(await call('a', 4)).toEqual(['a']);
  expect(await call('b', 2)).toEqual([]);
  const order = [await end(1), await end(1), await end(1), await end(1)].flat();
  expect(order).toEqual(['a', 'b', 'a', 'b']);
});

test('an account waits behind fifty of its own calls and for twenty seconds, at most', async () => {
  const { runInShare, call, pass, end, refused } = setUp();
  await call('a', 2 + 50, { kind: 'change' });
  const caller = { account_id: 'a', livemode: false, kind: 'change' } as const;
  const never = jest.fn();
  await expect(runInShare(caller, never)).rejects.toMatchObject(REFUSED);
  expect(never).not.toHaveBeenCalled();
  await pass(19_999);
  expect(refused).toEqual([]);
  await pass(1);
  expect(refused).toHaveLength(50);
  await call('a', 1, { kind: 'change' });
  expect(await end(2)).toEqual(['a']);
});

test('an account is no neighbor after ten quiet seconds', async () => {
  const { call, pass } = setUp();
  await call('other', 1, { kind: 'read' });
  await pass(7_000);
  expect(await call('a', 8)).toHaveLength(3);
  expect(await pass(2_999)).toHaveLength(3);
  await pass(1);
  expect(await call('a', 1)).toHaveLength(3);
});

test('a call that fails frees its place', async () => {
  const { runInShare } = setUp(1);
  const caller = { account_id: 'a', livemode: false, kind: 'create' } as const;
  const broken = runInShare(caller, () => Promise.reject(new Error('broken')));
  await expect(broken).rejects.toThrow('broken');
  expect(await runInShare(caller, async () => 'next')).toBe('next');
});

test('the last fifth of the creates is for accounts below a fair share', async () => {
  const { call, pass } = setUp();
  expect(await call('greedy', 130)).toHaveLength(80);
  for (const account of ['second', 'third']) {
    const begun = await call(account, 20);
    expect([...begun, ...(await pass(2_000))]).toHaveLength(6);
  }
});

test('a slow bank leaves places for other banks, also when many accounts wait for it', async () => {
  const { call } = setUp();
  let waiting = 0;
  for (let i = 0; i < 50; i += 1) {
    waiting += (await call(`a${i}`, 10, { connector: 'slow' })).length;
  }
  expect(waiting).toBe(80);
  expect(await call('b', 2, { connector: 'fast' })).toEqual(['b', 'b']);
});

test('a create takes a place of the connector that its valid fields name', async () => {
  const connectors = createConnectors('sandbox', 'evm=eth_ethereum,acme=visa');
  const none = Object({ readCached: async () => new Map() });
  const stores = { routingRules: none, connectorPauses: none };
  const runInShare = jest.fn((_caller: unknown, work: () => Promise<string>) => work());
  const deps = { runInShare: Object(runInShare), connectors, stores };
  const caller = { account_id: 'a', livemode: true };
  const ether = { asset: 'ETH', network: 'ethereum' };
  for (const fields of [ether, new Refusal('invalid_request', 'No.')]) {
    await createInShare(deps, { caller, fields }, async () => 'created');
  }
  expect(runInShare.mock.calls.map(([each]) => each)).toEqual([
    { ...caller, kind: 'create', connector: 'evm' },
    { ...caller, kind: 'create', connector: undefined },
  ]);
});

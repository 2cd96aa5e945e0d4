import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { inTransaction } from '../../src/base/mongo';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { approve } from '../../src/service/operators/approvals/carry-out';
import { decide } from '../../src/service/operators/approvals/decide';
import { operatorsAudit } from '../support/audit';
import { useFixture } from '../support/fixture';
import { openAccount } from '../support/service';
import { asOperator, useProvisioning } from './cli';

const service = useProvisioning();
type Commands = Awaited<ReturnType<typeof asOperator>>;
const BANK = { LIVE_CONNECTORS: 'acme=visa' };
const operators = useFixture(async () => ({
  mia: await asOperator(service, 'mia', 'operator', BANK),
  bo: await asOperator(service, 'bo', 'approver', BANK),
  ada: await asOperator(service, 'ada', 'approver'),
}));

let created = 0;
/** Operator who has credited nothing yet. */
const newOperator = (env: NodeJS.ProcessEnv = {}) => {
  created += 1;
  return asOperator(service, `operator ${created}`, 'operator', { ...BANK, ...env });
};

/** Merchant without funds, key or login that a command has made. */
const openMerchant = () => openAccount(service.stores, {});
const WHY = ['--reason', 'Ticket 42'];
const MUCH = 100_001;
const Required = z.strictObject({
  status: z.literal('approval_required'),
  approval_id: z.string().startsWith('appr_'),
});

function funding(account: string, amount = MUCH, currency = 'EUR', ...more: string[]) {
  const where = ['--env', 'live', '--balance-account', 'main', '--currency', currency];
  const bank = ['--connector', 'acme', '--bank-reference', randomUUID()];
  return ['balance', 'fund', account, ...where, '--amount', `${amount}`, ...bank, ...WHY, ...more];
}
function adjusting(account: string, amount: number, of = ['--currency', 'EUR']) {
  const where = ['--env', 'live', '--balance-account', 'main', ...of];
  return ['balance', 'adjust', account, ...where, '--amount', `${amount}`, ...WHY];
}
const request = async (args: string[], by: Commands = operators.mia) =>
  Required.parse(await by.json(...args)).approval_id;
const answer = (by: Commands, word: 'approve' | 'reject', id: string) =>
  by.json('approval', word, id, ...WHY);
const refuse = (by: Pick<Commands, 'refusal'>, word: 'approve' | 'reject', id: string) =>
  by.refusal('approval', word, id, ...WHY);
const available = async (account_id: string) =>
  (await service.stores.ledger.balances(account_id, true))[0]?.available ?? 0;

/** Requests of mia, made at once, for one funding of a new merchant under an operation id. */
async function openFunding(times = 1) {
  const { account_id } = await service.account();
  const wire = funding(account_id, MUCH, 'EUR', '--operation-id', `wire-${account_id}`);
  const [id = '', ...repeats] = await Promise.all(
    Array.from({ length: times }, () => request(wire)),
  );
  return { account_id, wire, id, repeats };
}

/** Approves as bo, with a clock that may be late. */
function approveAs(id: string, now = () => new Date()) {
  const operator = { operator_id: 'op_bo', name: 'bo', role: 'approver' } as const;
  const deps = { mongo: service.mongo, stores: service.stores, now };
  const acting = { ...deps, audit: operatorsAudit(service.stores) };
  const openActDeps = () => Promise.reject(new Error('not of a resource'));
  const by = { operator, reason: 'Why' };
  const routes = { liveConnectors: BANK.LIVE_CONNECTORS, sandboxConnectors: '' };
  return {
    decided: () => decide(acting, id, { ...by, to: 'approved' }),
    done: () =>
      approve({ ...acting, ...routes, database: service.db.databaseName, openActDeps }, id, by),
  };
}
const later = () => new Date(Date.now() + 25 * 3_600_000);

/** Posts a correction to a merchant's account against a bank, past the limits. */
async function postAdjusted(account_id: string, amount: number): Promise<string> {
  const resource_id = randomUUID();
  const owner = { account_id, livemode: true, currency: 'EUR', at: new Date().toISOString() };
  const lines = ENTRY_LINES.adjusted('main', amount, 'clearing:acme');
  const entry = { kind: 'adjusted', resource_id, ...owner, lines } as const;
  await inTransaction(service.mongo, (session) => service.stores.ledger.post(entry, session));
  return `adjusted:${resource_id}`;
}

describe('a live act above the limit', () => {
  test('waits until another operator approves it, and is posted once', async () => {
    const { mia, bo } = operators;
    const { account_id, wire, id, repeats } = await openFunding(3);
    expect(repeats).toEqual([id, id]);
    const other = wire.map((word) => (word === `${MUCH}` ? `${MUCH + 1}` : word));
    expect((await mia.refusal(...other)).code).toBe('operation_id_used');
    expect(await available(account_id)).toBe(0);
    const row = {
      ...{ approval_id: id, act: 'balance.fund', account_id, amount: MUCH, currency: 'EUR' },
      ...{ requested_by: 'mia', requester_verified: true, reason: 'Ticket 42', state: 'requested' },
    };
    const listed = async () => Object(await service.json('approval list')).data;
    expect(await listed()).toContainEqual(expect.objectContaining(row));
    const done = await answer(bo, 'approve', id);
    expect(done).toMatchObject({ approval_id: id, state: 'done', decided_by: 'bo' });
    expect(await answer(bo, 'approve', id)).toEqual(done);
    expect(await mia.json(...wire)).toMatchObject({ available: MUCH });
    expect(await available(account_id)).toBe(MUCH);
    const entries = service.db.collection('journal_entries');
    const book = `${account_id}:live:EUR`;
    expect(await entries.find({ book }).toArray()).toMatchObject([
      { kind: 'funded', note: { operator: 'mia', reason: 'Ticket 42', approved_by: 'bo' } },
    ]);
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    expect(line).toMatchObject({ after: { approved_by: 'bo', approval_id: id } });
    expect(JSON.stringify(await listed())).not.toContain(id);
    expect((await service.cli('ledger', 'verify', '--full')).exit).toBe(0);
    const inSandbox = wire.map((word) => (word === 'live' ? 'sandbox' : word));
    expect(await mia.json(...inSandbox, '--operation-id', randomUUID())).toMatchObject({
      available: 10_000_000 + MUCH,
    });
  });

  // The comparison itself is in test/domain/approval.test.ts.
  test('is above that of the worker, which the environment of a command lowers and never raises', async () => {
    const { account_id } = await openMerchant();
    const rich = await newOperator({ APPROVAL_LIMIT: '99999999999' });
    const isNeeded = async (amount: number) =>
      Required.safeParse(await rich.json(...funding(account_id, amount))).success;
    await service.stores.approvals.publishLimits({ limit: '5' });
    expect(await isNeeded(6)).toBe(true);
    await service.stores.approvals.publishLimits({});
    expect([await isNeeded(6), await isNeeded(MUCH)]).toEqual([false, true]);
    await service.db.collection('approval_limits').deleteMany({});
    const strict = await newOperator({ APPROVAL_LIMIT: 'DKK=5' });
    const said = await strict.json(...funding(account_id, 6, 'DKK'));
    expect(Required.safeParse(said).success).toBe(true);
  });

  test('may be a correction in both directions, of an asset always, and a reversal', async () => {
    const { bo } = operators;
    const { ledger } = service.stores;
    const { account_id } = await openMerchant();
    await (await newOperator()).json(...adjusting(account_id, 100_000));
    const id = await request(adjusting(account_id, -MUCH));
    // The second time as it was stored.
    for (const _repeat of [1, 2]) {
      expect((await refuse(bo, 'approve', id)).code).toBe('insufficient_balance');
    }
    const ether = adjusting(account_id, 1, ['--asset', 'ETH', '--network', 'ethereum']);
    await answer(bo, 'approve', await request(ether));
    const credited = { currency: 'ETH.ethereum', available: 1 };
    const rows = await ledger.balances(account_id, true);
    expect(rows).toContainEqual(expect.objectContaining(credited));
    const wrong = await postAdjusted(account_id, MUCH);
    const reversal = await request(['balance', 'reverse', wrong, ...WHY]);
    expect(await ledger.findEntry(`reversed:${wrong}`)).toBeNull();
    await answer(bo, 'approve', reversal);
    const note = { operator: 'mia', approved_by: 'bo' };
    expect(await ledger.findEntry(`reversed:${wrong}`)).toMatchObject({ note });
  });

  test('may clear entries without a statement line, by the sum of what came', async () => {
    const mia = await newOperator();
    const { account_id } = await openMerchant();
    const clear = async (amount: number) => {
      const came = await postAdjusted(account_id, amount);
      return ['statement', 'clear', came, await postAdjusted(account_id, -amount), ...WHY];
    };
    const few = await clear(100_000);
    expect((await service.refusal(...few)).code).toBe('operator_key_required');
    expect(await mia.json(...few)).toMatchObject({ data: [{}, {}] });
    const done = { act: 'statement.clear', state: 'done' };
    const id = await request(await clear(MUCH));
    expect(await answer(operators.bo, 'approve', id)).toMatchObject(done);
  });
});

/**
 * Each test has a currency of its own, since the installation has one sum of each. Two acts at once that
 * pass alone are in test/workflows/shared/live.test.ts.
 */
describe('over 24 hours, sums without a second operator', () => {
  const newAccount = async () => (await openMerchant()).account_id;
  /** Funds a merchant. @returns id of the approval that it needs */
  const fund = async (by: Commands, account: string, amount: number, currency: string) =>
    Required.safeParse(await by.json(...funding(account, amount, currency))).data?.approval_id;
  const needs = async (...args: Parameters<typeof fund>) => (await fund(...args)) !== undefined;
  const sums = () => service.db.collection<{ parts: { at: number }[] }>('approval_sums');

  test('are limited for one operator, for one merchant, and for all', async () => {
    const [one, other] = [await newOperator(), await newOperator()];
    const [shop, shop2, shop3] = [await newAccount(), await newAccount(), await newAccount()];
    expect(await needs(one, shop, 60_000, 'GBP')).toBe(false);
    expect(await needs(one, shop2, 40_001, 'GBP')).toBe(true);
    expect(await needs(other, shop, 40_001, 'GBP')).toBe(true);
    expect(await needs(one, shop2, 40_000, 'GBP')).toBe(false);
    expect(await needs(other, shop, 40_000, 'GBP')).toBe(false);
    expect(await needs(one, shop3, 1, 'GBP')).toBe(true);
    expect(await needs(other, shop, 1, 'GBP')).toBe(true);
    const limited = await newOperator({ APPROVAL_LIMIT_DAY: '150000' });
    expect(await needs(limited, shop3, 10_001, 'GBP')).toBe(true);
    expect(await needs(limited, shop3, 10_000, 'GBP')).toBe(false);
  });

  test('count an act until it is 24 hours old, and a repeat once', async () => {
    const [by, shop] = [await newOperator(), await newAccount()];
    const once = funding(shop, 70_000, 'CHF', '--operation-id', `wire-${shop}`);
    for (const _ of [1, 2]) expect(await by.json(...once)).toMatchObject({ available: 70_000 });
    expect(await needs(by, shop, 70_000, 'CHF')).toBe(true);
    /** Makes the counted acts as old, in ms. */
    const age = async (ms: number) => {
      const at = Math.floor((Date.now() - ms) / 300_000) * 300_000;
      await sums().updateMany({ _id: / CHF$/ as never }, { $set: { 'parts.$[].at': at } });
    };
    await age(24 * 3_600_000);
    expect(await needs(by, shop, 70_000, 'CHF')).toBe(true);
    await age(24 * 3_600_000 + 300_000);
    expect(await needs(by, shop, 100_000, 'CHF')).toBe(false);
    expect(await needs(by, shop, 1, 'CHF')).toBe(true);
  });

  test('count neither what a second operator has approved, nor what was refused', async () => {
    const [by, shop] = [await newOperator(), await newAccount()];
    const id = await fund(by, shop, 200_000, 'AUD');
    await answer(operators.bo, 'approve', id ?? '');
    expect(await needs(by, shop, 150_000, 'AUD')).toBe(false);
    expect(await needs(by, shop, 1, 'AUD')).toBe(true);
    const debit = adjusting(shop, -90_000, ['--currency', 'CAD']);
    expect((await by.refusal(...debit)).code).toBe('insufficient_balance');
    expect(await needs(by, shop, 150_000, 'CAD')).toBe(false);
  });
});

// Acts on resources, commands that are killed, and acts that are no longer possible are in
// test/workflows/shared/live.test.ts.
describe('a decision', () => {
  test('is refused for the requester under any spelling, for an operator, and without a key', async () => {
    const { mia, bo, ada } = operators;
    const { account_id } = await openMerchant();
    const id = await request(funding(account_id), bo);
    const again = await asOperator(service, ' BO', 'approver');
    const refusals = [
      [bo, 'same_operator'],
      [again, 'same_operator'],
      [mia, 'role_not_allowed'],
      [service, 'operator_key_required'],
    ] as const;
    for (const word of ['approve', 'reject'] as const) {
      for (const [by, code] of refusals) expect((await refuse(by, word, id)).code).toBe(code);
    }
    expect(await available(account_id)).toBe(0);
    await answer(ada, 'approve', id);
    expect(await available(account_id)).toBe(MUCH);
  });

  test('to reject moves no money for good, and the request may be made again', async () => {
    const { bo, ada } = operators;
    const { account_id, wire, id } = await openFunding();
    const rejected = await answer(bo, 'reject', id);
    expect(rejected).toMatchObject({ state: 'rejected', decided_by: 'bo' });
    expect(await answer(ada, 'reject', id)).toEqual(rejected);
    const message = expect.stringContaining('bo');
    expect(await refuse(ada, 'approve', id)).toEqual({ code: 'approval_decided', message });
    expect(await request(wire)).not.toBe(id);
    expect(await available(account_id)).toBe(0);
  });

  test('is refused after a day, also where it was approved and not carried out', async () => {
    const { account_id, wire, id } = await openFunding();
    const expired = { code: 'approval_expired' };
    await expect(approveAs(id, later).done()).rejects.toMatchObject(expired);
    expect(await refuse(operators.bo, 'approve', id)).toMatchObject(expired);
    const again = await request(wire);
    expect(again).not.toBe(id);
    await approveAs(again).decided();
    expect((await refuse(operators.ada, 'reject', again)).code).toBe('approval_decided');
    await expect(approveAs(again, later).done()).rejects.toMatchObject(expired);
    expect(await available(account_id)).toBe(0);
  });

  test('ends in one state when approvals and rejections run at once', async () => {
    const { bo, ada } = operators;
    for (let round = 0; round < 3; round += 1) {
      const { account_id, id } = await openFunding();
      const decide = (word: string) =>
        [bo, ada].map((by) => by.cli(`approval ${word} ${id}`, ...WHY));
      await Promise.all([...decide('approve'), ...decide('reject')]);
      const { state } = (await service.stores.approvals.get(id)) ?? {};
      const ends = { done: MUCH, rejected: 0 };
      expect(Object.entries(ends)).toContainEqual([state, await available(account_id)]);
    }
  });
});

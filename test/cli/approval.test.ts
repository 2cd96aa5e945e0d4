import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { inTransaction } from '../../src/base/mongo';
import { CONTRACT_VERSION } from '../../src/domain/capabilities';
import { getRuleId } from '../../src/domain/routing-rule';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { METHODS } from '../../src/routing';
import { fundBalance } from '../../src/service/money/balances/fund';
import { approve } from '../../src/service/operators/approvals/carry-out';
import { decide } from '../../src/service/operators/approvals/decide';
import { createOperator, revokeOperator, verifyOperator } from '../../src/service/operators/keys';
import { operatorsAudit } from '../support/audit';
import { camt, TEST_IBAN } from '../support/camt';
import { useFixture } from '../support/fixture';
import { asOperator, commandsIn, everythingStored, useProvisioning } from './cli';

const service = useProvisioning();
const BANK = { LIVE_CONNECTORS: 'acme=visa' };
const WHY = ['--reason', 'Ticket 42'];

const TYPED = ['--operator', 'mia', '--reason', 'Ticket 42'];
const MAIN = ['--balance-account', 'main', '--currency', 'EUR'];
const fund = (account_id: string, env: string, ...more: string[]) => [
  ...['balance', 'fund', account_id, '--env', env, ...MAIN, '--amount', '100'],
  ...(env === 'live' ? ['--connector', 'acme', '--bank-reference', account_id] : []),
  ...more,
];
const withKey = (OPERATOR_KEY: string) => commandsIn({ ...service.env, ...BANK, OPERATOR_KEY });

test('operator create shows a key once, which is listed without its secret, audited, and revoked once by id or name', async () => {
  const { deps, stores } = service;
  const create = ['operator', 'create', 'ana', '--role', 'approver'];
  const { key, ...operator } = Object(await service.json(...create));
  expect(key).toMatch(/^opkey_/);
  const operator_id: unknown = expect.stringMatching(/^op_/);
  expect(operator).toEqual({ operator_id, name: 'ana', role: 'approver' });
  const row = { ...operator, created_at: expect.any(String), revoked_at: null };
  expect(await service.json('operator', 'list')).toEqual({ data: [row] });
  expect(await everythingStored(service.db)).not.toContain(key.slice('opkey_'.length));
  const [line] = await stores.auditLog.list({ limit: 1, act: 'operator.created' });
  expect(line).toMatchObject({
    ...{ account_id: null, actor: { via: 'command_line' }, target: operator.operator_id },
    after: { name: 'ana', role: 'approver' },
  });
  const next = await createOperator(deps, { name: 'Ana', role: 'operator' });
  const revoked_at: unknown = expect.any(String);
  const id = operator.operator_id;
  expect(await revokeOperator(deps, id)).toMatchObject([{ name: 'ana' }]);
  expect(await verifyOperator(deps, next.key)).toMatchObject({ name: 'Ana' });
  const refused = { code: 'operator_key_revoked' };
  await expect(verifyOperator(deps, key)).rejects.toMatchObject(refused);
  const first = await service.json('operator', 'revoke', 'ANA');
  expect(first).toMatchObject({
    data: [
      { operator_id: id, revoked_at },
      { operator_id: next.operator_id, revoked_at },
    ],
  });
  expect(await service.json('operator', 'revoke', 'ana')).toEqual(first);
  const lines = await stores.auditLog.list({ limit: 10, act: 'operator.revoked' });
  expect(lines).toHaveLength(2);
});

describe('a command that moves money', () => {
  test.each([
    ['', 'operator_key_required'],
    ['opkey_unknown', 'operator_key_invalid'],
    ['sk_live_0', 'operator_key_invalid'],
  ])('is refused on live with the key %j, whatever name is typed', async (key, code) => {
    const { account_id } = await service.account();
    const where = { account_id, livemode: true, balance_account: 'main', currency: 'EUR' };
    const { operation_id } = await fundBalance(service.deps, { ...where, amount: 100 });
    const adjust = ['balance', 'adjust', account_id, '--env', 'live', ...MAIN, '--amount', '-1'];
    const reverse = ['balance', 'reverse', operation_id];
    for (const command of [fund(account_id, 'live'), adjust, reverse]) {
      expect((await withKey(key).refusal(...command, ...TYPED)).code).toBe(code);
    }
    expect((await withKey(key).cli(...fund(account_id, 'sandbox'))).exit).toBe(0);
  });

  test('is recorded on live under the name of its key, and needs a reason', async () => {
    const { account_id } = await service.account();
    const dora = await asOperator(service, 'dora', 'operator', BANK);
    const typed = [...TYPED, '--approved-by', 'ada'];
    const { operation_id } = Object(await dora.json(...fund(account_id, 'live', ...typed)));
    const entry = await service.stores.ledger.findEntry(operation_id);
    expect(entry?.note).toEqual({ operator: 'dora', reason: 'Ticket 42' });
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    expect(line).toMatchObject({ act: 'balance.funded', actor: { operator: 'dora' } });
    const silent = await dora.refusal(...fund(account_id, 'live'));
    expect(silent.message).toContain("'--reason <text>' not specified");
  });

  test('matches a statement line on live only with a key', async () => {
    const live = commandsIn({ ...service.env, ...BANK });
    const source = ['--connector', 'acme', '--env', 'live'];
    await live.json('bank-account', 'add', ...source, '--iban', TEST_IBAN, '--currency', 'EUR');
    const path = join(service.folder, 'live.xml');
    writeFileSync(path, camt([{ entries: [{ amount: 1_050, reference: 'ORDER-7' }] }]));
    const { id } = Object(await live.json('statement', 'import', path, ...source));
    const match = ['statement', 'match', `${id}:1`, '--difference-to', 'expense.bank_fees'];
    const unmatch = ['statement', 'unmatch', `${id}:1`];
    const flo = await asOperator(live, 'flo');
    for (const [command, status] of [
      [match, 'booked'],
      [unmatch, 'open'],
    ] as const) {
      expect((await live.refusal(...command, ...TYPED)).code).toBe('operator_key_required');
      expect(await flo.json(...command, ...TYPED)).toMatchObject({ status });
    }
    const [audited] = await service.stores.auditLog.list({ limit: 1, act: 'statement.unmatched' });
    expect(audited).toMatchObject({ after: { operator: 'flo', reason: 'Ticket 42' } });
  });
});

type Commands = Awaited<ReturnType<typeof asOperator>>;
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
  return {
    decided: () => decide(acting, id, { ...by, to: 'approved' }),
    done: () => approve({ ...acting, database: service.db.databaseName, openActDeps }, id, by),
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
      ...{ requested_by: 'mia', requester_verified: true, reason: 'Ticket 42' },
      state: 'requested',
    };
    const listed = async () => Object(await service.json('approval', 'list')).data;
    expect(await listed()).toEqual(expect.arrayContaining([expect.objectContaining(row)]));
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
    const much = wire.map((word) => (word === 'live' ? 'sandbox' : word));
    const inSandbox = [...much, '--operation-id', randomUUID()];
    expect(await mia.json(...inSandbox)).toMatchObject({ available: 10_000_000 + MUCH });
  });

  // The comparison itself is in test/domain/approval.test.ts.
  test.each([
    [{}, 'EUR', 100_000, false],
    [{ APPROVAL_LIMIT: 'DKK=5' }, 'DKK', 6, true],
  ])('with %j, %s %i needs a second operator: %p', async (limit, currency, amount, isNeeded) => {
    const { account_id } = await service.account();
    const limited = await newOperator(limit);
    const said = await limited.json(...funding(account_id, amount, currency));
    expect(Required.safeParse(said).success).toBe(isNeeded);
  });

  test('is above that of the worker, which no environment of a command raises', async () => {
    const { account_id } = await service.account();
    const rich = await newOperator({ APPROVAL_LIMIT: '99999999999' });
    const isNeeded = async (amount: number) =>
      Required.safeParse(await rich.json(...funding(account_id, amount))).success;
    await service.stores.approvals.publishLimits({ limit: '5' });
    expect(await isNeeded(6)).toBe(true);
    await service.stores.approvals.publishLimits({});
    expect([await isNeeded(6), await isNeeded(MUCH)]).toEqual([false, true]);
    await service.db.collection('approval_limits').deleteMany({});
  });

  test('may be a correction in both directions, of an asset always, and a reversal', async () => {
    const { bo } = operators;
    const { ledger } = service.stores;
    const { account_id } = await service.account();
    await (await newOperator()).json(...adjusting(account_id, 100_000));
    const id = await request(adjusting(account_id, -MUCH));
    expect((await refuse(bo, 'approve', id)).code).toBe('insufficient_balance');
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
    const { account_id } = await service.account();
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
  const newAccount = async () => (await service.account()).account_id;
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
    const { account_id } = await service.account();
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
    expect(await refuse(ada, 'approve', id)).toMatchObject({
      ...{ code: 'approval_decided', message: expect.stringContaining('bo') },
    });
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
      const words = ['approve', 'reject'];
      const all = words.flatMap((word) =>
        [bo, ada].map((by) => by.cli('approval', word, id, ...WHY)),
      );
      await Promise.all(all);
      const { state } = (await service.stores.approvals.get(id)) ?? {};
      const ends = { done: MUCH, rejected: 0 };
      expect(Object.entries(ends)).toContainEqual([state, await available(account_id)]);
    }
  });
});

const RAIL = 'sepa_credit_transfer';
/** The last connector that is named serves all without a rule. */
const ROUTES = {
  LIVE_CONNECTORS: `north=${RAIL}|visa,south=${RAIL}`,
  SANDBOX_CONNECTORS: `fresh=${RAIL}|visa|multibanco,trial=${RAIL}`,
};
const routed = useFixture(async () => commandsIn({ ...service.env, ...ROUTES }));
const mia = useFixture(() => asOperator(routed));
const FUNCTIONS = [
  ...['openSession', 'closeSession', 'voidPayment', 'reversePayment'],
  ...['sendRefund', 'lookUpRefund', 'sendPayout', 'lookUpPayout'],
];
type Lines = Record<string, unknown>[];

/** Reports what a connector serves, as its process does. */
function reportCapabilities(
  connector: string,
  { serves = METHODS, functions = FUNCTIONS, contract = 1, seen_at = new Date() } = {},
): Promise<unknown> {
  return service.stores.capabilities.report(
    connector,
    { serves, functions, contract },
    { seen_at, stopped: null },
  );
}

beforeAll(async () => {
  await Promise.all(['north', 'south', 'trial', 'sandbox'].map((name) => reportCapabilities(name)));
});

const setRoute = (method: string, connector: string, ...more: string[]) => [
  ...['routing', 'set', method, connector, '--env', 'sandbox'],
  ...more,
];
const removeRoute = (method: string, ...more: string[]) =>
  routed.json('routing', 'remove', method, '--env', 'sandbox', ...more);
const listLines = async (...query: string[]): Promise<Lines> =>
  Object(await routed.json('routing', 'show', ...query)).data;
const showSandbox = async () => (await routed.cli('routing', 'show', '--env', 'sandbox')).stdout;
type Act = 'routing.set' | 'routing.removed' | 'connector.paused' | 'connector.resumed';
const listAudited = (act: Act) => service.stores.auditLog.list({ act, limit: 100 });
const readRules = () => service.stores.routingRules.read();

// Which rule decides is in test/domain/routing.test.ts.
describe('routing', () => {
  test('shows that the variables and the sandbox bank decide every route without rules', async () => {
    const line = {
      ...{ currency: null, account_id: null, served: true, set_at: null, operator: null },
      ...{ seen_at: expect.any(String), silent: false, missing: [], reason: null },
      ...{ contract: 1, contract_known: true, paused_at: null },
      ...{ env: 'live', source: 'LIVE_CONNECTORS' },
    };
    expect(await listLines('--env', 'live')).toEqual([
      { ...line, method: 'visa', connector: 'north' },
      { ...line, method: RAIL, connector: 'south' },
    ]);
    const lines = (await listLines('--env', 'sandbox')).map(
      ({ source, method, connector }) => `${source} ${method} ${connector}`,
    );
    const named = ['multibanco fresh', `${RAIL} trial`, 'visa fresh'];
    const ofTests = lines.filter((line) => !/^sandbox_bank \w+ sandbox$/.test(line));
    expect(ofTests.toSorted()).toEqual(named.map((route) => `SANDBOX_CONNECTORS ${route}`));
  });

  test('sets a rule on live once, with a key and a reason, shows, audits and removes it', async () => {
    const onLive = (connector: string, ...more: string[]) => [
      ...['routing', 'set', RAIL, connector, '--env', 'live', ...more],
    ];
    const typed = await routed.refusal(...onLive('north', ...WHY, '--operator', 'mia'));
    expect(typed.code).toBe('operator_key_required');
    expect((await mia.refusal(...onLive('north'))).code).toBe('operator_required');
    // Neither the sandbox bank nor a test system is chosen on live.
    for (const connector of ['sandbox', 'trial']) {
      const refused = await mia.refusal(...onLive(connector, ...WHY));
      expect(refused.code).toBe('connector_unknown');
    }
    const scope = { env: 'live', method: RAIL, currency: null, account_id: null };
    const seen = { seen_at: expect.any(String), silent: false };
    const done = { ...scope, ...seen, before: null, after: 'north', changed: true };
    expect(await mia.json(...onLive('north', ...WHY))).toEqual(done);
    const repeated = { ...done, before: 'north', changed: false };
    expect(await mia.json(...onLive('north', ...WHY))).toEqual(repeated);
    expect(await mia.json(...onLive('south', ...WHY))).toMatchObject({ before: 'north' });
    const note = { operator: 'mia', reason: 'Ticket 42' };
    expect(await listLines('--env', 'live')).toMatchObject([
      { method: 'visa', source: 'LIVE_CONNECTORS' },
      { ...scope, ...note, connector: 'south', source: 'rule', set_at: expect.any(String) },
    ]);
    const removal = ['routing', 'remove', RAIL, '--env', 'live', ...WHY];
    expect(await mia.json(...removal)).toMatchObject({ ...scope, before: 'south', after: null });
    expect((await mia.refusal(...removal)).code).toBe('rule_not_found');
    const facts = { method: RAIL, currency: null, account: null };
    const about = { account_id: null, livemode: true, target: `live:${RAIL}:*:*` };
    const changed = (connector: string) => ({ ...facts, connector, ...note });
    expect(await listAudited('routing.set')).toMatchObject([
      { ...about, before: { connector: 'north' }, after: changed('south') },
      { ...about, before: { connector: null }, after: changed('north') },
    ]);
    expect(await listAudited('routing.removed')).toMatchObject([
      { ...about, before: { ...facts, connector: 'south' }, after: { connector: null, ...note } },
    ]);
  });

  test('shows of one account the lines that decide something for it', async () => {
    const [{ account_id }, other] = [await service.account(), await service.account()];
    const ofOther = ['--account', other.account_id, '--currency', 'EUR'];
    await routed.json(...setRoute(RAIL, 'trial', '--account', account_id));
    await routed.json(...setRoute(RAIL, 'sandbox', ...ofOther));
    const read = async (...query: string[]) =>
      (await listLines('--env', 'sandbox', ...query))
        .filter(({ method }) => method === RAIL)
        .map((line) => [line['connector'], line['currency'], line['account_id'], line['source']]);
    const base = ['trial', null, null, 'SANDBOX_CONNECTORS'];
    const own = ['trial', null, account_id, 'rule'];
    const both = ['sandbox', 'EUR', other.account_id, 'rule'];
    expect(await read('--account', account_id)).toEqual([own]);
    expect(await read('--account', other.account_id)).toEqual([base, both]);
    expect((await read()).toSorted()).toEqual([base, own, both].toSorted());
    const { stdout } = await routed.cli('routing', 'show', '--account', account_id);
    expect(stdout).toMatch(new RegExp(`sandbox +${RAIL} +any +${account_id} +trial +rule`));
    await removeRoute(RAIL, '--account', account_id);
    await removeRoute(RAIL, ...ofOther);
  });

  test.each([
    [setRoute('ideel', 'sandbox'), 'method_unknown', /no method, rail or asset ideel/],
    [
      setRoute(RAIL, 'north'),
      'method_not_served',
      /not name north for .* has sandbox, fresh, trial/,
    ],
    [setRoute('ideal', 'trial'), 'method_not_served', /does not name trial for ideal/],
    [setRoute(RAIL, 'acme'), 'connector_unknown', /no connector acme/],
    [setRoute(RAIL, 'a.b'), 'connector_name_invalid', /"a.b"/],
    [setRoute(RAIL, 'trial', '--currency', 'GBP'), 'currency_not_supported', /no GBP, only EUR/],
    [
      setRoute('eth_ethereum', 'sandbox', '--currency', 'EUR'),
      'currency_not_supported',
      /an asset/,
    ],
    [setRoute(RAIL, 'trial', '--account', 'acct_1'), 'account_not_found', /no account acct_1/],
    [['routing', 'show', '--account', 'acct_1'], 'account_not_found', /no account acct_1/],
  ])('refuses %j with a message, and stores nothing', async (args, code, message) => {
    const before = await readRules();
    const refusal = { code, message: expect.stringMatching(message) };
    expect(await routed.refusal(...args)).toEqual(refusal);
    expect(await readRules()).toEqual(before);
  });

  test('makes concurrent changes one after the other, each with its audit line', async () => {
    const { account_id } = await service.account();
    const own = ['--account', account_id];
    const wanted = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? 'trial' : 'sandbox'));
    await Promise.all(wanted.map((connector) => routed.json(...setRoute(RAIL, connector, ...own))));
    const target = getRuleId({ livemode: false, method: RAIL, currency: null, account_id });
    const lines = (await listAudited('routing.set')).filter((line) => line.target === target);
    // Each line continues where the last one ended.
    let connector: unknown = null;
    for (const { before, after } of lines.toReversed()) {
      expect(before?.['connector']).toBe(connector);
      expect(after?.['connector']).not.toBe(connector);
      connector = after?.['connector'];
    }
    expect((await readRules()).get(target)?.connector).toBe(connector);
  });

  test('shows the rule of a connector that no variable names as refused, and removes it', async () => {
    await routed.json(...setRoute('ideal', 'sandbox'));
    const before = await readRules();
    await routed.json(...setRoute(RAIL, 'trial'));
    const without = commandsIn(service.env);
    const { data } = Object(await without.json('routing', 'show', '--env', 'sandbox'));
    const refused = { method: RAIL, source: 'rule', connector: 'trial', served: false };
    expect(data).toContainEqual(expect.objectContaining(refused));
    const { stdout } = await without.cli('routing', 'show');
    expect(stdout).toContain('trial (refused: not in SANDBOX_CONNECTORS)');
    await without.json('routing', 'remove', RAIL, '--env', 'sandbox');
    expect(await readRules()).toEqual(before);
  });
});

describe('a connector', () => {
  /** Lines of the connector in the table. */
  const read = async () =>
    (await showSandbox()).split('\n').filter((line) => line.includes(' fresh'));
  const refuse = (method: string, ...more: string[]) =>
    routed.refusal(...setRoute(method, 'fresh', ...more));
  afterEach(async () => {
    const capabilities = service.db.collection<{ _id: string }>('connector_capabilities');
    await capabilities.deleteOne({ _id: 'fresh' });
    await routed.cli('routing', 'remove', RAIL, '--env', 'sandbox');
  });

  test('that has never reported is refused without --unseen, one that is silent is accepted with a warning', async () => {
    expect(await refuse(RAIL)).toEqual({
      ...{ code: 'connector_never_seen', message: expect.stringContaining('add --unseen') },
    });
    const seen = { seen_at: null, silent: true };
    expect(await routed.json(...setRoute(RAIL, 'fresh', '--unseen'))).toMatchObject(seen);
    expect((await read()).every((line) => line.endsWith('never'))).toBe(true);
    await reportCapabilities('fresh', { seen_at: new Date('2026-03-01T09:00:00Z') });
    const { stdout } = await routed.cli(...setRoute(RAIL, 'fresh'));
    expect(stdout).toContain('not since 2026-03-01 09:00:00 UTC');
    expect(stdout).toContain('Until its process runs, what is created waits.');
    expect((await read())[0]).toContain('not since 2026-03-01 09:00:00 UTC');
    await reportCapabilities('fresh');
    expect((await read()).every((line) => line.endsWith(' now'))).toBe(true);
  });

  test('without the method, a function that it needs, or this version of the contract is refused, and shown so', async () => {
    const functions = FUNCTIONS.filter((name) => name !== 'sendRefund');
    await reportCapabilities('fresh', { serves: ['visa', 'multibanco'], functions });
    expect(await refuse(RAIL, '--unseen')).toEqual({
      code: 'method_not_served',
      message: `fresh reports that it serves visa, multibanco, and not ${RAIL}.`,
    });
    expect(await refuse('visa', '--unseen')).toEqual({
      code: 'method_not_served',
      message: 'fresh reports that it has no sendRefund, which visa needs.',
    });
    // Nobody refunds a payment by it.
    expect(await routed.json(...setRoute('multibanco', 'fresh'))).toMatchObject({ after: 'fresh' });
    const line = (await read()).find((each) => each.includes(' visa '));
    expect(line).toContain('fresh (lacks sendRefund)');
    await removeRoute('multibanco');
    await reportCapabilities('fresh', { contract: 2 });
    expect(await refuse(RAIL, '--unseen')).toEqual({
      code: 'contract_unknown',
      message:
        'fresh reports version 2 of the contract, and this service has only version 1: ' +
        'run a connector of that version, or upgrade the service first.',
    });
    expect((await read())[0]).toContain('fresh (contract 2 is not known)');
  });
});

// What a pause does is in test/api/connectors.test.ts.
describe('connector pause', () => {
  const BY_MIA = ['--operator', 'mia', ...WHY];
  const pause = (name: string, ...by: string[]) => ['connector', 'pause', name, ...by];
  const resume = (name: string, ...by: string[]) => ['connector', 'resume', name, ...by];

  test('pauses once of several at once, `routing show` shows it, and a resume ends it', async () => {
    const facts = { connector: 'trial', env: 'sandbox' };
    const by = { operator: 'mia', reason: 'Ticket 42', paused_at: expect.any(String) };
    const paused = { ...facts, ...by, paused: true };
    const pauses = [1, 2, 3].map(() => routed.json(...pause('trial', ...BY_MIA)));
    const answers = (await Promise.all(pauses)).map((answer) => Object(answer));
    const again = { ...paused, changed: false };
    const sorted = answers.toSorted((a, b) => Number(b.changed) - Number(a.changed));
    expect(sorted).toEqual([{ ...paused, changed: true }, again, again]);
    const line = new RegExp(`${RAIL} .* trial \\(paused since \\d{4}-.* UTC\\)`);
    expect(await showSandbox()).toMatch(line);
    const { stdout } = await routed.cli(...resume('trial', ...BY_MIA));
    expect(stdout).toMatch(/Paused: +no\n\nIt takes effect within seconds\./);
    expect(await routed.json(...resume('trial'))).toEqual({
      ...{ ...facts, paused: false, changed: false },
      ...{ paused_at: null, operator: null, reason: null },
    });
    expect(await listAudited('connector.paused')).toMatchObject([{ target: 'sandbox:trial' }]);
    expect(await listAudited('connector.resumed')).toMatchObject([{ target: 'sandbox:trial' }]);
  });

  test('needs a key and a reason on live; a connector that no variable names can be resumed', async () => {
    const refuse = async (args: string[], { refusal } = routed) => (await refusal(...args)).code;
    expect(await refuse(pause('north', ...BY_MIA))).toBe('operator_key_required');
    expect(await refuse(pause('north'), mia)).toBe('operator_required');
    const paused = { env: 'live', operator: 'mia' };
    expect(await mia.json(...pause('north', ...WHY))).toMatchObject(paused);
    const without = commandsIn({ ...mia.env, LIVE_CONNECTORS: '' });
    expect(await refuse(resume('north', ...BY_MIA))).toBe('operator_key_required');
    const resumed = { paused: false, changed: true };
    expect(await without.json(...resume('north', ...WHY))).toMatchObject(resumed);
    expect(await refuse(resume('north', ...WHY), without)).toBe('connector_unknown');
    expect(await refuse(pause('no/name'))).toBe('connector_name_invalid');
  });
});

test('connector health lists each fault of a connector that does not run', async () => {
  const west = commandsIn({ ...service.env, LIVE_CONNECTORS: `west=${RAIL}` });
  const unreported = await west.cli('--json', 'connector', 'health', 'west');
  expect(JSON.parse(unreported.stderr).error.code).toBe('connector_unhealthy');
  expect(JSON.parse(unreported.stdout)).toMatchObject({
    ...{ connector: 'west', env: 'live', healthy: false },
    ...{ pause: null, report: null, callbacks_waiting: 0, keys: 0 },
    instructions: { pollers: 0, waiting: 0 },
    resources: { payout: { running: 0, attention: 0 } },
    faults: [
      'No process of it takes instructions: start it.',
      'It has no key, so that its callbacks change nothing on live.',
    ],
  });
  const seen_at = new Date(Date.now() - 60_000);
  const contract = CONTRACT_VERSION + 1;
  await reportCapabilities('trial', { contract, seen_at });
  await routed.json('connector', 'pause', 'trial', ...WHY);
  const { exit, stdout, stderr } = await routed.cli('connector', 'health', 'trial');
  expect([exit, stderr]).toEqual([1, expect.stringContaining('trial has 3 faults.')]);
  expect(stdout).toMatch(/Paused: +since .*\nPause: +Ticket 42\nProcesses: +0 take instructions\n/);
  expect(stdout).toContain(`Its processes have reported nothing since ${seen_at.toISOString()}.`);
  expect(stdout).toContain(`It has version ${contract} of the contract, unknown here.`);
  const unknown = await routed.refusal('connector', 'health', 'none');
  expect(unknown.code).toBe('connector_unknown');
});

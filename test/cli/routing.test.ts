import { getRuleId } from '../../src/domain/routing-rule';
import { METHODS } from '../../src/routing';
import { asOperator, commandsIn, useProvisioning } from './cli';

const service = useProvisioning();
const RAIL = 'sepa_credit_transfer';
const ROUTES = {
  LIVE_CONNECTORS: `north=${RAIL}|visa,south=${RAIL}`,
  SANDBOX_CONNECTORS: `trial=${RAIL}`,
};
const routed = () => commandsIn({ ...service.env, ...ROUTES });
const FOR_ALL = { env: 'live', method: RAIL, currency: null, account_id: null };
const WHY = ['--reason', 'Ticket 42'];
const FUNCTIONS = [
  ...['openSession', 'closeSession', 'voidPayment', 'reversePayment'],
  ...['sendRefund', 'lookUpRefund', 'sendPayout', 'lookUpPayout'],
];

/** Reports what a connector serves, as its process does. */
async function report(
  connector: string,
  { serves = METHODS, functions = FUNCTIONS, contract = 1, seen_at = new Date() } = {},
): Promise<void> {
  await service.stores.capabilities.report(connector, { serves, functions, contract }, seen_at);
}

beforeAll(async () => {
  await Promise.all(['north', 'south', 'trial', 'sandbox'].map((name) => report(name)));
});

function set(method: string, connector: string, ...more: string[]) {
  return ['routing', 'set', method, connector, '--env', 'sandbox', ...more];
}

function setOnLive(connector: string, ...more: string[]) {
  return ['routing', 'set', RAIL, connector, '--env', 'live', ...more];
}

async function listLines(...query: string[]) {
  const shown = await routed().json('routing', 'show', ...query);
  return Object(shown).data;
}

function listAudited(act: 'routing.set' | 'routing.removed') {
  return service.stores.auditLog.list({ act, limit: 100 });
}

test('without rules, the variables and the sandbox bank decide every route', async () => {
  const line = {
    ...{ currency: null, account_id: null, served: true, set_at: null, operator: null },
    ...{ seen_at: expect.any(String), silent: false, missing: [] },
    ...{ contract: 1, contract_known: true, paused_at: null },
  };
  const live = await listLines('--env', 'live');
  expect(live).toEqual(
    [
      { ...line, ...{ env: 'live', method: 'visa', connector: 'north', reason: null } },
      { ...line, ...{ env: 'live', method: RAIL, connector: 'south', reason: null } },
    ].map((each) => ({ ...each, source: 'LIVE_CONNECTORS' })),
  );
  const lines: { method: string; connector: string; source: string }[] = await listLines(
    '--env',
    'sandbox',
  );
  const byTest = lines.filter(({ source }) => source === 'SANDBOX_CONNECTORS');
  expect(byTest).toMatchObject([{ method: RAIL, connector: 'trial' }]);
  const rest = lines.filter(({ source }) => source === 'sandbox_bank');
  expect(rest).toHaveLength(lines.length - 1);
  expect(rest.every(({ connector }) => connector === 'sandbox')).toBe(true);
});

test('a rule on live needs a key and a reason, is set once, shown, audited and removed', async () => {
  const { refusal } = routed();
  expect(await refusal(...setOnLive('north', ...WHY, '--operator', 'mia'))).toMatchObject({
    code: 'operator_key_required',
  });
  const mia = await asOperator(routed());
  const silent = await mia.refusal(...setOnLive('north'));
  expect(silent).toMatchObject({ code: 'operator_required' });
  const seen = { seen_at: expect.any(String), silent: false };
  const done = { ...FOR_ALL, before: null, after: 'north', changed: true, ...seen };
  expect(await mia.json(...setOnLive('north', ...WHY))).toEqual(done);
  expect(await mia.json(...setOnLive('north', ...WHY))).toEqual({
    ...{ ...done, before: 'north', changed: false },
  });
  expect(await mia.json(...setOnLive('south', ...WHY))).toMatchObject({ before: 'north' });
  expect(await listLines('--env', 'live')).toMatchObject([
    { method: 'visa', source: 'LIVE_CONNECTORS' },
    {
      ...{ ...FOR_ALL, connector: 'south', source: 'rule', served: true },
      ...{ operator: 'mia', reason: 'Ticket 42', set_at: expect.any(String) },
    },
  ]);
  const target = { env: 'live', method: RAIL, before: 'south', after: null };
  expect(await mia.json('routing', 'remove', RAIL, '--env', 'live', ...WHY)).toMatchObject(target);
  const gone = await mia.refusal('routing', 'remove', RAIL, '--env', 'live', ...WHY);
  expect(gone).toMatchObject({ code: 'rule_not_found' });
  const facts = { method: RAIL, currency: null, account: null };
  const note = { operator: 'mia', reason: 'Ticket 42' };
  const about = { account_id: null, livemode: true, target: `live:${RAIL}:*:*` };
  expect(await listAudited('routing.set')).toMatchObject([
    { ...about, before: { connector: 'north' }, after: { ...facts, connector: 'south', ...note } },
    { ...about, before: { connector: null }, after: { ...facts, connector: 'north', ...note } },
  ]);
  expect(await listAudited('routing.removed')).toMatchObject([
    { ...about, before: { ...facts, connector: 'south' }, after: { connector: null, ...note } },
  ]);
});

test('show --account lists the lines that decide something for it', async () => {
  const { json } = routed();
  const { account_id } = await service.account();
  const other = await service.account();
  const ofAccount = ['--account', account_id];
  await json(...set(RAIL, 'sandbox', '--currency', 'EUR'));
  await json(...set(RAIL, 'trial', ...ofAccount));
  await json(...set(RAIL, 'sandbox', '--account', other.account_id, '--currency', 'EUR'));
  const read = async (...query: string[]) => {
    const lines: Record<string, string>[] = await listLines('--env', 'sandbox', ...query);
    return lines.flatMap(({ method, connector, currency, account_id: account, source }) =>
      method === RAIL ? [[connector, currency, account, source]] : [],
    );
  };
  const base = ['trial', null, null, 'SANDBOX_CONNECTORS'];
  const byCurrency = ['sandbox', 'EUR', null, 'rule'];
  const own = ['trial', null, account_id, 'rule'];
  const both = ['sandbox', 'EUR', other.account_id, 'rule'];
  expect(await read('--account', account_id)).toEqual([own]);
  expect(await read('--account', other.account_id)).toEqual([base, both]);
  const all = await read();
  expect(all.slice(0, 2)).toEqual([base, byCurrency]);
  expect(all.slice(2)).toEqual(expect.arrayContaining([own, both]));
  const text = (await routed().cli('routing', 'show', '--account', account_id)).stdout;
  expect(text).toMatch(new RegExp(`sandbox +${RAIL} +any +${account_id} +trial +rule`));
  await Promise.all([
    json('routing', 'remove', RAIL, '--env', 'sandbox', '--currency', 'EUR'),
    json('routing', 'remove', RAIL, '--env', 'sandbox', ...ofAccount),
  ]);
});

test.each([
  [set('ideel', 'sandbox'), 'method_unknown', /no method, rail or asset ideel/],
  [set(RAIL, 'north'), 'method_not_served', /does not name north for .* has sandbox, trial/],
  [set('visa', 'trial'), 'method_not_served', /SANDBOX_CONNECTORS does not name trial for visa/],
  [set(RAIL, 'acme'), 'connector_unknown', /no connector acme/],
  [set(RAIL, 'a.b'), 'connector_name_invalid', /"a.b"/],
  [set(RAIL, 'trial', '--currency', 'GBP'), 'currency_not_supported', /no GBP, only EUR/],
  [set('eth_ethereum', 'sandbox', '--currency', 'EUR'), 'currency_not_supported', /an asset/],
  [set(RAIL, 'trial', '--account', 'acct_1'), 'account_not_found', /no account acct_1/],
  [['routing', 'show', '--account', 'acct_1'], 'account_not_found', /no account acct_1/],
])('%j is refused with a message, and nothing is stored', async (args, code, message) => {
  const { stores } = service;
  const before = await stores.routingRules.read();
  const refused = await routed().refusal(...args);
  expect(refused).toEqual({ code, message: expect.stringMatching(message) });
  expect(await stores.routingRules.read()).toEqual(before);
});

test('on live, neither the sandbox bank nor a test system is chosen', async () => {
  const mia = await asOperator(routed(), 'ada');
  for (const connector of ['sandbox', 'trial']) {
    const refused = await mia.refusal(...setOnLive(connector, ...WHY));
    expect(refused).toMatchObject({ code: 'connector_unknown' });
  }
});

test('concurrent changes happen one after the other, each with its audit line', async () => {
  const { json } = routed();
  const { account_id } = await service.account();
  const wanted = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? 'trial' : 'sandbox'));
  const change = (connector: string) => json(...set(RAIL, connector, '--account', account_id));
  await Promise.all(wanted.map(change));
  const target = getRuleId({ livemode: false, method: RAIL, currency: null, account_id });
  const lines = (await listAudited('routing.set')).filter((line) => line.target === target);
  const steps = lines
    .toReversed()
    .map(({ before, after }) => [before?.['connector'], after?.['connector']]);
  // Each line continues where the last one ended.
  let connector: unknown = null;
  for (const [before, after] of steps) {
    expect(before).toBe(connector);
    expect(after).not.toBe(before);
    connector = after;
  }
  expect((await service.stores.routingRules.read()).get(target)?.connector).toBe(connector);
});

test('a rule of a connector that no variable names is shown as refused, and may be removed', async () => {
  const { json } = routed();
  await json(...set('ideal', 'sandbox'));
  const { routingRules } = service.stores;
  const before = await routingRules.read();
  await json(...set(RAIL, 'trial'));
  const without = commandsIn(service.env);
  const shown = Object(await without.json('routing', 'show', '--env', 'sandbox'));
  const [line] = shown.data.filter(
    ({ method, source }: Record<string, string>) => method === RAIL && source === 'rule',
  );
  expect(line).toMatchObject({ connector: 'trial', served: false });
  const { stdout } = await without.cli('routing', 'show');
  expect(stdout).toContain('trial (refused: not in SANDBOX_CONNECTORS)');
  await without.json('routing', 'remove', RAIL, '--env', 'sandbox');
  expect(await routingRules.read()).toEqual(before);
});

test('audit verify finds a planted or changed rule', async () => {
  expect((await routed().cli('audit', 'verify')).exit).toBe(0);
  const rules = service.db.collection<{ _id: string; connector: string }>('routing_rules');
  const [known] = (await service.stores.routingRules.read()).values();
  const planted = { livemode: true, method: 'visa', currency: null, account_id: null };
  await rules.insertOne({ _id: 'live:visa:*:*', ...planted, connector: 'thief' });
  await rules.updateOne({ _id: known?._id ?? '' }, { $set: { connector: 'thief' } });
  const { exit, stdout } = await routed().cli('--json', 'audit', 'verify');
  expect(exit).toBe(1);
  expect(JSON.parse(stdout).findings).toEqual(
    expect.arrayContaining([
      { code: 'routing_rule_unexplained', account_id: null, id: 'live:visa:*:*', fields: [] },
      { code: 'routing_rule_changed', account_id: null, id: known?._id, fields: ['connector'] },
    ]),
  );
});

describe('what a connector reports of itself', () => {
  const env = { ...ROUTES, SANDBOX_CONNECTORS: `fresh=${RAIL}|visa|multibanco` };
  const fresh = () => commandsIn({ ...service.env, ...env });
  const drop = (_id: string) =>
    service.db.collection<{ _id: string }>('connector_capabilities').deleteOne({ _id });
  const read = async () => {
    const { stdout } = await fresh().cli('routing', 'show', '--env', 'sandbox');
    return stdout.split('\n').filter((line) => line.includes(' fresh'));
  };
  afterEach(async () => {
    await drop('fresh');
    await fresh().cli('routing', 'remove', RAIL, '--env', 'sandbox');
  });

  test('a connector that has never reported is refused without --unseen', async () => {
    const { refusal, json } = fresh();
    expect(await refusal(...set(RAIL, 'fresh'))).toEqual({
      code: 'connector_never_seen',
      message: expect.stringContaining('add --unseen'),
    });
    const seen = { seen_at: null, silent: true };
    expect(await json(...set(RAIL, 'fresh', '--unseen'))).toMatchObject(seen);
    expect((await read()).every((line) => line.endsWith('never'))).toBe(true);
  });

  test('a silent connector is accepted with a warning', async () => {
    const seen_at = new Date('2026-03-01T09:00:00Z');
    await report('fresh', { seen_at });
    const { stdout } = await fresh().cli(...set(RAIL, 'fresh'));
    expect(stdout).toContain('not since 2026-03-01 09:00:00 UTC');
    expect(stdout).toContain('Until its process runs, what is created waits.');
    expect((await read())[0]).toContain('not since 2026-03-01 09:00:00 UTC');
    await report('fresh');
    expect((await read()).every((line) => line.endsWith(' now'))).toBe(true);
  });

  test('a connector without the method, or a function that it needs, is refused', async () => {
    const functions = FUNCTIONS.filter((name) => name !== 'sendRefund');
    await report('fresh', { serves: ['visa', 'multibanco'], functions });
    const { refusal, json } = fresh();
    const about = async (method: string) => await refusal(...set(method, 'fresh', '--unseen'));
    expect(await about(RAIL)).toEqual({
      code: 'method_not_served',
      message: `fresh reports that it serves visa, multibanco, and not ${RAIL}.`,
    });
    expect(await about('visa')).toEqual({
      code: 'method_not_served',
      message: 'fresh reports that it has no sendRefund, which visa needs.',
    });
    // Nobody refunds a payment by it.
    expect(await json(...set('multibanco', 'fresh'))).toMatchObject({ after: 'fresh' });
    const lines = await read();
    expect(lines.find((line) => line.includes(' visa '))).toContain('fresh (lacks sendRefund)');
    await json('routing', 'remove', 'multibanco', '--env', 'sandbox');
  });

  test('a connector of another version of the contract is refused, and shown so', async () => {
    await report('fresh', { contract: 2 });
    const { refusal, json } = fresh();
    expect(await refusal(...set(RAIL, 'fresh', '--unseen'))).toEqual({
      code: 'contract_unknown',
      message:
        'fresh reports version 2 of the contract, and this service has only version 1: ' +
        'run a connector of that version, or upgrade the service first.',
    });
    expect((await read())[0]).toContain('fresh (contract 2 is not known)');
    // One that does not report its version keeps the first.
    await service.db
      .collection<{ _id: string }>('connector_capabilities')
      .updateOne({ _id: 'fresh' }, { $unset: { contract: 1 } });
    expect(await json(...set(RAIL, 'fresh'))).toMatchObject({ after: 'fresh' });
  });
});

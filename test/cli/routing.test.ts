import { CONTRACT_VERSION, getRuleId } from '../../src/domain/banks/capabilities';
import { METHODS } from '../../src/routing';
import { useFixture } from '../support/fixture';
import { openAccount } from '../support/service';
import { asOperator, commandsIn, useProvisioning } from './cli';

const service = useProvisioning();
const RAIL = 'sepa_credit_transfer';
/** The last connector that is named serves all without a rule. */
const ROUTES = {
  LIVE_CONNECTORS: `north=${RAIL}|visa,south=${RAIL}`,
  SANDBOX_CONNECTORS: `fresh=${RAIL}|visa|multibanco,trial=${RAIL}`,
};
const routed = useFixture(async () => commandsIn({ ...service.env, ...ROUTES }));
const mia = useFixture(() => asOperator(routed));
const openMerchant = () => openAccount(service.stores, {});
const WHY = ['--reason', 'Ticket 42'];
const FUNCTIONS = [
  ...['openSession', 'closeSession', 'voidPayment', 'reversePayment'],
  ...['sendRefund', 'lookUpRefund', 'sendPayout', 'lookUpPayout'],
];
type Lines = Record<string, unknown>[];

/** Reports what a connector serves, as its process does. */
function report(connector: string, changes: object = {}, seen_at = new Date()): Promise<unknown> {
  const all = { serves: METHODS, functions: FUNCTIONS, contract: 1, set_aside: 0, ...changes };
  return service.stores.capabilities.report(connector, all, { seen_at, stopped: null });
}

beforeAll(async () => {
  await Promise.all(['north', 'south', 'trial', 'sandbox'].map((name) => report(name)));
});

const set = (method: string, connector: string, more = '') =>
  `routing set ${method} ${connector} --env sandbox ${more}`;
const remove = (method: string, more = '') =>
  routed.json(`routing remove ${method} --env sandbox ${more}`);
const listLines = async (query: string): Promise<Lines> =>
  Object(await routed.json(`routing show ${query}`)).data;
const showSandbox = async () => (await routed.cli('routing show --env sandbox')).stdout;
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
    expect(await listLines('--env live')).toEqual([
      { ...line, method: 'visa', connector: 'north' },
      { ...line, method: RAIL, connector: 'south' },
    ]);
    const lines = (await listLines('--env sandbox')).map(
      ({ source, method, connector }) => `${source} ${method} ${connector}`,
    );
    const named = ['multibanco fresh', `${RAIL} trial`, 'visa fresh'];
    const ofTests = lines.filter((line) => !/^sandbox_bank \w+ sandbox$/.test(line));
    expect(ofTests.toSorted()).toEqual(named.map((route) => `SANDBOX_CONNECTORS ${route}`));
  });

  test('sets a rule on live once, with a key and a reason, shows, audits and removes it', async () => {
    const onLive = (connector: string) => `routing set ${RAIL} ${connector} --env live`;
    const typed = await routed.refusal(onLive('north'), ...WHY, '--operator', 'mia');
    expect(typed.code).toBe('operator_key_required');
    expect((await mia.refusal(onLive('north'))).code).toBe('operator_required');
    // Neither the sandbox bank nor a test system is chosen on live.
    for (const connector of ['sandbox', 'trial']) {
      const refused = await mia.refusal(onLive(connector), ...WHY);
      expect(refused.code).toBe('connector_unknown');
    }
    const scope = { env: 'live', method: RAIL, currency: null, account_id: null };
    const seen = { seen_at: expect.any(String), silent: false };
    const done = { ...scope, ...seen, before: null, after: 'north', changed: true };
    expect(await mia.json(onLive('north'), ...WHY)).toEqual(done);
    const repeated = { ...done, before: 'north', changed: false };
    expect(await mia.json(onLive('north'), ...WHY)).toEqual(repeated);
    expect(await mia.json(onLive('south'), ...WHY)).toMatchObject({ before: 'north' });
    const note = { operator: 'mia', reason: 'Ticket 42' };
    expect(await listLines('--env live')).toMatchObject([
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
    const [{ account_id }, other] = [await openMerchant(), await openMerchant()];
    const own = `--account ${account_id}`;
    const ofOther = `--account ${other.account_id}`;
    await routed.json(set(RAIL, 'trial', own));
    await routed.json(set(RAIL, 'sandbox', `${ofOther} --currency EUR`));
    const read = async (query = '') =>
      (await listLines(`--env sandbox ${query}`))
        .filter(({ method }) => method === RAIL)
        .map((line) => [line['connector'], line['currency'], line['account_id'], line['source']]);
    const base = ['trial', null, null, 'SANDBOX_CONNECTORS'];
    const first = ['trial', null, account_id, 'rule'];
    const second = ['sandbox', 'EUR', other.account_id, 'rule'];
    expect(await read(own)).toEqual([first]);
    expect(await read(ofOther)).toEqual([base, second]);
    expect((await read()).toSorted()).toEqual([base, first, second].toSorted());
    const { stdout } = await routed.cli(`routing show ${own}`);
    expect(stdout).toMatch(new RegExp(`sandbox +${RAIL} +any +${account_id} +trial +rule`));
    await remove(RAIL, own);
    await remove(RAIL, `${ofOther} --currency EUR`);
  });

  test.each([
    [set('ideel', 'sandbox'), 'method_unknown', /no method, rail or asset ideel/],
    [set(RAIL, 'north'), 'method_not_served', /not name north for .* has sandbox, fresh, trial/],
    [set('ideal', 'trial'), 'method_not_served', /does not name trial for ideal/],
    [set(RAIL, 'acme'), 'connector_unknown', /no connector acme/],
    [set(RAIL, 'a.b'), 'connector_name_invalid', /"a.b"/],
    [set(RAIL, 'trial', '--currency GBP'), 'currency_not_supported', /no GBP, only EUR/],
    [set('eth_ethereum', 'sandbox', '--currency EUR'), 'currency_not_supported', /an asset/],
    [set(RAIL, 'trial', '--account acct_1'), 'account_not_found', /no account acct_1/],
    ['routing show --account acct_1', 'account_not_found', /no account acct_1/],
  ])('refuses %j with a message, and stores nothing', async (command, code, message) => {
    const before = await readRules();
    const refusal = { code, message: expect.stringMatching(message) };
    expect(await routed.refusal(command)).toEqual(refusal);
    expect(await readRules()).toEqual(before);
  });

  test('makes concurrent changes one after the other, each with its audit line', async () => {
    const { account_id } = await openMerchant();
    const wanted = Array(6).fill(['trial', 'sandbox']).flat();
    const own = `--account ${account_id}`;
    await Promise.all(wanted.map((connector) => routed.json(set(RAIL, connector, own))));
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
    await routed.json(set('ideal', 'sandbox'));
    const before = await readRules();
    await routed.json(set(RAIL, 'trial'));
    const without = commandsIn(service.env);
    const { data } = Object(await without.json('routing show --env sandbox'));
    const refused = { method: RAIL, source: 'rule', connector: 'trial', served: false };
    expect(data).toContainEqual(expect.objectContaining(refused));
    const { stdout } = await without.cli('routing show');
    expect(stdout).toContain('trial (refused: not in SANDBOX_CONNECTORS)');
    await without.json(`routing remove ${RAIL} --env sandbox`);
    expect(await readRules()).toEqual(before);
  });
});

describe('a connector', () => {
  /** Lines of the connector in the table. */
  const read = async () =>
    (await showSandbox()).split('\n').filter((line) => line.includes(' fresh'));
  const refuse = (method: string, more = '') => routed.refusal(set(method, 'fresh', more));
  afterEach(async () => {
    const capabilities = service.db.collection<{ _id: string }>('connector_capabilities');
    await capabilities.deleteOne({ _id: 'fresh' });
    await routed.cli(`routing remove ${RAIL} --env sandbox`);
  });

  test('that has never reported is refused without --unseen, one that is silent is accepted with a warning', async () => {
    expect(await refuse(RAIL)).toEqual({
      ...{ code: 'connector_never_seen', message: expect.stringContaining('add --unseen') },
    });
    const seen = { seen_at: null, silent: true };
    expect(await routed.json(set(RAIL, 'fresh', '--unseen'))).toMatchObject(seen);
    expect((await read()).every((line) => line.endsWith('never'))).toBe(true);
    await report('fresh', {}, new Date('2026-03-01T09:00:00Z'));
    const { stdout } = await routed.cli(set(RAIL, 'fresh'));
    expect(stdout).toContain('not since 2026-03-01 09:00:00 UTC');
    expect(stdout).toContain('Until its process runs, what is created waits.');
    expect((await read())[0]).toContain('not since 2026-03-01 09:00:00 UTC');
    await report('fresh');
    expect((await read()).every((line) => line.endsWith(' now'))).toBe(true);
  });

  test('without the method, a function that it needs, or this version of the contract is refused, and shown so', async () => {
    const functions = FUNCTIONS.filter((name) => name !== 'sendRefund');
    await report('fresh', { serves: ['visa', 'multibanco'], functions });
    expect(await refuse(RAIL, '--unseen')).toEqual({
      code: 'method_not_served',
      message: `fresh reports that it serves visa, multibanco, and not ${RAIL}.`,
    });
    expect(await refuse('visa', '--unseen')).toEqual({
      code: 'method_not_served',
      message: 'fresh reports that it has no sendRefund, which visa needs.',
    });
    // Nobody refunds a payment by it.
    expect(await routed.json(set('multibanco', 'fresh'))).toMatchObject({ after: 'fresh' });
    const line = (await read()).find((each) => each.includes(' visa '));
    expect(line).toContain('fresh (lacks sendRefund)');
    await remove('multibanco');
    await report('fresh', { contract: 2 });
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
  const pause = 'connector pause';
  const resume = 'connector resume';

  test('pauses once of several at once, `routing show` shows it, and a resume ends it', async () => {
    const facts = { connector: 'trial', env: 'sandbox' };
    const by = { operator: 'mia', reason: 'Ticket 42', paused_at: expect.any(String) };
    const paused = { ...facts, ...by, paused: true };
    const pauses = [1, 2, 3].map(() => routed.json(`${pause} trial`, ...BY_MIA));
    const answers = (await Promise.all(pauses)).map((answer) => Object(answer));
    const again = { ...paused, changed: false };
    const sorted = answers.toSorted((a, b) => Number(b.changed) - Number(a.changed));
    expect(sorted).toEqual([{ ...paused, changed: true }, again, again]);
    const line = new RegExp(`${RAIL} .* trial \\(paused since \\d{4}-.* UTC\\)`);
    expect(await showSandbox()).toMatch(line);
    const { stdout } = await routed.cli(`${resume} trial`, ...BY_MIA);
    expect(stdout).toMatch(/Paused: +no\n\nIt takes effect within seconds\./);
    expect(await routed.json(`${resume} trial`)).toEqual({
      ...{ ...facts, paused: false, changed: false },
      ...{ paused_at: null, operator: null, reason: null },
    });
    expect(await listAudited('connector.paused')).toMatchObject([{ target: 'sandbox:trial' }]);
    expect(await listAudited('connector.resumed')).toMatchObject([{ target: 'sandbox:trial' }]);
  });

  test('needs a key and a reason on live; a connector that no variable names can be resumed', async () => {
    const refuse = async ({ refusal }: typeof routed, command: string, ...why: string[]) =>
      (await refusal(command, ...why)).code;
    expect(await refuse(routed, `${pause} north`, ...BY_MIA)).toBe('operator_key_required');
    expect(await refuse(mia, `${pause} north`)).toBe('operator_required');
    const paused = { env: 'live', operator: 'mia' };
    expect(await mia.json(`${pause} north`, ...WHY)).toMatchObject(paused);
    const without = commandsIn({ ...mia.env, LIVE_CONNECTORS: '' });
    expect(await refuse(routed, `${resume} north`, ...BY_MIA)).toBe('operator_key_required');
    const resumed = { paused: false, changed: true };
    expect(await without.json(`${resume} north`, ...WHY)).toMatchObject(resumed);
    expect(await refuse(without, `${resume} north`, ...WHY)).toBe('connector_unknown');
    expect(await refuse(routed, `${pause} no/name`)).toBe('connector_name_invalid');
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
  await report('trial', { contract, set_aside: 2 }, seen_at);
  await routed.json('connector', 'pause', 'trial', ...WHY);
  const { exit, stdout, stderr } = await routed.cli('connector', 'health', 'trial');
  expect([exit, stderr]).toEqual([1, expect.stringContaining('trial has 4 faults.')]);
  expect(stdout).toMatch(/Paused: +since .*\nPause: +Ticket 42\nProcesses: +0 take instructions\n/);
  expect(stdout).toContain(`Its processes have reported nothing since ${seen_at.toISOString()}.`);
  expect(stdout).toContain(`It has version ${contract} of the contract, unknown here.`);
  expect(stdout).toContain('2 reports of its bank are set aside');
  const unknown = await routed.refusal('connector', 'health', 'none');
  expect(unknown.code).toBe('connector_unknown');
});

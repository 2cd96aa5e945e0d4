import { CONTRACT_VERSION } from '../../src/domain/capabilities';
import { asOperator, CliError, commandsIn, useProvisioning } from './cli';

const service = useProvisioning();
const RAIL = 'sepa_credit_transfer';
const ROUTES = { LIVE_CONNECTORS: `north=${RAIL}`, SANDBOX_CONNECTORS: `trial=${RAIL}` };
const routed = () => commandsIn({ ...service.env, ...ROUTES });
const WHY = ['--reason', 'Ticket 42'];
const BY_MIA = ['--operator', 'mia', ...WHY];

async function listAudited() {
  const { auditLog } = service.stores;
  const acts = ['connector.paused', 'connector.resumed'] as const;
  const lines = await Promise.all(acts.map((act) => auditLog.list({ act, limit: 100 })));
  return lines.flat().map(({ act, target, livemode }) => [act, target, livemode]);
}

async function readHealth(name: string) {
  const { exit, stdout, stderr } = await routed().cli('--json', 'connector', 'health', name);
  const code = exit === 0 ? null : CliError.parse(JSON.parse(stderr)).error.code;
  return { code, ...Object(JSON.parse(stdout)) };
}

test('a connector is paused and resumed once, and routing shows the pause', async () => {
  const { json, cli } = routed();
  const paused = {
    ...{ connector: 'trial', env: 'sandbox', paused: true, operator: 'mia', reason: 'Ticket 42' },
    paused_at: expect.any(String),
  };
  expect(await json('connector', 'pause', 'trial', ...BY_MIA)).toEqual({
    ...paused,
    changed: true,
  });
  const again = await json('connector', 'pause', 'trial', '--operator', 'bo');
  expect(again).toEqual({ ...paused, changed: false });
  expect((await cli('audit', 'verify')).exit).toBe(0);
  const shown = (await cli('routing', 'show', '--env', 'sandbox')).stdout;
  expect(shown).toMatch(new RegExp(`${RAIL} .* trial \\(paused since \\d{4}-.* UTC\\)`));
  const { stdout } = await cli('connector', 'resume', 'trial', ...BY_MIA);
  expect(stdout).toMatch(/Paused: +no\n\nIt takes effect within seconds\./);
  expect(await json('connector', 'resume', 'trial')).toEqual({
    ...{ connector: 'trial', env: 'sandbox', paused: false, changed: false },
    ...{ paused_at: null, operator: null, reason: null },
  });
  expect(await listAudited()).toEqual([
    ['connector.paused', 'sandbox:trial', false],
    ['connector.resumed', 'sandbox:trial', false],
  ]);
  expect((await cli('audit', 'verify')).exit).toBe(0);
});

test('of several pauses at once, one changes something', async () => {
  const { json } = routed();
  const answers = await Promise.all(
    [1, 2, 3, 4].map(() => json('connector', 'pause', 'sandbox', ...BY_MIA)),
  );
  expect(answers.filter((answer) => Object(answer).changed)).toHaveLength(1);
  const lines = (await listAudited()).filter(([, target]) => target === 'sandbox:sandbox');
  expect(lines).toEqual([['connector.paused', 'sandbox:sandbox', false]]);
  await json('connector', 'resume', 'sandbox');
});

test('a pause on live needs a key and a reason; a connector that no variable names can be resumed', async () => {
  const { refusal } = routed();
  const pause = ['connector', 'pause', 'north'];
  expect((await refusal(...pause, ...BY_MIA)).code).toBe('operator_key_required');
  const mia = await asOperator(routed());
  expect((await mia.refusal(...pause)).code).toBe('operator_required');
  expect(await mia.json(...pause, ...WHY)).toMatchObject({ env: 'live', operator: 'mia' });
  const without = commandsIn({ ...mia.env, LIVE_CONNECTORS: '' });
  const resume = ['connector', 'resume', 'north'];
  expect((await refusal(...resume, ...BY_MIA)).code).toBe('operator_key_required');
  expect(await without.json(...resume, ...WHY)).toMatchObject({ paused: false, changed: true });
  expect(await without.refusal(...resume, ...WHY)).toEqual({
    code: 'connector_unknown',
    message:
      'There is no connector north: neither LIVE_CONNECTORS nor SANDBOX_CONNECTORS names it.',
  });
  expect((await refusal('connector', 'pause', 'no/name')).code).toBe('connector_name_invalid');
});

test('audit verify finds a planted pause', async () => {
  const pauses = service.db.collection<{ _id: string }>('connector_pauses');
  const planted = { connector: 'planted', livemode: true, paused_at: new Date().toISOString() };
  await pauses.insertOne({ _id: 'live:planted', ...planted, ...{ operator: null, reason: null } });
  const { exit, stdout } = await routed().cli('--json', 'audit', 'verify');
  await pauses.deleteOne({ _id: 'live:planted' });
  expect(exit).toBe(1);
  expect(JSON.parse(stdout).findings).toEqual([
    { code: 'connector_pause_unexplained', account_id: null, id: 'live:planted', fields: [] },
  ]);
});

test('health lists each fault of a connector that does not run', async () => {
  expect(await readHealth('north')).toMatchObject({
    ...{ code: 'connector_unhealthy', connector: 'north', env: 'live', healthy: false },
    ...{ pause: null, report: null, callbacks_waiting: 0, keys: 0 },
    instructions: { pollers: 0, waiting: 0 },
    resources: { payout: { running: 0, attention: 0 } },
    faults: [
      'No process of it takes instructions: start it.',
      'It has no key, so that its callbacks change nothing on live.',
    ],
  });
  const { capabilities } = service.stores;
  const seen_at = new Date(Date.now() - 60_000);
  const contract = CONTRACT_VERSION + 1;
  await capabilities.report('trial', { serves: [RAIL], functions: [], contract }, seen_at);
  await routed().json('connector', 'pause', 'trial', ...BY_MIA);
  const { cli } = routed();
  const { exit, stdout, stderr } = await cli('connector', 'health', 'trial');
  await routed().json('connector', 'resume', 'trial');
  expect([exit, stderr]).toEqual([1, expect.stringContaining('trial has 3 faults.')]);
  expect(stdout).toMatch(/Paused: +since .*\nPause: +Ticket 42\nProcesses: +0 take instructions\n/);
  expect(stdout).toContain(`Its processes have reported nothing since ${seen_at.toISOString()}.`);
  expect(stdout).toContain(`It has version ${contract} of the contract, unknown here.`);
  expect((await routed().refusal('connector', 'health', 'none')).code).toBe('connector_unknown');
});

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { ServiceError } from '../../src/domain/errors';
import { actOnMany, findMany } from '../../src/service/operators/act-many';
import { operatorsAudit } from '../support/audit';
import { eventually } from '../support/http';
import { asOperator, CliError, commandsIn, run } from './cli';
import { useResourceSetting } from './resource-setting';

const prefix = `workers-${randomUUID().slice(0, 8)}`;
// Of its own: these commands need the queue prefix of the workers, and count all of a connector.
const setting = useResourceSetting({ live: { connectors: '', prefix } });

// First, while the connector has no other payout.
test('connector health of a running connector counts its payouts, and is healthy also while paused', async () => {
  const { connector } = setting.service;
  const routes = { SANDBOX_CONNECTORS: `${connector}=sepa_credit_transfer` };
  const { cli, json } = commandsIn({ ...setting.env, ...routes });
  const health = ['connector', 'health', connector];
  // One by SEPA Instant would need an operator after a minute.
  const recipient_id = setting.shop.recipients.card_payout;
  await setting.payout({ amount: 66_623, method: 'card_payout', recipient_id });
  const running = { running: 1, attention: 0 };
  const seen = await eventually('a process and a payout', async () => {
    const { exit, stdout } = await cli('--json', ...health);
    const answer = JSON.parse(stdout);
    const { instructions, resources } = answer;
    const isQuiet = instructions.waiting === 0 && resources.payout.running === 1;
    return exit === 0 && isQuiet && answer;
  });
  expect(seen).toMatchObject({
    ...{ connector, env: 'sandbox', healthy: true, faults: [], callbacks_waiting: 0 },
    instructions: { pollers: expect.any(Number), waiting: 0 },
    resources: { payout: running, refund: { running: 0, attention: 0 } },
  });
  const { stdout } = await cli(...health);
  expect(stdout).toContain('take instructions\nInstructions:');
  expect(stdout).toMatch(/Running payouts: +1\n/);
  expect(stdout).toContain('No fault is known.');
  await json('connector', 'pause', connector, '--reason', 'Ticket 42');
  expect(await json(...health)).toMatchObject({ healthy: true, pause: { reason: 'Ticket 42' } });
  await json('connector', 'resume', connector);
});

const BY = ['--operator', 'mia', '--reason', 'Ticket 42'];
/** Amount that the sandbox bank sends, and says no more of. */
const SILENT = 66_623;

const Listed = z.looseObject({
  found: z.number(),
  data: z.array(z.looseObject({ id: z.string() })),
});

type Kind = 'payout' | 'refund';
const many = (act: string, query: string, ...more: string[]) =>
  buildAct('payout', act, query, ...more);
const buildAct = (kind: Kind, act: string, query: string, ...more: string[]) => [
  ...[kind, 'act', act, '--query', query],
  ...more,
];
const payout = (id: string) => setting.service.stores.payouts.get(id);

/** Waits until the list of workflows has them all in a state. @returns query that finds them */
async function list(kind: Kind, ids: readonly string[], status: string): Promise<string> {
  const names = ids.map((id) => `'${setting.handle(kind, id).workflowId}'`);
  const query = `WorkflowId IN (${names.join(', ')})`;
  await eventually('the list of workflows', async () => {
    const inState = `${query} AND ServiceStatus = '${status}'`;
    const { found } = Listed.parse(
      await setting.json(...buildAct(kind, 'snooze', inState, '--plan')),
    );
    return found === ids.length;
  });
  return query;
}

async function openPayouts(count: number) {
  const open = () => setting.payout({ amount: SILENT });
  const ids = (await Promise.all(Array.from({ length: count }, open))).sort();
  return { ids, query: await list('payout', ids, 'sent') };
}

/** The last one has settled. */
async function openRefunds(count: number) {
  const refunds = await Promise.all(Array.from({ length: count }, () => setting.refund()));
  const ids = refunds.map(({ id }) => id);
  const ended = ids.pop() ?? '';
  await setting.simulate('refund', ended, { event: 'settled' });
  const queries = [
    await list('refund', ids, 'processing'),
    await list('refund', [ended], 'settled'),
  ];
  return { ids, ended, query: queries.join(' OR ') };
}

describe('act --query', () => {
  test('--plan lists what a query finds, with sums, and changes nothing', async () => {
    const { ids, ended, query } = await openRefunds(3);
    const row = (id: string) => ({
      ...{ id, account_id: setting.shop.account_id, env: 'sandbox', amount: 300, currency: 'EUR' },
      ...{ attention: null, status: 'processing', refused: null },
    });
    const final = {
      ...row(ended),
      status: 'settled',
      refused: {
        code: 'wrong_state',
        message: 'The refund is settled; a final state is never left.',
      },
    };
    const plan = buildAct('refund', 'mark_failed', query, '--plan');
    expect(await setting.json(...plan)).toEqual({
      ...{ query, act: 'mark_failed', applied: false, found: 3 },
      totals: [{ env: 'sandbox', currency: 'EUR', count: 2, amount: 600 }],
      data: [...ids.map(row), final].sort((a, b) => (a.id < b.id ? -1 : 1)),
    });
    const { exit, stdout } = await setting.cli(...plan);
    expect(exit).toBe(0);
    expect(stdout).toContain(
      'Results: 3. Would be sent: 2, 2 sandbox of €6.00.\nNothing was done.',
    );
    for (const id of ids) {
      const { status, audit } = (await setting.service.stores.refunds.get(id)) ?? {};
      expect([status, audit]).toEqual(['processing', []]);
    }
  });

  test('--apply continues after one is refused, and names it', async () => {
    const { ids, ended, query } = await openRefunds(3);
    const args = buildAct('refund', 'snooze', query, '--apply', '--hours', '2', ...BY);
    const { exit, stdout, stderr } = await setting.cli('--json', ...args);
    const { data, ...counts } = Listed.parse(JSON.parse(stdout));
    expect(counts).toEqual({
      ...{ query, act: 'snooze', applied: true, found: 3, done: 2, refused: 1 },
      ...{ approval_required: 0, unknown: 0, failed: 0, not_begun: 0 },
    });
    expect(data).toHaveLength(3);
    expect(data).toContainEqual({
      ...{ id: ended, result: 'refused', error: expect.objectContaining({ code: 'wrong_state' }) },
    });
    for (const id of ids) {
      const version = expect.any(Number);
      const done = { id, result: 'done', status: 'processing', version, attention: null };
      expect(data).toContainEqual(done);
      const { audit } = (await setting.service.stores.refunds.get(id)) ?? {};
      expect(audit).toMatchObject([{ who: 'mia', what: 'snooze', why: 'Ticket 42' }]);
    }
    expect(exit).toBe(1);
    expect(CliError.parse(JSON.parse(stderr)).error).toEqual({
      code: 'not_all_done',
      message: expect.stringContaining('1 of 3'),
    });
    const open = `(${query}) AND ServiceStatus = 'processing'`;
    const again = buildAct('refund', 'snooze', open, '--apply', '--hours', '2', ...BY);
    expect(await setting.cli(...again)).toMatchObject({ exit: 0, stdout: 'snooze: done: 2.\n' });
    const inWords = await setting.cli(...args);
    for (const id of ids) expect(inWords.stderr).toContain(`${id} is processing`);
    expect(inWords.stdout).toMatch(new RegExp(`^ID .*\\n${ended} +refused +The refund is settled`));
    expect(inWords.stdout).toContain('snooze: done: 2, refused: 1.');
  });

  test('--apply acts on each that the query finds once', async () => {
    const { ids, query } = await openPayouts(4);
    const apply = many('mark_completed', query, '--apply', '--expect', '4', ...BY);
    expect(await setting.json(...apply)).toMatchObject({ found: 4, done: 4, failed: 0 });
    for (const id of ids) {
      const { status, audit } = (await payout(id)) ?? {};
      expect(status).toBe('completed');
      expect(audit).toMatchObject([{ who: 'mia', what: 'mark_completed', why: 'Ticket 42' }]);
    }
  });

  test('--apply changes nothing if the query finds another number than --expect, or too many', async () => {
    const { ids, query } = await openPayouts(2);
    const apply = many('mark_failed', query, '--apply', '--expect', '3', ...BY);
    expect(await setting.refusal(...apply)).toEqual({
      code: 'plan_changed',
      message: expect.stringContaining('finds 2 now, not 3, so nothing was done'),
    });
    const find = (max: number) => findMany(setting.deps, 'payout', 'mark_failed', query, max);
    await expect(find(1)).rejects.toMatchObject({ code: 'too_many' });
    expect((await find(2)).map(({ id }) => id)).toEqual(ids);
    for (const id of ids) expect(await payout(id)).toMatchObject({ status: 'sent', audit: [] });
  });

  test('--apply on live needs an operator key, and never takes both environments at once', async () => {
    const { ids, query } = await openPayouts(2);
    const apply = many('mark_failed', query, '--apply', ...BY);
    const payouts = setting.service.mongo
      .db(setting.service.database)
      .collection<{ _id: string }>('payouts');
    const setLive = (_id = '') => payouts.updateOne({ _id }, { $set: { livemode: true } });
    await setLive(ids[0]);
    expect((await setting.refusal(...apply)).code).toBe('environments_mixed');
    await setLive(ids[1]);
    expect((await setting.refusal(...apply)).code).toBe('operator_key_required');
    const { env } = await asOperator(setting);
    await setting.json('operator', 'revoke', 'mia');
    const { exit, stderr } = await run(env, '--json', ...apply);
    expect([exit, CliError.parse(JSON.parse(stderr)).error.code]).toEqual([
      1,
      'operator_key_revoked',
    ]);
    for (const id of ids) expect(await payout(id)).toMatchObject({ status: 'sent', audit: [] });
  });

  test('--apply begins no further act after the operator key is revoked', async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => setting.payout()));
    const audit = operatorsAudit(setting.service.stores);
    const deps = { ...setting.deps, mongo: setting.service.mongo, audit };
    const act = { what: 'snooze', operator: 'mia', reason: 'Ticket 42', hours: 1 };
    let checks = 0;
    const verify = async () => {
      checks += 1;
      if (checks === 1) return undefined;
      throw new ServiceError('operator_key_revoked', 'The key is revoked.');
    };
    const seen: string[] = [];
    const onOutcome = ({ id }: { id: string }) => seen.push(id);
    const outcomes = await actOnMany(deps, 'payout', ids, act, { verify, onOutcome });
    expect(outcomes.map(({ id }) => id)).toEqual(seen);
    expect(outcomes.filter(({ result }) => result === 'done').map(({ id }) => id)).toEqual([
      ids[0],
    ]);
    expect(outcomes.filter(({ result }) => result === 'failed')).toHaveLength(7);
    const trails = await Promise.all(ids.map(async (id) => (await payout(id))?.audit.length));
    expect(trails).toEqual(ids.map((_, at) => (at === 0 ? 1 : 0)));
  });

  test('a query finds payouts alone, whatever brackets it has', async () => {
    const { ids, query } = await openPayouts(1);
    const { id: refund } = await setting.refund();
    const other = await list('refund', [refund], 'processing');
    const open = `${query}) OR (${other}`;
    const listed = Listed.parse(await setting.json(...many('snooze', open, '--plan')));
    expect(listed.data.map(({ id }) => id)).toEqual(ids);
    const elsewhere = `${query}) OR (TaskQueue = 'lifecycle'`;
    expect(Listed.parse(await setting.json(...many('snooze', elsewhere, '--plan'))).found).toBe(1);
    const none = `WorkflowId = '${randomUUID()}'`;
    expect((await setting.cli(...many('snooze', none, '--plan'))).stdout).toContain(
      'The query finds none.',
    );
  });

  test.each(['Colour = 1', 'ServiceStatus ='])(
    'refuses the query %j with the message of Temporal',
    async (query) => {
      const { code, message } = await setting.refusal(...many('snooze', query, '--plan'));
      expect([code, message]).toEqual([
        'invalid_query',
        expect.stringMatching(/^Temporal refuses the query: ./),
      ]);
    },
  );

  const WRONG: [string[], string][] = [
    [many('snooze', 'a = 1'), 'give either --plan or --apply'],
    [many('snooze', 'a = 1', '--plan', '--apply'), 'give either --plan or --apply'],
    [many('snooze', 'a = 1', '--plan', '--expect', '1'), 'Only --apply takes --expect.'],
    [many('snooze', ' ', '--plan'), 'It must have 1 to 60000 characters.'],
    [many('snooze', 'a = 1', '--apply', ...BY), 'A snooze, and nothing else, takes --hours.'],
    [many('snooze', 'a = 1', '--apply', '--hours', '1'), "'--reason <text>' not specified"],
    [many('resubmit', 'a = 1', '--apply', '--reason', 'Why'), "'--operator <name>' not specified"],
    [many('mark_settled', 'a = 1', '--plan'), 'Allowed choices are resubmit, mark_failed'],
    [many('mark_failed', 'a = 1', '--plan', '--amount', '1'), '--amount goes with an id'],
    [
      many('mark_failed', 'a = 1', '--apply', '--bank-confirmed-not-executed', ...BY),
      '--bank-confirmed-not-executed goes with an id',
    ],
    [['payout', 'act', 'x', 'resubmit', '--query', 'a = 1', '--plan'], 'give an act and no id'],
    [['payout', 'act', 'x', 'resubmit', '--plan', ...BY], 'Only --query takes --plan'],
    [['payout', 'act', 'x', ...BY], "missing required argument 'act'"],
  ];

  test.each(WRONG)('refuses %j before it connects to any server', async (args, words) => {
    const { exit, stderr } = await run({}, ...args);
    expect(exit).toBe(1);
    expect(stderr).toContain(words);
  });
});

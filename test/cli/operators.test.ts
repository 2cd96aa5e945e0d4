import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { deliverCallback } from '../../src/callbacks/deliver';
import type { CallbackResource } from '../../src/domain/banks/callback';
import { ServiceError } from '../../src/domain/errors';
import { LIFECYCLES } from '../../src/lifecycles';
import { actOn, actOnMany, findMany } from '../../src/service/operators/act';
import { acknowledgeAttention, type ShownAttention } from '../../src/service/operators/attention';
import { getSystemUser } from '../../src/service/operators/deps';
import { createMetricStore } from '../../src/store/metrics';
import { operatorsAudit } from '../support/audit';
import { eventually } from '../support/eventually';
import { buildPayment } from '../support/factories';
import { asOperator, commandsIn } from './cli';
import { useResourceSetting } from './resource-setting';

const prefix = `workers-${randomUUID().slice(0, 8)}`;
// Of its own: these commands need the queue prefix of the workers, and read what all accounts have.
const setting = useResourceSetting({ live: { connectors: '', prefix } });

/** Amount that the sandbox bank sends, and says no more of. */
const SILENT = { amount: 66_623 };
const WHY = ['--operator', 'mia', '--reason', 'Ticket 42'];
const NOTE = { operator: 'mia', reason: 'Ticket 42' };
const payout = (id: string) => setting.service.stores.payouts.get(id);

// First, while nothing was moved.
test('movement list says so where there are no movements', async () => {
  const print = async (...more: string[]) =>
    (await setting.cli('movement', 'list', ...more)).stdout;
  expect(await print()).toBe('No movement was reported.\n');
  expect(await print('--open')).toBe('Nothing is in suspense.\n');
  const none = { data: [], has_more: false, next_cursor: null };
  expect(JSON.parse(await print('--json'))).toEqual(none);
});

// Next, while the connector has no other payout.
test('connector health counts the payouts of a running connector, which a pause leaves healthy', async () => {
  const { connector } = setting.service;
  const SANDBOX_CONNECTORS = `${connector}=sepa_credit_transfer`;
  const { cli, json } = commandsIn({ ...setting.env, SANDBOX_CONNECTORS });
  const health = ['connector', 'health', connector];
  // One by SEPA Instant would need an operator after a minute.
  const recipient_id = setting.shop.recipients.card_payout;
  await setting.payout({ ...SILENT, method: 'card_payout', recipient_id });
  const seen = await eventually('a process and a payout', async () => {
    const answer = JSON.parse((await cli('--json', ...health)).stdout);
    const { healthy, instructions, resources } = answer;
    return healthy && instructions.waiting === 0 && resources.payout.running === 1 && answer;
  });
  expect(seen).toMatchObject({
    ...{ connector, env: 'sandbox', healthy: true, faults: [], callbacks_waiting: 0 },
    instructions: { pollers: expect.any(Number), waiting: 0 },
    resources: { payout: { running: 1, attention: 0 }, refund: { running: 0, attention: 0 } },
  });
  const { stdout } = await cli(...health);
  expect(stdout).toContain('take instructions\nInstructions:');
  expect(stdout).toMatch(/Running payouts: +1\n/);
  expect(stdout).toContain('No fault is known.');
  await json('connector', 'pause', connector, '--reason', 'Ticket 42');
  expect(await json(...health)).toMatchObject({ healthy: true, pause: { reason: 'Ticket 42' } });
  await json('connector', 'resume', connector);
});

describe('movement', () => {
  const at = expect.stringMatching(/^\d{4}-.+Z$/);
  const movement = async (...args: string[]) => Object(await setting.json('movement', ...args));
  const list = async (...more: string[]) => await movement('list', ...more);
  const print = async (...args: string[]) => (await setting.cli('movement', ...args)).stdout;

  /** Makes a payment with money in suspense, which differs from its amount. */
  async function hold(amount: number, facts: { bank_reference?: string; fee?: number } = {}) {
    const payment_id = await setting.payment();
    const { service, deps } = setting;
    await deliverCallback(deps, {
      ...{ connector: service.connector, resource: 'payment', resource_id: payment_id },
      name: 'settled',
      callback: {
        ...{ callback_id: randomUUID(), occurred_at: '2026-03-01T12:00:00.000Z' },
        ...{ amount, currency: 'EUR', value_date: '2026-03-02', ...facts },
      },
    });
    await setting.service.becomes('payments', payment_id, { attention: 'amount_differs' });
    const [{ id }, ...more] = (await list('--resource', payment_id)).data;
    expect(more).toEqual([]);
    return { id, payment_id };
  }

  const buildResolve = (id: string, as: string, ...more: string[]) => [
    ...['resolve', id, '--as', as, ...WHY, ...more],
  ];
  const resolve = (...args: Parameters<typeof buildResolve>) => movement(...buildResolve(...args));
  const refuse = (...args: Parameters<typeof buildResolve>) =>
    setting.refusal('movement', ...buildResolve(...args));

  test('list and show print one movement with its names, sources and resource', async () => {
    const { id, payment_id } = await hold(1_200, { bank_reference: 'B-1', fee: 43 });
    const { connector } = setting.service;
    const shown = {
      ...{ id, connector, livemode: false, account: null, identity: 'B-1' },
      names: ['B-1', expect.any(String)],
      ...{ direction: 'in', amount: 1_200, currency: 'EUR', value_date: '2026-03-02' },
      ...{ reported_at: at, sources: [{ kind: 'callback', id: expect.any(String), at }] },
      ...{ resource: 'payment', resource_id: payment_id, state: 'suspense' },
      ...{ in_suspense: 1_200, reason: 'amount_differs', resolution: null },
      fee: { amount: 43, bearer: 'service' },
    };
    expect(await movement('show', id)).toEqual(shown);
    expect((await list('--resource', payment_id)).data).toEqual([shown]);
    const payment = await setting.json('payment', 'show', payment_id);
    expect(payment).toMatchObject({ movements: [shown] });
    const finding = {
      ...{ code: 'suspense', amount: 1_200, currency: 'EUR', ids: [id] },
      message: expect.stringMatching(
        `^${connector} sandbox EUR: 1 movement in suspense; the oldest is of .*, 0 days old\\.$`,
      ),
      remedy: expect.stringContaining('attention list'),
    };
    const { findings } = Object(await setting.json('ledger', 'trial-balance'));
    expect(findings).toContainEqual(finding);

    expect(await print('list', '--resource', payment_id)).toMatch(
      /^MOVEMENT +REPORTED +DIRECTION +AMOUNT +IDENTITY +STATE +REASON\nmv_\S+ +\S+ \S+ UTC +in +€12\.00 +B-1 +suspense +amount_differs\n$/,
    );
    const words = await print('show', id);
    for (const line of [
      ...[`Movement: +${id}`, `Connector: +${connector}, sandbox`, 'Names: +B-1, \\S+'],
      ...['Acquirer’s fee: +€0\\.43, borne by the service', 'Amount: +€12\\.00 in'],
      ...['Value date: +2026-03-02', 'Reported: +\\S+ \\S+ UTC callback', 'Resolved: +-'],
      `Resource: +payment ${payment_id}`,
    ]) {
      expect(words).toMatch(new RegExp(`^${line}$`, 'm'));
    }
  });

  test('list is filtered, and continues at its cursor', async () => {
    const ids: string[] = [];
    for (const amount of [1_202, 1_203, 1_204]) ids.push((await hold(amount)).id);
    const readIds = async (...more: string[]) =>
      (await list(...more)).data.map(({ id }: { id: string }) => id);
    const own = (id: string) => ids.includes(id);
    const all = await readIds('--env', 'sandbox', '--connector', setting.service.connector);
    expect(all.filter(own)).toEqual(ids);
    expect(await readIds('--env', 'live')).toEqual([]);
    expect(await readIds('--connector', 'nobody')).toEqual([]);
    await resolve(ids[1] ?? '', 'loss');
    expect((await readIds('--open')).filter(own)).toEqual([ids[0], ids[2]]);

    const { data, has_more, next_cursor } = await list('--limit', '2');
    expect([data.length, has_more]).toEqual([2, true]);
    const rest = await list('--after', next_cursor);
    expect(rest).toMatchObject({ has_more: false, next_cursor: null });
    expect([...data, ...rest.data]).toEqual((await list()).data);
    expect(await print('list', '--limit', '2')).toMatch(/\n\nThere are more: --after mv_\S+\n$/);
  });

  // What each outcome does to the money is in test/workflows/payment/movements.test.ts.
  describe('resolve', () => {
    test('takes a part, be it more than the payment, out of suspense, then the rest', async () => {
      const { id, payment_id } = await hold(1_302);
      await setting.json('payment', 'act', payment_id, 'mark_failed', ...WHY);
      expect(await resolve(id, 'loss', '--amount', '1102')).toMatchObject({ state: 'suspense' });
      expect(await print('show', id)).toMatch(
        /^State: +suspense\n(.*\n)*Resolved: +loss €11\.02$/m,
      );
      expect(await refuse(id, 'bank', '--amount', '201')).toEqual({
        code: 'wrong_state',
        message: `Of the movement ${id}, 200 is in suspense (minor units).`,
      });
      expect(await print(...buildResolve(id, 'bank'))).toMatch(
        /^Movement: +mv_\S+\nState: +resolved\nResolved: +bank\n$/,
      );
      const resolution = { as: 'bank', amount: 200, operator: 'mia', reason: 'Ticket 42', at };
      expect(await movement('show', id)).toMatchObject({ resolution });
      expect((await refuse(id, 'bank')).message).toBe(`No movement ${id} is in suspense.`);
    });

    test('leaves to mark_settled what the payment itself takes', async () => {
      const { id, payment_id } = await hold(1_303);
      expect((await refuse(id, 'merchant')).message).toContain('send `mark_settled` with the mov');
      const settle = ['payment', 'act', payment_id, 'mark_settled', ...WHY, '--movement', id];
      expect(await setting.json(...settle)).toMatchObject({ status: 'settled', attention: null });
      expect(await movement('show', id)).toMatchObject({ state: 'applied' });
    });

    test('names the transaction that has sent a deposit back, which its payment shows', async () => {
      const payment_id = await setting.cryptoPayment();
      await setting.simulate('crypto_payment', payment_id, { event: 'held' });
      await setting.service.becomes('crypto_payments', payment_id, { attention: 'deposit_held' });
      const { data } = await list('--resource', payment_id, '--open');
      const suspense = { state: 'suspense', reason: 'deposit_held', resolution: null };
      const facts = { direction: 'in', asset: 'ETH', network: 'ethereum', ...suspense };
      expect(data).toMatchObject([{ ...facts, sources: [{ kind: 'block' }] }]);
      const id = data[0]?.id ?? '';
      expect((await refuse(id, 'merchant')).message).toContain('`release`');
      expect((await refuse(id, 'bank')).message).toContain('send it back to the customer');
      expect((await refuse(id, 'loss', '--amount', '1')).message).toContain('All of a deposit');
      const back = ['--transaction-id', '0xback', '--address', '0xabc'];
      expect(await refuse(id, 'loss', ...back)).toMatchObject({ code: 'invalid_request' });
      const resolution = { as: 'customer', operator: 'mia', address: '0xabc' };
      const resolved = { id, state: 'resolved', resolution };
      expect(await resolve(id, 'customer', ...back)).toMatchObject(resolved);
      const left = { as: 'returned', transaction_id: '0xback', address: '0xabc' };
      expect(await setting.json('crypto-payment', 'show', payment_id)).toMatchObject({
        deposits: [{ status: 'rejected', held: true, undone: false, left }],
        movements: [resolved, { direction: 'out', identity: '0xback', state: 'applied' }],
      });
      const { stdout } = await setting.cli('crypto-payment', 'show', payment_id);
      expect(stdout).toMatch(/rejected +screening failed, returned 0xback$/m);
    });

    test('needs neither an operator nor a reason in the sandbox', async () => {
      const { id } = await hold(1_305);
      await movement('resolve', id, '--as', 'loss');
      const operator = getSystemUser().system_user;
      const resolution = { as: 'loss', operator, reason: 'resolved on the command line' };
      expect(await movement('show', id)).toMatchObject({ resolution });
    });

    test('takes a transaction and an address only of a deposit, and needs a key on live', async () => {
      const { id } = await hold(1_304);
      for (const option of ['--transaction-id', '--address']) {
        expect(await refuse(id, 'bank', option, '0xabc')).toMatchObject({ code: 'invalid_usage' });
      }
      const rows = setting.service.collection<{ _id: string }>('bank_movements');
      await rows.updateOne({ _id: id }, { $set: { livemode: true } });
      expect((await refuse(id, 'loss')).code).toBe('operator_key_required');
      const mia = await asOperator(setting, `mia ${randomUUID()}`);
      const bare = ['movement', 'resolve', id, '--as', 'loss'];
      expect((await mia.refusal(...bare)).code).toBe('operator_required');
      await rows.updateOne({ _id: id }, { $set: { livemode: false } });
    });
  });
});

describe('act --query', () => {
  type Kind = 'payout' | 'refund';
  const buildAct = (kind: Kind, act: string, query: string, ...more: string[]) => [
    ...[kind, 'act', act, '--query', query, ...more],
  ];
  const findPlanned = async (kind: Kind, query: string) =>
    Object(await setting.json(...buildAct(kind, 'snooze', query, '--plan')));

  /** Waits until the list of workflows has them all in a state. @returns query that finds them */
  async function list(kind: Kind, ids: readonly string[], status: string): Promise<string> {
    const names = ids.map((id) => `'${setting.handle(kind, id).workflowId}'`);
    const query = `WorkflowId IN (${names.join(', ')})`;
    await eventually('the list of workflows', async () => {
      const { found } = await findPlanned(kind, `${query} AND ServiceStatus = '${status}'`);
      return found === ids.length;
    });
    return query;
  }

  async function openPayouts(count: number) {
    const open = () => setting.payout(SILENT);
    const ids = (await Promise.all(Array.from({ length: count }, open))).sort();
    return { ids, query: await list('payout', ids, 'sent') };
  }
  const expectAll = async (ids: readonly string[], state: object) =>
    expect(await Promise.all(ids.map(payout))).toMatchObject(ids.map(() => state));

  test('plans what a query finds, with sums; applies it after a refusal, and names what is refused', async () => {
    const { stores } = setting.service;
    const refunds = await Promise.all([1, 2, 3].map(() => setting.refund()));
    const [ended = '', ...ids] = refunds.map(({ id }) => id);
    await setting.simulate('refund', ended, { event: 'settled' });
    const open = await list('refund', ids, 'processing');
    const query = `${open} OR ${await list('refund', [ended], 'settled')}`;
    const message = 'The refund is settled; a final state is never left.';
    const error = { code: 'wrong_state', message };
    const { account_id } = setting.shop;
    const row = { account_id, env: 'sandbox', amount: 300, currency: 'EUR', attention: null };
    const rows = [
      ...ids.map((id) => ({ ...row, id, status: 'processing', refused: null })),
      { ...row, id: ended, status: 'settled', refused: error },
    ];
    const plan = buildAct('refund', 'mark_failed', query, '--plan');
    expect(await setting.json(...plan)).toEqual({
      ...{ query, act: 'mark_failed', applied: false, found: 3 },
      totals: [{ env: 'sandbox', currency: 'EUR', count: 2, amount: 600 }],
      data: rows.sort((a, b) => (a.id < b.id ? -1 : 1)),
    });
    const planned = await setting.cli(...plan);
    expect(planned.exit).toBe(0);
    expect(planned.stdout).toContain(
      'Results: 3. Would be sent: 2, 2 sandbox of €6.00.\nNothing was done.',
    );
    const readAll = () => Promise.all(ids.map((id) => stores.refunds.get(id)));
    const unchanged = { status: 'processing', audit: [] };
    expect(await readAll()).toMatchObject(ids.map(() => unchanged));

    const snooze = buildAct('refund', 'snooze', query, '--apply', '--hours', '2', ...WHY);
    const { exit, stdout, stderr } = await setting.cli('--json', ...snooze);
    const { data, ...counts } = JSON.parse(stdout);
    expect(counts).toEqual({
      ...{ query, act: 'snooze', applied: true, found: 3, done: 2, refused: 1 },
      ...{ approval_required: 0, unknown: 0, failed: 0, not_begun: 0 },
    });
    const version = expect.any(Number);
    const done = { result: 'done', status: 'processing', version, attention: null };
    const refused = { id: ended, result: 'refused', error };
    expect(data).toHaveLength(3);
    expect(data).toEqual(expect.arrayContaining([refused, ...ids.map((id) => ({ id, ...done }))]));
    const audit = [{ who: 'mia', what: 'snooze', why: 'Ticket 42' }];
    expect(await readAll()).toMatchObject(ids.map(() => ({ audit })));
    expect(exit).toBe(1);
    expect(JSON.parse(stderr).error).toEqual({
      ...{ code: 'not_all_done', message: expect.stringContaining('1 of 3') },
    });
    const inWords = await setting.cli(...snooze);
    for (const id of ids) expect(inWords.stderr).toContain(`${id} is processing`);
    expect(inWords.stdout).toMatch(new RegExp(`^ID .*\\n${ended} +refused +The refund is settled`));
    expect(inWords.stdout).toContain('snooze: done: 2, refused: 1.');
  });

  test('changes nothing if the query finds another number than --expect, too many, or is refused by Temporal', async () => {
    const { ids, query } = await openPayouts(2);
    const none = buildAct('payout', 'snooze', `WorkflowId = '${randomUUID()}'`, '--plan');
    expect((await setting.cli(...none)).stdout).toContain('The query finds none.');
    for (const wrong of ['Colour = 1', 'ServiceStatus =']) {
      expect(await setting.refusal(...buildAct('payout', 'snooze', wrong, '--plan'))).toEqual({
        code: 'invalid_query',
        message: expect.stringMatching(/^Temporal refuses the query: ./),
      });
    }
    // Brackets of the query lead to nothing but payouts.
    const { id: refund } = await setting.refund();
    const other = await list('refund', [refund], 'processing');
    for (const more of [other, "TaskQueue = 'lifecycle'"]) {
      const { data } = await findPlanned('payout', `${query}) OR (${more}`);
      expect(data.map(({ id }: { id: string }) => id)).toEqual(ids);
    }
    const apply = (act: string, count: string) =>
      buildAct('payout', act, query, '--apply', '--expect', count, ...WHY);
    expect(await setting.refusal(...apply('mark_failed', '3'))).toEqual({
      code: 'plan_changed',
      message: expect.stringContaining('finds 2 now, not 3, so nothing was done'),
    });
    const find = (max: number) => findMany(setting.deps, 'payout', 'mark_failed', query, max);
    await expect(find(1)).rejects.toMatchObject({ code: 'too_many' });
    expect((await find(2)).map(({ id }) => id)).toEqual(ids);
    await expectAll(ids, { status: 'sent', audit: [] });
    const done = { found: 2, done: 2, failed: 0 };
    expect(await setting.json(...apply('mark_completed', '2'))).toMatchObject(done);
    await expectAll(ids, { status: 'completed' });
  });

  test('on live needs a valid key, never takes two environments or currencies at once, and counts the sum', async () => {
    const { ids, query } = await openPayouts(2);
    const apply = buildAct('payout', 'mark_failed', query, '--apply', ...WHY);
    const payouts = setting.service.collection<{ _id: string }>('payouts');
    const change = (_id = '', fields: object = { livemode: true }) =>
      payouts.updateOne({ _id }, { $set: fields });
    const refuse = async ({ refusal } = setting) => (await refusal(...apply)).code;
    await change(ids[0]);
    expect(await refuse()).toBe('environments_mixed');
    await change(ids[1]);
    expect(await refuse()).toBe('operator_key_required');
    const mia = await asOperator(setting);
    await mia.json('operator', 'revoke', 'mia', '--reason', 'Ticket 42');
    expect(await refuse({ ...setting, ...mia })).toBe('operator_key_revoked');
    // Each act is below the limit of a second operator, and the sum above.
    const may = await asOperator(setting, 'may');
    const required = { status: 'approval_required', approval_id: expect.stringMatching(/^appr_/) };
    const answered = await may.json(...apply);
    expect(answered).toEqual(required);
    expect(await may.json(...apply)).toEqual(answered);
    await expectAll(ids, { status: 'sent', audit: [] });
    await change(ids[0], { currency: 'KWD' });
    expect(await refuse({ ...setting, ...may })).toBe('currencies_mixed');
  });

  test('begins no further act after the operator key is revoked', async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => setting.payout()));
    const { mongo, stores } = setting.service;
    const deps = { ...setting.deps, mongo, audit: operatorsAudit(stores) };
    const verify = jest
      .fn<Promise<undefined>, []>()
      .mockRejectedValue(new ServiceError('operator_key_revoked', 'The key is revoked.'))
      .mockResolvedValueOnce(undefined);
    const seen: string[] = [];
    const onOutcome = ({ id }: { id: string }) => seen.push(id);
    const act = { what: 'snooze', ...NOTE, hours: 1 };
    const outcomes = await actOnMany(deps, 'payout', ids, act, { verify, onOutcome });
    expect(outcomes.map(({ id }) => id)).toEqual(seen);
    const done = outcomes.filter(({ result }) => result === 'done');
    expect(done.map(({ id }) => id)).toEqual(ids.slice(0, 1));
    expect(outcomes.filter(({ result }) => result === 'failed')).toHaveLength(7);
    const trails = await Promise.all(ids.map(async (id) => (await payout(id))?.audit.length));
    expect(trails).toEqual(ids.map((_, at) => (at === 0 ? 1 : 0)));
  });
});

describe('attention', () => {
  const MALFORMED = 'malformed_callback';
  const list = async (...options: string[]) =>
    Object(await setting.json('attention', 'list', ...options));
  const listAbout = async (id: string, ...options: string[]): Promise<ShownAttention[]> =>
    (await list('--limit', '1000', ...options)).data.filter(
      ({ resource_id }: ShownAttention) => resource_id === id,
    );
  /** Waits for a row of the list with this reason. */
  const awaitRow = (id: string, reason: string) =>
    eventually(reason, async () => (await listAbout(id)).find((row) => row.reason === reason));
  const readStored = (kind: CallbackResource, id: string) =>
    LIFECYCLES[kind].get(setting.service.stores, id);
  const sendMalformed = (kind: CallbackResource, id: string, name: string) =>
    setting.handle(kind, id).signal(name, { unreadable: true });
  const acknowledge = (id: string) => acknowledgeAttention(setting.deps, id, NOTE);
  const acknowledgeStale = (id: string, attention: string) =>
    actOn(setting.deps, 'payment', id, { what: 'acknowledge', ...NOTE, attention });

  async function countMalformed(kind: CallbackResource): Promise<number> {
    const { stuck } = await createMetricStore(setting.deps.db).read(new Date());
    const rows = stuck.filter(({ resource, reason }) => resource === kind && reason === MALFORMED);
    return rows.reduce((sum, { count }) => sum + count, 0);
  }

  async function openCancelled(): Promise<string> {
    const { id } = await buildPayment(setting.shop, { status: 'cancelled' });
    await setting.handle('payment', id).result();
    return id;
  }

  async function openSettlement(): Promise<string> {
    await setting.registerWallet();
    const payment = await setting.cryptoPayment();
    await setting.simulate('crypto_payment', payment, { event: 'received' });
    await setting.handle('crypto_payment', payment).result();
    return await setting.cryptoSettlement('66643');
  }

  test.each<[CallbackResource, string, () => Promise<string>]>([
    ['payment', 'settled', () => setting.payment()],
    ['refund', 'settled', async () => (await setting.refund()).id],
    ['payout', 'completed', () => setting.payout(SILENT)],
    ['crypto_payment', 'deposit', () => setting.cryptoPayment()],
    ['crypto_settlement', 'completed', openSettlement],
  ])('of a %s is listed until it is acknowledged', async (kind, name, open) => {
    const id = await open();
    await sendMalformed(kind, id, name);
    const row = await awaitRow(id, MALFORMED);
    const { account_id = '', amount, currency } = (await readStored(kind, id)) ?? {};
    const about = { resource: kind, resource_id: id, reason: MALFORMED };
    expect(row).toEqual({
      ...{ ...about, id: expect.stringContaining(`${kind}:${id}:`), acknowledged: false },
      ...{ since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/), amount, currency },
      remedy: expect.stringContaining('could not be read'),
    });
    const before = await countMalformed(kind);
    const byCommand = () => setting.json('attention', 'acknowledge', row.id, ...WHY);
    for (const _repeat of [1, 2]) {
      expect(await byCommand()).toEqual({ id: row.id, ...about, acknowledged: true });
    }
    expect(await listAbout(id)).toEqual([]);
    expect(await listAbout(id, '--all')).toEqual([{ ...row, acknowledged: true }]);
    expect(await countMalformed(kind)).toBe(before - 1);
    const audit = [{ who: 'mia', what: 'acknowledge', why: 'Ticket 42', before: MALFORMED }];
    expect(await readStored(kind, id)).toMatchObject({ attention: null, audit });
    const lines = await setting.service.stores.auditLog.list({ account_id, limit: 100 });
    expect(lines.filter(({ target }) => target === id)).toMatchObject([
      { act: `${kind}.act`, after: { what: 'acknowledge', why: 'Ticket 42' } },
    ]);
  });

  test('is listed again when it comes again, and is not acknowledged as another one than the operator saw', async () => {
    const id = await setting.payment();
    await sendMalformed('payment', id, 'settled');
    const row = await awaitRow(id, MALFORMED);
    await expect(acknowledgeStale(id, 'amount_differs')).rejects.toMatchObject({
      ...{ code: 'wrong_state', message: `The attention reason is ${MALFORMED}.` },
    });
    for (const unknown of ['none', `payment:${id}:1`, row.id.replace('payment', 'other')]) {
      const { code } = await setting.refusal('attention', 'acknowledge', unknown, ...WHY);
      expect(code).toBe('attention_not_found');
    }
    // As the act that the list of acts names, too.
    const act = await setting.json('payment', 'act', id, 'acknowledge', ...WHY);
    expect(act).toMatchObject({ attention: null });
    await sendMalformed('payment', id, 'settled');
    const again = await awaitRow(id, MALFORMED);
    expect(await listAbout(id, '--all')).toEqual([{ ...row, acknowledged: true }, again]);
    await setting.json('payment', 'act', id, 'mark_failed', ...WHY);
    expect(await listAbout(id)).toEqual([again]);
  });

  test('of an ended payment is acknowledged, and leaves the search attributes of Temporal', async () => {
    const id = await openCancelled();
    await setting.simulate('payment', id, { event: 'authorized' });
    const { id: row, reason } = await awaitRow(id, 'late_authorization_voided');
    await setting.handle('payment', id).result();
    expect(await acknowledge(row)).toMatchObject({ reason });
    await setting.handle('payment', id).result();
    expect(await listAbout(id)).toEqual([]);
    const { searchAttributes } = await setting.handle('payment', id).describe();
    expect(searchAttributes['ServiceAttention']).toEqual([null]);
    const stored = { status: 'cancelled', attention: null };
    expect(await readStored('payment', id)).toMatchObject(stored);
    const message = 'The attention reason is none.';
    await expect(acknowledgeStale(id, 'amount_differs')).rejects.toMatchObject({ message });
  });

  test('that is oldest begins the list, which --after continues', async () => {
    const ids = [await setting.payment(), await setting.payment(), await setting.payment()];
    for (const id of ids) {
      await sendMalformed('payment', id, 'settled');
      await awaitRow(id, MALFORMED);
    }
    const { data: all } = await list('--all', '--limit', '1000');
    const own = all.filter((row: ShownAttention) => ids.includes(row.resource_id));
    expect(own.map((row: ShownAttention) => row.resource_id)).toEqual(ids);
    const at = all.indexOf(own[0]);
    const next = await list('--all', '--limit', '1', '--after', own[0].id);
    expect(next).toEqual({ data: [all[at + 1]], has_more: true, next_cursor: all[at + 1].id });
    const rest = await list('--all', '--after', own[0].id);
    expect(rest).toEqual({ data: all.slice(at + 1), has_more: false, next_cursor: null });
    const { stdout } = await setting.cli('attention', 'list', '--limit', '1');
    expect(stdout).toMatch(/^ATTENTION +SINCE +REASON +AMOUNT +CURRENCY +ACKNOWLEDGED\n/);
    expect(stdout).toMatch(/\n\nThere are more: --after [a-z_]+:\S+\n$/);
  });
});

describe('callback', () => {
  /** Connectors of these tests alone. */
  const BANK = `bank-${prefix}`;
  const OTHER = `other-${prefix}`;
  const OF_BANK = ['--connector', BANK];
  const OCCURRED_AT = '2026-03-01T12:00:00.000Z';
  const PARKED = 'no such refund at this connector';
  const NONE = { data: [], has_more: false };
  const REASON = ['--reason', 'Another service has it'];
  const run = (name: string, ...more: string[]) => setting.json('callback', name, ...more);
  const list = (...options: string[]) => run('list', ...options);
  const print = async (name: string, ...more: string[]) =>
    (await setting.cli('callback', name, ...more)).stdout;
  const callbacks = () => setting.service.stores.callbacks;
  const listDismissals = (target: string) =>
    setting.deps.db.collection('audit_log').find({ target, act: 'callback.dismissed' }).toArray();
  afterEach(async () => {
    const stored = setting.deps.db.collection('bank_callbacks');
    await stored.deleteMany({ connector: { $in: [BANK, OTHER] } });
  });

  /** Stores a callback as it is when its connector dies before the signal. */
  const store = (resource_id: string = randomUUID(), { connector = BANK, day = 1 } = {}) =>
    callbacks().insertOnce({
      ...{ connector, resource: 'payout', resource_id, name: 'completed' },
      body: { callback_id: `cb_${randomUUID()}`, occurred_at: OCCURRED_AT, reason: 'It arrived' },
      received_at: `2026-03-0${day}T12:00:00.000Z`,
    });

  /** Delivers a callback about a resource that does not exist. */
  async function park() {
    const warn = jest.fn();
    const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: OCCURRED_AT };
    const about = { resource: 'refund', resource_id: randomUUID(), name: 'settled' } as const;
    const report = { connector: BANK, ...about, callback };
    expect(await deliverCallback({ ...setting.deps, log: { warn } }, report)).toBe('parked');
    const facts = { callback_id: callback.callback_id, connector: BANK, code: 'settled' };
    expect(warn).toHaveBeenCalledWith(
      { ...facts, refund_id: about.resource_id },
      'callback parked',
    );
    return { id: `${BANK}:${callback.callback_id}`, callback };
  }

  test('that was never signalled, or whose signal Temporal lost, is delivered once', async () => {
    const { connector } = setting.service;
    const [id, other] = [await setting.payout(SILENT), await setting.payout(SILENT)];
    const { _id } = await store(id, { connector });
    const about = ['--resource-id', id];
    const row = {
      ...{ id: _id, connector, resource: 'payout', resource_id: id, name: 'completed' },
      ...{ received_at: OCCURRED_AT, signalled_at: null },
      ...{ parked: null, unapplied: null, signed_by: null },
    };
    expect(await list('--unsignalled', ...about)).toEqual({ data: [row], has_more: false });
    expect(await run('deliver', _id)).toEqual({ id: _id, status: 'delivered' });
    await setting.service.becomes('payouts', id, { status: 'completed' });
    expect(await setting.refusal('callback', 'deliver', _id)).toEqual({
      code: 'callback_signalled',
      message: `${_id} was signalled to its workflow: \`callback show ${_id}\` shows when.`,
    });
    expect(await list(...about)).toEqual(NONE);
    expect(await print('list', ...about)).toBe('No callback waits.\n');
    expect(await print('show', _id)).toMatch(/\nReason: +It arrived\n(.*\n)*Outcome: +signalled\n/);

    const lost = await store(other, { connector, day: 3 });
    for (const each of [lost, await store()]) {
      await callbacks().markSignalled({ _id: each._id }, OCCURRED_AT);
    }
    const again = ['--again', '--since', '2026-03-02T00:00:00Z'];
    expect(await run('deliver', ...again)).toEqual({ delivered: [lost._id], failed: [] });
    await setting.service.becomes('payouts', other, { status: 'completed' });
    expect(await run('deliver', ...again)).toEqual({ delivered: [], failed: [] });
  });

  test('that waits longest begins the list, which is filtered', async () => {
    const other = (await store(randomUUID(), { connector: OTHER, day: 3 }))._id;
    const { _id: second, resource_id } = await store(randomUUID(), { day: 2 });
    const own = [(await store())._id, second];
    const { id: parked } = await park();
    const listed: [string[], string[], boolean][] = [
      [OF_BANK, [...own, parked], false],
      [['--unsignalled', ...OF_BANK], own, false],
      [['--parked', ...OF_BANK], [parked], false],
      [['--connector', OTHER], [other], false],
      [['--resource-id', resource_id], [second], false],
      [['--limit', '1', ...OF_BANK], own.slice(0, 1), true],
      // Without a filter all connectors are listed.
      [['--limit', '1000'], expect.arrayContaining([...own, parked, other]), false],
    ];
    for (const [options, ids, has_more] of listed) {
      const page = Object(await list(...options));
      expect(page.data.map(({ id }: { id: string }) => id)).toEqual(ids);
      expect(page.has_more).toBe(has_more);
    }
    const stdout = await print('list', '--limit', '1', ...OF_BANK);
    expect(stdout).toMatch(/^CALLBACK +RECEIVED +RESOURCE +ID +SAYS +WAITS\n/);
    expect(stdout).toMatch(/ payout +\S+ +completed +never signalled\n\nThere are more\.\n$/);
  });

  test('that is parked stays so until its resource exists, or leaves the list when it is dismissed', async () => {
    const { id, callback } = await park();
    const row = { id, parked: PARKED, signalled_at: null };
    expect(await run('show', id)).toMatchObject({ ...row, callback });
    expect(await run('deliver', id)).toEqual({ id, status: 'parked' });
    const words = `${id} stays parked: its connector still has no such resource.\n`;
    expect(await print('deliver', id)).toBe(words);
    const countWaiting = async () => {
      const { callbacks: waiting } = await createMetricStore(setting.deps.db).read(new Date());
      return waiting.filter(({ connector }) => connector === BANK);
    };
    expect(await countWaiting()).toEqual([{ waits: 'parked', connector: BANK, count: 1 }]);
    const dismiss = () => run('dismiss', id, ...REASON);
    expect(await dismiss()).toEqual({ id, status: 'dismissed' });
    expect(await countWaiting()).toEqual([]);
    const dismissed = { id, parked: PARKED, dismissed_at: expect.any(String) };
    for (const options of [OF_BANK, ['--parked', ...OF_BANK]]) {
      expect(await list(...options)).toEqual(NONE);
      expect(await list(...options, '--all')).toMatchObject({ data: [dismissed] });
    }
    expect(await print('show', id)).toMatch(/Outcome: +dismissed, parked/);
    expect(await dismiss()).toEqual({ id, status: 'dismissed' });
    const reason = 'Another service has it';
    const after = { resource: 'refund', name: 'settled', reason };
    const actor = { via: 'command_line', host: hostname() };
    expect(await listDismissals(id)).toMatchObject([{ actor, after }]);

    await Promise.all([park(), park()]);
    const { _id: unsignalled } = await store();
    for (const dismissed of [2, 0]) {
      const all = await run('dismiss', '--parked', ...OF_BANK, ...REASON);
      expect(all).toEqual({ connector: BANK, dismissed });
    }
    expect(await list(...OF_BANK)).toMatchObject({ data: [{ id: unsignalled }] });
    expect(await listDismissals(BANK)).toMatchObject([{ after: { callbacks: 2, reason } }]);
  });

  test('is refused if unknown, about an invalid id, or, to dismiss it, not parked', async () => {
    const { _id: unreadable } = await store('no id of ours');
    const { _id: unsignalled } = await store();
    const { _id: signalled } = await store();
    await callbacks().park(signalled, PARKED);
    await callbacks().markSignalled({ _id: signalled }, OCCURRED_AT);
    const refusals: [string[], string][] = [
      [['deliver', 'sandbox:none'], 'callback_not_found'],
      [['deliver', unreadable], 'callback_unreadable'],
      [['deliver', '--again'], 'invalid_request'],
      [['dismiss', unsignalled, ...REASON], 'callback_not_parked'],
      [['dismiss', signalled, ...REASON], 'callback_signalled'],
      [['dismiss', '--parked', ...REASON], 'invalid_request'],
      [['dismiss', signalled, '--parked', ...OF_BANK, ...REASON], 'invalid_request'],
    ];
    for (const [args, code] of refusals) {
      expect((await setting.refusal('callback', ...args)).code).toBe(code);
    }
  });
});

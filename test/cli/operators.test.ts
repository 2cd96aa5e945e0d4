import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { deliverCallback } from '../../src/callbacks/deliver';
import type { CallbackResource } from '../../src/domain/callback/callback';
import { ServiceError } from '../../src/domain/errors';
import { LIFECYCLES } from '../../src/lifecycles';
import { actOn } from '../../src/service/operators/act';
import { actOnMany, findMany } from '../../src/service/operators/act-many';
import { acknowledgeAttention, type ShownAttention } from '../../src/service/operators/attention';
import type { CallbackDocument } from '../../src/store/callbacks';
import { createMetricStore } from '../../src/store/metrics';
import { operatorsAudit } from '../support/audit';
import { buildPayment } from '../support/factories';
import { eventually } from '../support/http';
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

// First, while the connector has no other payout.
test('connector health counts the payouts of a running connector, which a pause leaves healthy', async () => {
  const { connector } = setting.service;
  const routes = { SANDBOX_CONNECTORS: `${connector}=sepa_credit_transfer` };
  const { cli, json } = commandsIn({ ...setting.env, ...routes });
  const health = ['connector', 'health', connector];
  // One by SEPA Instant would need an operator after a minute.
  const recipient_id = setting.shop.recipients.card_payout;
  await setting.payout({ ...SILENT, method: 'card_payout', recipient_id });
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

  test('plans what a query finds, with sums; applies it after a refusal, and names what is refused', async () => {
    const { stores } = setting.service;
    const refunds = await Promise.all([1, 2, 3].map(() => setting.refund()));
    const [ended = '', ...ids] = refunds.map(({ id }) => id);
    await setting.simulate('refund', ended, { event: 'settled' });
    const open = await list('refund', ids, 'processing');
    const query = `${open} OR ${await list('refund', [ended], 'settled')}`;
    const row = (id: string, status: string, refused: object | null) => ({
      ...{ id, account_id: setting.shop.account_id, env: 'sandbox', amount: 300, currency: 'EUR' },
      ...{ attention: null, status, refused },
    });
    const message = 'The refund is settled; a final state is never left.';
    const final = row(ended, 'settled', { code: 'wrong_state', message });
    const plan = buildAct('refund', 'mark_failed', query, '--plan');
    expect(await setting.json(...plan)).toEqual({
      ...{ query, act: 'mark_failed', applied: false, found: 3 },
      totals: [{ env: 'sandbox', currency: 'EUR', count: 2, amount: 600 }],
      data: [...ids.map((id) => row(id, 'processing', null)), final].sort((a, b) =>
        a.id < b.id ? -1 : 1,
      ),
    });
    const planned = await setting.cli(...plan);
    expect(planned.exit).toBe(0);
    expect(planned.stdout).toContain(
      'Results: 3. Would be sent: 2, 2 sandbox of €6.00.\nNothing was done.',
    );
    for (const id of ids) {
      expect(await stores.refunds.get(id)).toMatchObject({ status: 'processing', audit: [] });
    }

    const snooze = buildAct('refund', 'snooze', query, '--apply', '--hours', '2', ...WHY);
    const { exit, stdout, stderr } = await setting.cli('--json', ...snooze);
    const { data, ...counts } = JSON.parse(stdout);
    expect(counts).toEqual({
      ...{ query, act: 'snooze', applied: true, found: 3, done: 2, refused: 1 },
      ...{ approval_required: 0, unknown: 0, failed: 0, not_begun: 0 },
    });
    const version = expect.any(Number);
    const done = { result: 'done', status: 'processing', version, attention: null };
    const refused = { id: ended, result: 'refused', error: { code: 'wrong_state', message } };
    expect(data).toHaveLength(3);
    expect(data).toEqual(expect.arrayContaining([refused, ...ids.map((id) => ({ id, ...done }))]));
    for (const id of ids) {
      const audit = [{ who: 'mia', what: 'snooze', why: 'Ticket 42' }];
      expect(await stores.refunds.get(id)).toMatchObject({ audit });
    }
    expect(exit).toBe(1);
    expect(JSON.parse(stderr).error).toEqual({
      ...{ code: 'not_all_done', message: expect.stringContaining('1 of 3') },
    });
    const inWords = await setting.cli(...snooze);
    for (const id of ids) expect(inWords.stderr).toContain(`${id} is processing`);
    expect(inWords.stdout).toMatch(new RegExp(`^ID .*\\n${ended} +refused +The refund is settled`));
    expect(inWords.stdout).toContain('snooze: done: 2, refused: 1.');
  });

  test('changes nothing if the query finds another number than --expect, or too many', async () => {
    const { ids, query } = await openPayouts(2);
    const apply = (count: string) =>
      buildAct('payout', 'mark_failed', query, '--apply', '--expect', count, ...WHY);
    expect(await setting.refusal(...apply('3'))).toEqual({
      code: 'plan_changed',
      message: expect.stringContaining('finds 2 now, not 3, so nothing was done'),
    });
    const find = (max: number) => findMany(setting.deps, 'payout', 'mark_failed', query, max);
    await expect(find(1)).rejects.toMatchObject({ code: 'too_many' });
    expect((await find(2)).map(({ id }) => id)).toEqual(ids);
    for (const id of ids) expect(await payout(id)).toMatchObject({ status: 'sent', audit: [] });
    const complete = apply('2').map((word) => (word === 'mark_failed' ? 'mark_completed' : word));
    expect(await setting.json(...complete)).toMatchObject({ found: 2, done: 2, failed: 0 });
    for (const id of ids) expect(await payout(id)).toMatchObject({ status: 'completed' });
  });

  test('needs a valid operator key on live, and never takes both environments at once', async () => {
    const { ids, query } = await openPayouts(2);
    const apply = buildAct('payout', 'mark_failed', query, '--apply', ...WHY);
    const payouts = setting.service.collection<{ _id: string }>('payouts');
    const setLive = (_id = '') => payouts.updateOne({ _id }, { $set: { livemode: true } });
    await setLive(ids[0]);
    expect((await setting.refusal(...apply)).code).toBe('environments_mixed');
    await setLive(ids[1]);
    expect((await setting.refusal(...apply)).code).toBe('operator_key_required');
    const mia = await asOperator(setting);
    await setting.json('operator', 'revoke', 'mia');
    const { exit, stderr } = await mia.cli('--json', ...apply);
    expect([exit, JSON.parse(stderr).error.code]).toEqual([1, 'operator_key_revoked']);
    for (const id of ids) expect(await payout(id)).toMatchObject({ status: 'sent', audit: [] });
  });

  test('makes one request for acts on live of which each is below the limit, and the sum above', async () => {
    const { service } = setting;
    const { ids, query } = await openPayouts(2);
    const payouts = service.collection<{ _id: string }>('payouts');
    await payouts.updateMany({ _id: { $in: ids } }, { $set: { livemode: true } });
    const apply = buildAct('payout', 'mark_failed', query, '--apply', ...WHY);
    const may = await asOperator(setting, 'may');
    const required = { status: 'approval_required', approval_id: expect.stringMatching(/^appr_/) };
    const answered = await may.json(...apply);
    expect(answered).toEqual(required);
    expect(await may.json(...apply)).toEqual(answered);
    for (const id of ids) expect(await payout(id)).toMatchObject({ status: 'sent', audit: [] });
    await payouts.updateOne({ _id: ids[0] ?? '' }, { $set: { currency: 'KWD' } });
    expect((await may.refusal(...apply)).code).toBe('currencies_mixed');
  });

  test('begins no further act after the operator key is revoked', async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => setting.payout()));
    const audit = operatorsAudit(setting.service.stores);
    const deps = { ...setting.deps, mongo: setting.service.mongo, audit };
    let checks = 0;
    const verify = async () => {
      checks += 1;
      if (checks === 1) return undefined;
      throw new ServiceError('operator_key_revoked', 'The key is revoked.');
    };
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

  test('finds payouts alone, whatever brackets the query has', async () => {
    const { ids, query } = await openPayouts(1);
    const { id: refund } = await setting.refund();
    const other = await list('refund', [refund], 'processing');
    const plan = await findPlanned('payout', `${query}) OR (${other}`);
    expect(plan.data).toMatchObject(ids.map((id) => ({ id })));
    const elsewhere = `${query}) OR (TaskQueue = 'lifecycle'`;
    expect(await findPlanned('payout', elsewhere)).toMatchObject({ found: 1 });
    const none = `WorkflowId = '${randomUUID()}'`;
    const { stdout } = await setting.cli(...buildAct('payout', 'snooze', none, '--plan'));
    expect(stdout).toContain('The query finds none.');
  });

  test.each(['Colour = 1', 'ServiceStatus ='])(
    'refuses the query %j with the message of Temporal',
    async (query) => {
      expect(await setting.refusal(...buildAct('payout', 'snooze', query, '--plan'))).toEqual({
        code: 'invalid_query',
        message: expect.stringMatching(/^Temporal refuses the query: ./),
      });
    },
  );
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
  ])(
    'of a %s is listed, acknowledged, and listed again when it comes again',
    async (kind, name, open) => {
      const id = await open();
      await sendMalformed(kind, id, name);
      const row = await awaitRow(id, MALFORMED);
      const { account_id = '', amount, currency } = (await readStored(kind, id)) ?? {};
      expect(row).toEqual({
        ...{ id: expect.stringContaining(`${kind}:${id}:`), resource: kind, resource_id: id },
        ...{ reason: MALFORMED, since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) },
        ...{ amount, currency, acknowledged: false },
        remedy: expect.stringContaining('could not be read'),
      });
      const before = await countMalformed(kind);
      const byCommand = () => setting.json('attention', 'acknowledge', row.id, ...WHY);
      expect(await byCommand()).toEqual({
        ...{ id: row.id, resource: kind, resource_id: id, reason: MALFORMED, acknowledged: true },
      });
      expect(await listAbout(id)).toEqual([]);
      expect(await listAbout(id, '--all')).toEqual([{ ...row, acknowledged: true }]);
      expect(await countMalformed(kind)).toBe(before - 1);
      const audit = { who: 'mia', what: 'acknowledge', why: 'Ticket 42', before: MALFORMED };
      expect(await readStored(kind, id)).toMatchObject({ attention: null, audit: [audit] });
      const lines = await setting.service.stores.auditLog.list({ account_id, limit: 100 });
      expect(lines.filter(({ target }) => target === id)).toMatchObject([
        { act: `${kind}.act`, after: { what: 'acknowledge', why: 'Ticket 42' } },
      ]);
      await byCommand();
      expect((await readStored(kind, id))?.audit).toHaveLength(1);

      await sendMalformed(kind, id, name);
      const again = await awaitRow(id, MALFORMED);
      expect(again.id).not.toBe(row.id);
      expect(await listAbout(id, '--all')).toEqual([{ ...row, acknowledged: true }, again]);
      const act = await setting.json(kind.replace('_', '-'), 'act', id, 'acknowledge', ...WHY);
      expect(act).toMatchObject({ attention: null });
      expect(await listAbout(id)).toEqual([]);
    },
  );

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
    const act = { what: 'acknowledge', ...NOTE };
    await expect(actOn(setting.deps, 'payment', id, act)).rejects.toMatchObject({
      ...{ code: 'wrong_state', message: 'The attention reason is none.' },
    });
  });

  test('whose money is in suspense is acknowledged only after the money has left', async () => {
    const id = await openCancelled();
    await setting.simulate('payment', id, { event: 'settled' });
    const row = await awaitRow(id, 'late_settlement_reversed');
    await expect(acknowledge(row.id)).rejects.toMatchObject({ code: 'money_in_suspense' });
    expect(await listAbout(id)).toEqual([row]);
    const stored = { attention: row.reason, audit: [] };
    expect(await readStored('payment', id)).toMatchObject(stored);
    await setting.simulate('payment', id, { event: 'reversed' });
    await setting.handle('payment', id).result();
    await acknowledge(row.id);
    expect(await listAbout(id)).toEqual([]);
  });

  test('other than the one that the operator saw is not acknowledged', async () => {
    const id = await setting.payment();
    await sendMalformed('payment', id, 'settled');
    const row = await awaitRow(id, MALFORMED);
    const stale = { what: 'acknowledge', ...NOTE, attention: 'amount_differs' };
    await expect(actOn(setting.deps, 'payment', id, stale)).rejects.toMatchObject({
      ...{ code: 'wrong_state', message: `The attention reason is ${MALFORMED}.` },
    });
    await setting.json('payment', 'act', id, 'mark_failed', ...WHY);
    expect(await listAbout(id)).toEqual([row]);
    for (const unknown of ['none', `payment:${id}:1`, row.id.replace('payment', 'other')]) {
      const { code } = await setting.refusal('attention', 'acknowledge', unknown, ...WHY);
      expect(code).toBe('attention_not_found');
    }
  });

  test('that is oldest begins the list, which --after continues', async () => {
    const ids = [await setting.payment(), await setting.payment(), await setting.payment()];
    for (const id of ids) {
      await sendMalformed('payment', id, 'settled');
      await awaitRow(id, MALFORMED);
    }
    const pages = await listAbout(ids[0] ?? '');
    // Reasons of other tests may stand between.
    while (pages.at(-1)?.resource_id !== ids.at(-1)) {
      const after = ['--after', pages.at(-1)?.id ?? ''];
      const { data, has_more, next_cursor } = await list('--all', '--limit', '1', ...after);
      expect(data).toHaveLength(1);
      expect(next_cursor).toBe(has_more ? data[0].id : null);
      pages.push(...data);
    }
    expect(new Set(pages.map(({ id }) => id)).size).toBe(pages.length);
    expect(pages.map(({ since }) => since)).toEqual(pages.map(({ since }) => since).toSorted());
    const own = pages.filter(({ resource_id }) => ids.includes(resource_id));
    expect(own.map(({ resource_id }) => resource_id)).toEqual(ids);
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
  const list = (...options: string[]) => setting.json('callback', 'list', ...options);
  const refuse = (...args: string[]) => setting.refusal('callback', ...args);
  const callbacks = () => setting.service.stores.callbacks;
  afterEach(async () => {
    const stored = setting.deps.db.collection('bank_callbacks');
    await stored.deleteMany({ connector: { $in: [BANK, OTHER] } });
  });

  /** Stores a callback as it is when its connector dies before the signal. */
  function store(resource_id: string = randomUUID(), { connector = BANK, day = 1 } = {}) {
    return callbacks().insertOnce({
      ...{ connector, resource: 'payout', resource_id, name: 'completed' },
      body: { callback_id: `cb_${randomUUID()}`, occurred_at: OCCURRED_AT, reason: 'It arrived' },
      received_at: `2026-03-0${day}T12:00:00.000Z`,
    });
  }

  /** Delivers a callback about a resource that does not exist. */
  async function park() {
    const warned: unknown[][] = [];
    const log = { warn: (...line: unknown[]) => void warned.push(line) };
    const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: OCCURRED_AT };
    const about = { resource: 'refund', resource_id: randomUUID(), name: 'settled' } as const;
    const report = { connector: BANK, ...about, callback };
    expect(await deliverCallback({ ...setting.deps, log }, report)).toBe('parked');
    return {
      id: `${BANK}:${callback.callback_id}`,
      callback,
      warned,
      refund_id: about.resource_id,
    };
  }

  test('that was never signalled, or whose signal Temporal lost, is delivered once', async () => {
    const { connector } = setting.service;
    const id = await setting.payout(SILENT);
    const { _id } = await store(id, { connector });
    const about = ['--resource-id', id];
    const row = {
      ...{ id: _id, connector, resource: 'payout', resource_id: id, name: 'completed' },
      ...{ received_at: OCCURRED_AT, signalled_at: null },
      ...{ parked: null, unapplied: null, signed_by: null },
    };
    expect(await list('--unsignalled', ...about)).toEqual({ data: [row], has_more: false });
    const delivered = { id: _id, status: 'delivered' };
    expect(await setting.json('callback', 'deliver', _id)).toEqual(delivered);
    await setting.service.becomes('payouts', id, { status: 'completed' });
    expect(await setting.refusal('callback', 'deliver', _id)).toEqual({
      code: 'callback_signalled',
      message: `${_id} was signalled to its workflow: \`callback show ${_id}\` shows when.`,
    });
    expect(await list(...about)).toEqual(NONE);
    expect((await setting.cli('callback', 'list', ...about)).stdout).toBe('No callback waits.\n');
    const { stdout } = await setting.cli('callback', 'show', _id);
    expect(stdout).toMatch(/\nReason: +It arrived\n/);
    expect(stdout).toMatch(/\nOutcome: +signalled\n/);

    const other = await setting.payout(SILENT);
    const lost = await store(other, { connector, day: 3 });
    for (const each of [lost, await store()]) {
      await callbacks().markSignalled({ _id: each._id }, OCCURRED_AT);
    }
    const again = ['callback', 'deliver', '--again', '--since', '2026-03-02T00:00:00Z'];
    expect(await setting.json(...again)).toEqual({ delivered: [lost._id], failed: [] });
    await setting.service.becomes('payouts', other, { status: 'completed' });
    expect(await setting.json(...again)).toEqual({ delivered: [], failed: [] });
    expect((await refuse('deliver', '--again')).code).toBe('invalid_request');
  });

  test('that waits longest begins the list, which is filtered', async () => {
    const buildRow = ({ _id: id, connector, resource, resource_id, name }: CallbackDocument) =>
      expect.objectContaining({ id, connector, resource, resource_id, name, signalled_at: null });
    const other = await store(randomUUID(), { connector: OTHER, day: 3 });
    const second = await store(randomUUID(), { day: 2 });
    const first = await store();
    const parked = expect.objectContaining({ id: (await park()).id });
    const own = [buildRow(first), buildRow(second)];
    const listed: [string[], unknown[], boolean][] = [
      [OF_BANK, [...own, parked], false],
      [['--unsignalled', ...OF_BANK], own, false],
      [['--parked', ...OF_BANK], [parked], false],
      [['--connector', OTHER], [buildRow(other)], false],
      [['--resource-id', second.resource_id], [buildRow(second)], false],
      [['--limit', '1', ...OF_BANK], own.slice(0, 1), true],
    ];
    for (const [options, data, has_more] of listed) {
      expect(await list(...options)).toEqual({ data, has_more });
    }
    // Without a filter all connectors are listed.
    const { data } = Object(await list('--limit', '1000'));
    expect(data).toEqual(expect.arrayContaining([...own, parked, buildRow(other)]));
    const { stdout } = await setting.cli('callback', 'list', '--limit', '1', ...OF_BANK);
    expect(stdout).toMatch(/^CALLBACK +RECEIVED +RESOURCE +ID +SAYS +WAITS\n/);
    expect(stdout).toMatch(/ payout +\S+ +completed +never signalled\n\nThere are more\.\n$/);
  });

  test('that is parked stays so until its resource exists, or leaves the list when it is dismissed', async () => {
    const { id, callback, warned, refund_id } = await park();
    const { callback_id } = callback;
    expect(warned).toEqual([
      [{ callback_id, connector: BANK, refund_id, code: 'settled' }, 'callback parked'],
    ]);
    const row = { id, parked: PARKED, signalled_at: null };
    expect(await setting.json('callback', 'show', id)).toMatchObject({ ...row, callback });
    expect(await setting.json('callback', 'deliver', id)).toEqual({ id, status: 'parked' });
    const { stdout } = await setting.cli('callback', 'deliver', id);
    expect(stdout).toBe(`${id} stays parked: its connector still has no such resource.\n`);

    const { db } = setting.deps;
    const countWaiting = async () => {
      const { callbacks: waiting } = await createMetricStore(db).read(new Date());
      return waiting.filter(({ connector }) => connector === BANK);
    };
    expect(await countWaiting()).toEqual([{ waits: 'parked', connector: BANK, count: 1 }]);
    const dismiss = () => setting.json('callback', 'dismiss', id, ...REASON);
    expect(await dismiss()).toEqual({ id, status: 'dismissed' });
    expect(await countWaiting()).toEqual([]);
    for (const options of [OF_BANK, ['--parked', ...OF_BANK]]) {
      expect(await list(...options)).toEqual(NONE);
      const dismissed = { id, parked: PARKED, dismissed_at: expect.any(String) };
      expect(await list(...options, '--all')).toMatchObject({ data: [dismissed] });
    }
    const shown = await setting.cli('callback', 'show', id);
    expect(shown.stdout).toMatch(/Outcome: +dismissed, parked/);
    expect(await dismiss()).toEqual({ id, status: 'dismissed' });
    const acts = { target: id, act: 'callback.dismissed' };
    expect(await db.collection('audit_log').find(acts).toArray()).toMatchObject([
      {
        actor: { via: 'command_line', host: hostname() },
        after: { resource: 'refund', name: 'settled', reason: 'Another service has it' },
      },
    ]);
  });

  test('that is parked leaves the list with all others of its connector', async () => {
    await Promise.all([park(), park()]);
    const { _id: unsignalled } = await store();
    const dismiss = () => setting.json('callback', 'dismiss', '--parked', ...OF_BANK, ...REASON);
    expect(await dismiss()).toEqual({ connector: BANK, dismissed: 2 });
    expect(await dismiss()).toEqual({ connector: BANK, dismissed: 0 });
    expect(await list('--parked', ...OF_BANK)).toEqual(NONE);
    expect(await list(...OF_BANK)).toMatchObject({ data: [{ id: unsignalled }] });
    const acts = { target: BANK, act: 'callback.dismissed' };
    expect(await setting.deps.db.collection('audit_log').find(acts).toArray()).toMatchObject([
      { after: { callbacks: 2, reason: 'Another service has it' } },
    ]);
  });

  test('is refused if unknown, about an invalid id, or, to dismiss it, not parked', async () => {
    const { _id: unreadable } = await store('no id of ours');
    const { _id: unsignalled } = await store();
    const { _id: signalled } = await store();
    await callbacks().park(signalled, PARKED);
    await callbacks().markSignalled({ _id: signalled }, OCCURRED_AT);
    expect(await refuse('show', 'sandbox:none')).toEqual({
      ...{ code: 'callback_not_found', message: 'There is no callback sandbox:none.' },
    });
    const refusals: [string[], string][] = [
      [['deliver', 'sandbox:none'], 'callback_not_found'],
      [['deliver', unreadable], 'callback_unreadable'],
      [['dismiss', 'sandbox:none', ...REASON], 'callback_not_found'],
      [['dismiss', unsignalled, ...REASON], 'callback_not_parked'],
      [['dismiss', signalled, ...REASON], 'callback_signalled'],
      [['dismiss', '--parked', ...REASON], 'invalid_request'],
      [['dismiss', signalled, '--parked', ...OF_BANK, ...REASON], 'invalid_request'],
    ];
    for (const [args, code] of refusals) expect((await refuse(...args)).code).toBe(code);
  });
});

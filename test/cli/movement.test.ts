import { randomUUID } from 'node:crypto';
import { deliverCallback } from '../../src/callbacks/deliver';
import type { PaymentCallbackName } from '../../src/domain/callback/callback';
import { buildMovement } from '../../src/movements/register';
import { eventually } from '../support/http';
import { useResourceSetting } from './resource-setting';

const prefix = `movements-${randomUUID().slice(0, 8)}`;
// Of its own: it lists what all accounts have, and restarts workflows that have ended.
const setting = useResourceSetting({ live: { connectors: '', prefix } });

const at = expect.stringMatching(/^\d{4}-.+Z$/);
const WHY = ['--operator', 'mia', '--reason', 'Ticket 42'];

interface Listed {
  id: string;
  resource_id: string;
  amount: number;
  reported_at: string;
  state: string;
}

async function list(...more: string[]) {
  const page: { data: Listed[]; has_more: boolean; next_cursor: string | null } = Object(
    await setting.json('movement', 'list', ...more),
  );
  return page;
}

/** Reports that money came, or is back, as a connector does. */
async function report(
  payment_id: string,
  amount: number,
  facts: { bank_reference?: string; currency?: string } = {},
  name: PaymentCallbackName = 'settled',
) {
  const { service, deps } = setting;
  await deliverCallback(deps, {
    ...{ connector: service.connector, resource: 'payment', resource_id: payment_id, name },
    callback: {
      ...{ callback_id: randomUUID(), occurred_at: '2026-03-01T12:00:00.000Z' },
      ...{ amount, currency: 'EUR', value_date: '2026-03-02', ...facts },
    },
  });
}

/** Makes a payment with money in suspense, which differs from its amount. */
async function hold(amount: number, facts: { bank_reference?: string; currency?: string } = {}) {
  const payment_id = await setting.payment();
  await report(payment_id, amount, facts);
  await setting.service.becomes('payments', payment_id, { attention: 'amount_differs' });
  const { data } = await list('--resource', payment_id);
  const [movement, ...more] = data;
  if (movement === undefined || more.length > 0) throw new Error('It has not one movement.');
  return { id: movement.id, payment_id, movement };
}

const resolve = (id: string, as: string, ...more: string[]) =>
  setting.json('movement', 'resolve', id, '--as', as, ...WHY, ...more);
const refuse = (id: string, as: string, ...more: string[]) =>
  setting.refusal('movement', 'resolve', id, '--as', as, ...WHY, ...more);
const fail = (payment_id: string) =>
  setting.json('payment', 'act', payment_id, 'mark_failed', ...WHY);
const listEntries = async (payment_id: string) =>
  (await setting.service.stores.ledger.forResource(payment_id)).map(({ kind, lines }) => [
    kind,
    ...lines.map(({ account, amount }) => `${account} ${amount}`),
  ]);

test('movement list says so where there is none', async () => {
  expect((await setting.cli('movement', 'list')).stdout).toBe('No movement was reported.\n');
  const open = await setting.cli('movement', 'list', '--open');
  expect(open.stdout).toBe('Nothing is in suspense.\n');
  expect(await list()).toEqual({ data: [], has_more: false, next_cursor: null });
});

describe('movement list and show', () => {
  test('print one movement with its names, sources and resource', async () => {
    const { id, payment_id } = await hold(1_200, { bank_reference: 'B-1' });
    const { connector } = setting.service;
    const shown = {
      ...{ id, connector, livemode: false, account: null, identity: 'B-1' },
      names: ['B-1', expect.any(String)],
      ...{ direction: 'in', amount: 1_200, currency: 'EUR', value_date: '2026-03-02' },
      ...{ reported_at: at, sources: [{ kind: 'callback', id: expect.any(String), at }] },
      ...{ resource: 'payment', resource_id: payment_id, state: 'suspense' },
      ...{ in_suspense: 1_200, reason: 'amount_differs', resolution: null },
    };
    expect(await setting.json('movement', 'show', id)).toEqual(shown);
    expect((await list('--resource', payment_id)).data).toEqual([shown]);
    expect(await setting.json('payment', 'show', payment_id)).toMatchObject({ movements: [shown] });
    const finding = {
      ...{ code: 'suspense', amount: 1_200, currency: 'EUR', ids: [id] },
      message: expect.stringMatching(
        `^${connector} sandbox EUR: 1 movement in suspense; the oldest is of .*, 0 days old\\.$`,
      ),
      remedy: expect.stringContaining('attention list'),
    };
    expect(await setting.json('ledger', 'trial-balance')).toMatchObject({
      findings: expect.arrayContaining([finding]),
    });

    const inWords = await setting.cli('movement', 'list', '--resource', payment_id);
    expect(inWords.stdout).toMatch(
      /^MOVEMENT +REPORTED +DIRECTION +AMOUNT +IDENTITY +STATE +REASON\nmv_\S+ +\S+ \S+ UTC +in +€12\.00 +B-1 +suspense +amount_differs\n$/,
    );
    const { stdout } = await setting.cli('movement', 'show', id);
    expect(stdout).toMatch(new RegExp(`^Movement: +${id}\nConnector: +${connector}, sandbox\n`));
    expect(stdout).toMatch(/^Names: +B-1, \S+$/m);
    expect(stdout).toMatch(/^Amount: +€12\.00 in$/m);
    expect(stdout).toMatch(/^Value date: +2026-03-02$/m);
    expect(stdout).toMatch(/^Reported: +\S+ \S+ UTC callback$/m);
    expect(stdout).toMatch(new RegExp(`^Resource: +payment ${payment_id}$`, 'm'));
    expect(stdout).toMatch(/^Resolved: +-$/m);
  });

  test('a repeat is one more source, and no more money', async () => {
    const { id, payment_id } = await hold(1_201);
    await report(payment_id, 1_201, { bank_reference: 'B-2' });
    const isNamed = async () => {
      const shown = Object(await setting.json('movement', 'show', id));
      return shown.sources.length === 2 && shown;
    };
    expect(await eventually('the second report', isNamed)).toMatchObject({
      ...{ identity: 'B-2', amount: 1_201, state: 'suspense' },
    });
    expect((await list('--resource', payment_id)).data).toHaveLength(1);
  });

  test('filter, and continue a list at its cursor', async () => {
    const held = [await hold(1_202), await hold(1_203), await hold(1_204)];
    const ids = held.map(({ id }) => id);
    const own = ({ id }: Listed) => ids.includes(id);
    const { data } = await list('--env', 'sandbox', '--connector', setting.service.connector);
    expect(data.filter(own).map(({ id }) => id)).toEqual(ids);
    expect(data.map(({ reported_at }) => reported_at)).toEqual(
      data.map(({ reported_at }) => reported_at).toSorted(),
    );
    expect((await list('--env', 'live')).data).toEqual([]);
    expect((await list('--connector', 'nobody')).data).toEqual([]);

    await resolve(ids[1] ?? '', 'loss');
    expect((await list('--open')).data.filter(own).map(({ id }) => id)).toEqual([ids[0], ids[2]]);

    const pages: string[] = [];
    let cursor: string | null = null;
    do {
      const after: string[] = cursor === null ? [] : ['--after', cursor];
      const page = await list('--limit', '2', ...after);
      pages.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor;
      expect(page.has_more).toBe(cursor !== null);
    } while (cursor !== null);
    expect(pages).toEqual((await list()).data.map(({ id }) => id));
    const { stdout } = await setting.cli('movement', 'list', '--limit', '2');
    expect(stdout).toMatch(/\n\nThere are more: --after mv_\S+\n$/);
  });
});

describe('movement resolve', () => {
  const CLEARING = () => `clearing.${setting.service.connector}`;

  test.each<[as: string, account: () => string]>([
    ['merchant', () => 'balances.main.available'],
    ['bank', CLEARING],
    ['loss', () => 'external.adjustments'],
    ['never_happened', CLEARING],
  ])('--as %s takes all of it out of suspense, once', async (as, account) => {
    const { id, payment_id } = await hold(1_300);
    await fail(payment_id);
    const resolution = { as, amount: 1_300, operator: 'mia', reason: 'Ticket 42', at };
    const done = { id, state: 'resolved', resolution };
    expect(await resolve(id, as)).toMatchObject(done);
    expect(await setting.json('movement', 'show', id)).toMatchObject(done);
    expect(await listEntries(payment_id)).toEqual([
      ['payment_held', `${CLEARING()} -1300`, 'suspense.late 1300'],
      ['payment_resolved', 'suspense.late -1300', `${account()} 1300`],
    ]);
    expect(await setting.json('payment', 'show', payment_id)).toMatchObject({
      payment: { attention: null },
      audit: [{ what: 'mark_failed' }, { what: 'resolve_movement', who: 'mia', why: 'Ticket 42' }],
    });
    expect(await refuse(id, as)).toEqual({
      ...{ code: 'wrong_state', message: `No movement ${id} is in suspense.` },
    });
  });

  test('--as customer leaves it in suspense until the bank has sent it back', async () => {
    const { id, payment_id } = await hold(1_301);
    await fail(payment_id);
    expect(await refuse(id, 'customer', '--amount', '5')).toEqual({
      code: 'wrong_state',
      message: 'The bank sends back all that is in suspense, and no part.',
    });
    expect(await resolve(id, 'customer')).toMatchObject({ state: 'suspense', resolution: null });
    await report(payment_id, 1_301, { bank_reference: 'R-1' }, 'reversed');
    const isBack = async () => {
      const { data } = await list('--resource', payment_id);
      return data.length === 2 && data;
    };
    expect(await eventually('the return', isBack)).toMatchObject([
      { id, direction: 'in', state: 'resolved', resolution: { as: 'customer', operator: null } },
      { identity: 'R-1', direction: 'out', amount: 1_301, state: 'applied', reason: null },
    ]);
    expect((await listEntries(payment_id)).at(-1)).toEqual([
      ...['payment_resolved', 'suspense.late -1301', `${CLEARING()} 1301`],
    ]);
    // The bank answers before or after its report.
    await setting.handle('payment', payment_id).result();
    expect((await setting.service.stores.payments.get(payment_id))?.attention).toBeNull();
  });

  test('a part of it leaves the rest in suspense', async () => {
    const { id, payment_id } = await hold(1_302);
    expect(await resolve(id, 'loss', '--amount', '302')).toMatchObject({ state: 'suspense' });
    const { stdout } = await setting.cli('movement', 'show', id);
    expect(stdout).toMatch(/^State: +suspense$/m);
    expect(stdout).toMatch(/^Resolved: +loss €3\.02$/m);
    expect(await refuse(id, 'bank', '--amount', '1001')).toEqual({
      code: 'wrong_state',
      message: `Of the movement ${id}, 1000 is in suspense (minor units).`,
    });
    const rest = await setting.cli('movement', 'resolve', id, '--as', 'bank', ...WHY);
    expect(rest.stdout).toMatch(/^Movement: +mv_\S+\nState: +resolved\nResolved: +bank\n$/);
    expect((await listEntries(payment_id)).map(([kind, ...lines]) => [kind, lines.at(-1)])).toEqual(
      [
        ['payment_held', 'suspense.late 1302'],
        ['payment_resolved', 'external.adjustments 302'],
        ['payment_resolved', `${CLEARING()} 1000`],
      ],
    );
  });

  test('decides about a part that is larger than the payout, where the bank sent more', async () => {
    const { service, deps } = setting;
    const payout_id = await setting.payout();
    const owner = await service.stores.payouts.get(payout_id);
    const whole = owner?.amount ?? 0;
    const reportPayout = async (name: 'failed' | 'sent', facts: object) =>
      await deliverCallback(deps, {
        ...{ connector: service.connector, resource: 'payout', resource_id: payout_id, name },
        callback: { callback_id: randomUUID(), occurred_at: '2026-03-01T12:00:00.000Z', ...facts },
      });
    await reportPayout('failed', {});
    await service.becomes('payouts', payout_id, { status: 'failed' });
    await reportPayout('sent', {
      amount: whole + 2,
      currency: owner?.currency,
      bank_reference: 'P-1',
    });
    await service.becomes('payouts', payout_id, { attention: 'moved_after_failed' });
    const { data } = await list('--resource', payout_id, '--open');
    expect(data).toMatchObject([{ direction: 'out', amount: whole + 2, identity: 'P-1' }]);
    const id = data[0]?.id ?? '';
    const part = ['--amount', String(whole + 1)];
    expect(await resolve(id, 'loss', ...part)).toMatchObject({ state: 'suspense' });
    expect(await resolve(id, 'bank')).toMatchObject({ state: 'resolved' });
    expect((await listEntries(payout_id)).slice(-2)).toEqual([
      ['payout_resolved', `external.adjustments -${whole + 1}`, `suspense.sent ${whole + 1}`],
      ['payout_resolved', `${CLEARING()} -1`, 'suspense.sent 1'],
    ]);
  });

  test('leaves to mark_settled what the payment itself takes', async () => {
    const { id, payment_id } = await hold(1_303);
    const refusal = await refuse(id, 'merchant');
    expect(refusal).toEqual({
      code: 'wrong_state',
      message: `The payment takes it: send \`mark_settled\` with the movement ${id}.`,
    });
    const settle = ['payment', 'act', payment_id, 'mark_settled', ...WHY, '--movement', id];
    expect(await setting.json(...settle)).toMatchObject({ status: 'settled', attention: null });
    expect(await setting.json('movement', 'show', id)).toMatchObject({ state: 'applied' });
    expect(await refuse(id, 'merchant')).toMatchObject({
      message: `No movement ${id} is in suspense.`,
    });
  });

  test('refuses an unknown id, an unknown outcome and what never was in suspense', async () => {
    const id = `mv_${randomUUID()}`;
    const unknown = { code: 'movement_not_found', message: `There is no movement ${id}.` };
    expect(await setting.refusal('movement', 'show', id)).toEqual(unknown);
    expect(await refuse(id, 'loss')).toEqual(unknown);
    expect(await setting.refusal('movement', 'list', '--after', id)).toEqual(unknown);
    expect(await refuse(id, 'nobody')).toEqual({
      code: 'invalid_usage',
      message: expect.stringContaining('merchant, customer, bank, loss, never_happened.'),
    });

    const payment_id = await setting.payment();
    await report(payment_id, 1_050);
    await setting.service.becomes('payments', payment_id, { status: 'settled' });
    const { data } = await list('--resource', payment_id);
    expect(data).toMatchObject([{ amount: 1_050, state: 'applied', reason: null }]);
    expect(await refuse(data[0]?.id ?? '', 'loss')).toEqual({
      ...{ code: 'wrong_state', message: `No movement ${data[0]?.id} is in suspense.` },
    });
  });

  test('needs the key of an operator on live', async () => {
    const { service, shop } = setting;
    const owner = {
      ...{ _id: randomUUID(), connector: service.connector, livemode: true },
      ...{ account_id: shop.account_id, amount: 5, currency: 'EUR' },
    };
    const source = { kind: 'callback', id: randomUUID() } as const;
    const row = buildMovement(owner, { source, direction: 'in' }, {
      ...{ resource: 'payment', at: new Date().toISOString(), order: 1 },
      ...{ reason: 'late', clashes: 0 },
    } as const);
    await service.mongo.withSession((session) =>
      service.stores.movements.insert({ ...row, entry: row._id }, session),
    );
    expect((await refuse(row._id, 'loss')).code).toBe('operator_key_required');
  });
});

import { randomUUID } from 'node:crypto';
import { deliverCallback } from '../../src/callbacks/deliver';
import { useResourceSetting } from './resource-setting';

const prefix = `movements-${randomUUID().slice(0, 8)}`;
// Of its own: it lists what all accounts have, and restarts workflows that have ended.
const setting = useResourceSetting({ live: { connectors: '', prefix } });

const at = expect.stringMatching(/^\d{4}-.+Z$/);
const WHY = ['--operator', 'mia', '--reason', 'Ticket 42'];

interface Listed {
  id: string;
  reported_at: string;
}

async function list(...more: string[]) {
  const page: { data: Listed[]; has_more: boolean; next_cursor: string | null } = Object(
    await setting.json('movement', 'list', ...more),
  );
  return page;
}

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
  const { data } = await list('--resource', payment_id);
  expect(data).toHaveLength(1);
  return { id: data[0]?.id ?? '', payment_id };
}

const resolve = (id: string, as: string, ...more: string[]) =>
  setting.json('movement', 'resolve', id, '--as', as, ...WHY, ...more);
const refuse = (id: string, as: string, ...more: string[]) =>
  setting.refusal('movement', 'resolve', id, '--as', as, ...WHY, ...more);

test('movement list says so where there is none', async () => {
  expect((await setting.cli('movement', 'list')).stdout).toBe('No movement was reported.\n');
  const open = await setting.cli('movement', 'list', '--open');
  expect(open.stdout).toBe('Nothing is in suspense.\n');
  expect(await list()).toEqual({ data: [], has_more: false, next_cursor: null });
});

describe('movement list and show', () => {
  test('print one movement with its names, sources and resource', async () => {
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
    expect(stdout).toMatch(/^Acquirer’s fee: +€0\.43, borne by the service$/m);
    expect(stdout).toMatch(/^Names: +B-1, \S+$/m);
    expect(stdout).toMatch(/^Amount: +€12\.00 in$/m);
    expect(stdout).toMatch(/^Value date: +2026-03-02$/m);
    expect(stdout).toMatch(/^Reported: +\S+ \S+ UTC callback$/m);
    expect(stdout).toMatch(new RegExp(`^Resource: +payment ${payment_id}$`, 'm'));
    expect(stdout).toMatch(/^Resolved: +-$/m);
  });

  test('filter, and continue a list at its cursor', async () => {
    const held = [await hold(1_202), await hold(1_203), await hold(1_204)];
    const ids = held.map(({ id }) => id);
    const own = ({ id }: Listed) => ids.includes(id);
    const { data } = await list('--env', 'sandbox', '--connector', setting.service.connector);
    expect(data.filter(own).map(({ id }) => id)).toEqual(ids);
    const times = data.map(({ reported_at }) => reported_at);
    expect(times).toEqual(times.toSorted());
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

// What each outcome does to the money is in test/workflows/payment/movements.test.ts.
describe('movement resolve', () => {
  test('takes a part, be it more than the payment, out of suspense, then the rest', async () => {
    const { id, payment_id } = await hold(1_302);
    await setting.json('payment', 'act', payment_id, 'mark_failed', ...WHY);
    expect(await resolve(id, 'loss', '--amount', '1102')).toMatchObject({ state: 'suspense' });
    const { stdout } = await setting.cli('movement', 'show', id);
    expect(stdout).toMatch(/^State: +suspense$/m);
    expect(stdout).toMatch(/^Resolved: +loss €11\.02$/m);
    expect(await refuse(id, 'bank', '--amount', '201')).toEqual({
      code: 'wrong_state',
      message: `Of the movement ${id}, 200 is in suspense (minor units).`,
    });
    const rest = await setting.cli('movement', 'resolve', id, '--as', 'bank', ...WHY);
    expect(rest.stdout).toMatch(/^Movement: +mv_\S+\nState: +resolved\nResolved: +bank\n$/);
    const resolution = { as: 'bank', amount: 200, operator: 'mia', reason: 'Ticket 42', at };
    expect(await setting.json('movement', 'show', id)).toMatchObject({ resolution });
    expect((await refuse(id, 'bank')).message).toBe(`No movement ${id} is in suspense.`);
  });

  test('leaves to mark_settled what the payment itself takes', async () => {
    const { id, payment_id } = await hold(1_303);
    expect((await refuse(id, 'merchant')).message).toContain('send `mark_settled` with the mov');
    const settle = ['payment', 'act', payment_id, 'mark_settled', ...WHY, '--movement', id];
    expect(await setting.json(...settle)).toMatchObject({ status: 'settled', attention: null });
    expect(await setting.json('movement', 'show', id)).toMatchObject({ state: 'applied' });
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

  test('takes a transaction and an address only of a deposit', async () => {
    const { id } = await hold(1_305);
    for (const option of ['--transaction-id', '--address']) {
      expect(await refuse(id, 'bank', option, '0xabc')).toMatchObject({ code: 'invalid_usage' });
    }
  });

  test('needs the key of an operator on live', async () => {
    const { id } = await hold(1_304);
    const rows = setting.service.collection<{ _id: string }>('bank_movements');
    await rows.updateOne({ _id: id }, { $set: { livemode: true } });
    expect((await refuse(id, 'loss')).code).toBe('operator_key_required');
    await rows.updateOne({ _id: id }, { $set: { livemode: false } });
  });
});

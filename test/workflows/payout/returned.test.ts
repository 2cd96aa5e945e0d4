import { reverseOperation } from '../../../src/service/balances/reverse';
import { operatorsAudit } from '../../support/audit';
import { readBalances } from '../../support/book';
import { saveHistory } from '../../support/histories';
import { scriptedBank } from '../../support/workflow-setting';
import { MONEY, type TrackedPayout, useLifecycles } from '../lifecycles';

const { setting, withPayout, withStatus } = useLifecycles();

const CAME_BACK = { code: 'AC04', reason: 'Account closed' };
/** While what came back is in suspense. */
const HELD = { ...MONEY.captured, atBank: 0 };
const BY = { operator: 'ada', reason: 'asked the bank' };

async function readSuspense({ account_id }: TrackedPayout) {
  const at = await readBalances(setting.stores, `${account_id}:sandbox:EUR`);
  return { late: at('suspense.late') ?? 0, held: at('suspense.held') ?? 0 };
}

async function reverse({ id }: TrackedPayout, step: string) {
  const deps = { ...setting, now: () => new Date(), audit: operatorsAudit(setting.stores) };
  return await reverseOperation(deps, `payout_return_held:${id}:${step}`, BY);
}

test('straight from sent: the amount is credited, the fee stays', async () => {
  await withStatus.sent(async ({ id, handle, endBy, stored, eventTypes, money }) => {
    const state = { payout_id: id, status: 'returned', version: 4 };
    expect(await endBy('returned', CAME_BACK)).toEqual(state);
    expect(await stored()).toMatchObject({
      returned: CAME_BACK,
      failure: null,
      completed_at: expect.any(String),
    });
    const types = ['payout.submitted', 'payout.sent', 'payout.returned'];
    expect(await eventTypes()).toEqual(types);
    expect(await money()).toEqual(MONEY.returned);
    await saveHistory(handle, 'payout-returned-from-sent');
  });
});

test('days after it completed, then a second time: credited once, operators see it', async () => {
  await withStatus.sent(async (payout) => {
    const { id, handle, signalAfterEnd, stored, attention, money } = payout;
    await payout.endBy('completed');
    await setting.env.sleep('5 days');
    await signalAfterEnd('returned', CAME_BACK);
    const state = { payout_id: id, status: 'returned', version: 5 };
    expect(await handle.result()).toEqual(state);
    expect(await stored()).toMatchObject({ returned: CAME_BACK, attention: null });
    expect(await money()).toEqual(MONEY.returned);
    await saveHistory(handle, 'payout-returned-days-later');

    // The connector repeats it, since it crashed before it knew that the signal had arrived.
    const [applied] = (await stored()).applied_callbacks?.slice(-1) ?? [];
    await signalAfterEnd('returned', { ...CAME_BACK, callback_id: applied });
    expect(await handle.result()).toEqual(state);
    expect(await attention()).toBeNull();

    await signalAfterEnd('returned', { reason: 'Once more' });
    expect(await handle.result()).toEqual(state);
    const second = { returned: CAME_BACK, attention: 'second_return' };
    expect(await stored()).toMatchObject(second);
    expect(await payout.unapplied()).toEqual(['returned: the payout has come back already']);
    const kinds = ['payout_reserved', 'payout_captured', 'payout_returned'];
    expect(await payout.entryKinds()).toEqual(kinds);
    expect(await money()).toEqual(MONEY.returned);
    expect(payout.told).toEqual([`sendPayout ${id}`]);
    await saveHistory(handle, 'payout-second-return');
  });
});

test('without words it gets ours', async () => {
  await withStatus.sent(async ({ endBy, stored }) => {
    await endBy('returned');
    expect((await stored()).returned).toEqual({
      code: 'returned',
      reason: 'The receiving bank sent the payout back.',
    });
  });
});

test('on day 59 it counts', async () => {
  await withStatus.sent(async ({ handle, endBy, signalAfterEnd, stored, money }) => {
    await endBy('completed');
    await setting.env.sleep('59 days');
    await signalAfterEnd('returned');
    await handle.result();
    expect(await stored()).toMatchObject({ status: 'returned' });
    expect(await money()).toEqual(MONEY.returned);
  });
});

test('one of day 59 counts, also when its report comes on day 61', async () => {
  await withStatus.sent(async ({ handle, endBy, signalAfterEnd, stored }) => {
    await endBy('completed');
    await setting.env.sleep('59 days');
    const occurred_at = new Date(await setting.env.currentTimeMs()).toISOString();
    await setting.env.sleep('2 days');
    await signalAfterEnd('returned', { occurred_at });
    await handle.result();
    expect(await stored()).toMatchObject({ status: 'returned', attention: null });
  });
});

test('on day 61 it is kept and shown; an operator may still mark it as returned', async () => {
  await withStatus.sent(async (payout) => {
    const { id, handle, money } = payout;
    await payout.endBy('completed');
    await setting.env.sleep('61 days');
    const occurred_at = new Date(await setting.env.currentTimeMs()).toISOString();
    await payout.signalAfterEnd('returned', { ...CAME_BACK, occurred_at });
    expect(await handle.result()).toMatchObject({ status: 'completed', version: 4 });
    expect(await payout.attention()).toBe('return_too_late');
    const reason = 'returned: a payout comes back within 60 days';
    expect(await payout.unapplied()).toEqual([reason]);
    expect(await money()).toEqual(HELD);
    expect(await readSuspense(payout)).toEqual({ late: 1_000, held: 0 });

    const state = { payout_id: id, status: 'returned', version: 5 };
    expect(await payout.actAfterEnd('mark_returned')).toEqual(state);
    expect(await handle.result()).toMatchObject({ status: 'returned' });
    expect(await payout.stored()).toMatchObject({
      returned: { code: 'returned', reason: 'The bank reported that the payout came back.' },
      audit: [{ who: 'ada', what: 'mark_returned', before: 'completed', after: 'returned' }],
    });
    expect(await money()).toEqual(MONEY.returned);
    expect(await payout.differences()).toEqual([]);
    await saveHistory(handle, 'payout-marked-returned-after-end');
  });
});

describe('on a rail where nothing comes back', () => {
  const card = { method: 'card_payout', can_be_returned: false } as const;

  test('a return is in suspense, and shown', async () => {
    await withPayout(
      scriptedBank(),
      async ({ signal, shows, endBy, stored, unapplied, money }) => {
        await signal('returned', CAME_BACK);
        await shows('return_not_possible');
        await endBy('completed');
        expect(await stored()).toMatchObject({
          status: 'completed',
          attention: 'return_not_possible',
          returned: null,
        });
        expect(await unapplied()).toEqual(['returned: nothing comes back on this rail']);
        expect(await money()).toEqual(HELD);
      },
      card,
    );
  });

  test('none can be marked as returned', async () => {
    await withPayout(
      scriptedBank(),
      async ({ handle, act, refusal, refusalAfterEnd }) => {
        expect(await refusal('mark_returned')).toEqual({
          code: 'wrong_state',
          message: 'Nothing comes back on the rail card_payout.',
        });
        await act('mark_completed');
        expect(await handle.result()).toMatchObject({ status: 'completed' });
        expect(await refusalAfterEnd('mark_returned')).toMatchObject({ code: 'wrong_state' });
      },
      card,
    );
  });
});

describe('less than was sent', () => {
  const LESS = { amount: 900, currency: 'EUR', bank_reference: 'R-1' };

  test('is in suspense until an operator credits it, whatever is reported meanwhile', async () => {
    await withStatus.sent(async (payout) => {
      const { handle, signal, becomes, money, stored } = payout;
      await signal('returned', LESS);
      await becomes({ attention: 'amount_differs' });
      expect(await readSuspense(payout)).toEqual({ late: 900, held: 0 });
      await signal('returned', LESS);
      await signal('returned');
      await signal('completed');
      await becomes({ status: 'completed' });
      expect(await stored()).toMatchObject({ attention: 'amount_differs' });
      expect(await readSuspense(payout)).toEqual({ late: 900, held: 0 });
      expect(await money()).toEqual({ ...MONEY.captured, atBank: 100 });
      expect(await payout.differences()).toEqual([]);
      await handle.result();
      await saveHistory(handle, 'payout-return-held');
      expect(await payout.refusalAfterEnd('acknowledge')).toMatchObject({
        code: 'money_in_suspense',
      });
      await payout.actAfterEnd('mark_returned', { ...BY, amount: 900 });
      expect(await readSuspense(payout)).toEqual({ late: 0, held: 0 });
      expect(await money()).toMatchObject({ available: 8_975 + 900, atBank: 100 });
      expect(await stored()).toMatchObject({ status: 'returned', attention: null });
      expect(await payout.entryKinds()).toEqual([
        ...['payout_reserved', 'payout_captured', 'payout_return_held', 'payout_returned'],
      ]);
      expect(await payout.differences()).toEqual([]);
    });
  });

  test('that never came is reversed by an operator, once', async () => {
    await withStatus.sent(async (payout) => {
      await payout.signal('returned', LESS);
      await payout.becomes({ attention: 'amount_differs' });
      await reverse(payout, 'R-1');
      expect(await payout.money()).toEqual(MONEY.captured);
      expect(await payout.differences()).toEqual([]);
      await payout.act('mark_returned');
      expect(await payout.money()).toEqual(MONEY.returned);
      expect(await payout.differences()).toEqual([]);
    });
  });

  test('and then fails: what came back is part of what is given back', async () => {
    await withStatus.sent(async (payout) => {
      await payout.signal('returned', LESS);
      await payout.becomes({ attention: 'amount_differs' });
      await payout.endBy('failed');
      expect(await payout.money()).toEqual(MONEY.untouched);
      expect(await readSuspense(payout)).toEqual({ late: 0, held: 0 });
      expect(await payout.differences()).toEqual([]);
    });
  });
});

test('a second return under another reference is held for an operator, who finds it to be the same', async () => {
  await withStatus.sent(async (payout) => {
    await payout.endBy('returned', { bank_reference: 'R-1' });
    for (const bank_reference of ['R-1', 'R-2', 'R-2']) {
      await payout.signalAfterEnd('returned', { bank_reference });
      await payout.handle.result();
    }
    expect(await payout.attention()).toBe('second_return');
    expect(await readSuspense(payout)).toEqual({ late: 0, held: 1_000 });
    expect(await payout.money()).toEqual({ ...MONEY.returned, atBank: -1_000 });
    expect(await payout.differences()).toEqual([]);
    await reverse(payout, 'R-2');
    expect(await payout.money()).toEqual(MONEY.returned);
    await expect(reverse(payout, 'R-2')).resolves.toBeDefined();
    expect(await readSuspense(payout)).toEqual({ late: 0, held: 0 });
    expect(await payout.differences()).toEqual([]);
  });
});

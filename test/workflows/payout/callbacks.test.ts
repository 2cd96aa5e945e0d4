import { saveHistory } from '../../support/histories';
import {
  callback,
  eventTypes,
  scriptedBank,
  useWorkflowSetting,
} from '../../support/workflow-setting';
import { differencesOf } from '../payment/setting';
import {
  actAfterEnd,
  handleOf,
  late,
  MONEY,
  moneyOf,
  type PayingOut,
  payingOut,
  postingsOf,
  shows,
  storedPayout,
} from './setting';

const setting = useWorkflowSetting();

const CAME_BACK = { code: 'AC04', reason: 'Account closed' };

/** Why callbacks about the payout moved nothing. */
async function unapplied(id: string) {
  const rows = await setting.stores.callbacks.forResource(id);
  return rows.map(({ name, unapplied: reason }) => `${name}: ${reason}`);
}

async function complete({ handle }: PayingOut): Promise<void> {
  await handle.signal('completed', callback());
  await handle.result();
}

test('a malformed callback never throws: it is shown, and the payout goes on', async () => {
  await payingOut(setting, scriptedBank(), async ({ handle, id }) => {
    await handle.signal('completed', { callback_id: 7 });
    await handle.signal('returned');
    expect(await shows(handle, 'unreadable callback `returned`')).toContain('malformed_callback');
    await handle.signal('completed', callback());
    expect(await handle.result()).toMatchObject({ status: 'completed', version: 4 });
    expect((await storedPayout(setting, id)).attention).toBe('malformed_callback');
    await saveHistory(handle, 'payout-malformed-callback');
  });
});

test('less than was sent came back: an operator books what came', async () => {
  await payingOut(setting, scriptedBank(), async ({ handle, id, input }) => {
    await handle.signal('returned', callback({ amount: 900, currency: 'EUR' }));
    expect(await shows(handle, 'amount_differs')).toContain('mark_returned');
    expect(await storedPayout(setting, id)).toMatchObject({ status: 'sent' });
    const act = { operator: 'ada', reason: 'asked the bank' };
    const mark = (amount: number) =>
      handle.executeUpdate<unknown, [object]>('mark_returned', { args: [{ ...act, amount }] });
    await expect(mark(1_001)).rejects.toMatchObject({ cause: { type: 'invalid_request' } });
    expect(await mark(900)).toMatchObject({ status: 'returned' });
    const { available, atBank } = MONEY.captured;
    expect(await moneyOf(setting, input)).toMatchObject({
      available: available + 900,
      atBank: atBank - 900,
    });
    expect(await storedPayout(setting, id)).toMatchObject({ attention: null });
    expect(await differencesOf(setting, id)).toEqual([]);
    await saveHistory(handle, 'payout-amount-differs');
  });
});

test('duplicates: the same callback_id counts once, the same news is kept and moves nothing', async () => {
  await payingOut(setting, scriptedBank(), async (paying) => {
    const { handle, id, input } = paying;
    const sent = callback();
    await handle.signal('sent', sent);
    await handle.signal('sent', sent);
    await handle.signal('submitted', callback());
    await complete(paying);
    const again = await late(setting, id, 'completed');
    expect(await again.result()).toEqual({ payout_id: id, status: 'completed', version: 4 });
    expect((await unapplied(id)).sort()).toEqual([
      'completed: the payout has passed this state already',
      'sent: the payout has passed this state already',
      'submitted: the payout has passed this state already',
    ]);
    const { attention } = await storedPayout(setting, id);
    expect(attention).toBeNull();
    expect(await eventTypes(setting, id)).toHaveLength(3);
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
  });
});

describe('returned', () => {
  test('straight from sent: the amount is credited, the fee stays', async () => {
    await payingOut(setting, scriptedBank(), async ({ handle, id, input }) => {
      await handle.signal('returned', callback(CAME_BACK));
      expect(await handle.result()).toEqual({ payout_id: id, status: 'returned', version: 4 });
      expect(await storedPayout(setting, id)).toMatchObject({
        returned: CAME_BACK,
        failure: null,
        completed_at: expect.any(String),
      });
      expect(await eventTypes(setting, id)).toEqual([
        'payout.submitted',
        'payout.sent',
        'payout.returned',
      ]);
      expect(await moneyOf(setting, input)).toEqual(MONEY.returned);
      await saveHistory(handle, 'payout-returned-from-sent');
    });
  });

  test('days after it completed, then a second time: credited once, operators see it', async () => {
    const bank = scriptedBank();
    await payingOut(setting, bank, async (paying) => {
      const { id, input } = paying;
      await complete(paying);
      await setting.env.sleep('5 days');
      const first = await late(setting, id, 'returned', CAME_BACK);
      expect(await first.result()).toEqual({ payout_id: id, status: 'returned', version: 5 });
      expect(await storedPayout(setting, id)).toMatchObject({
        returned: CAME_BACK,
        attention: null,
      });
      expect(await moneyOf(setting, input)).toEqual(MONEY.returned);
      await saveHistory(first, 'payout-returned-days-later');

      // The connector repeats it, since it crashed before it knew that the signal had arrived.
      const [applied] = (await storedPayout(setting, id)).applied_callbacks?.slice(-1) ?? [];
      const repeated = await late(setting, id, 'returned', { ...CAME_BACK, callback_id: applied });
      expect(await repeated.result()).toMatchObject({ status: 'returned', version: 5 });
      expect((await storedPayout(setting, id)).attention).toBeNull();

      const second = await late(setting, id, 'returned', { reason: 'Once more' });
      expect(await second.result()).toMatchObject({ status: 'returned', version: 5 });
      expect(await storedPayout(setting, id)).toMatchObject({
        returned: CAME_BACK,
        attention: 'second_return',
      });
      expect(await unapplied(id)).toEqual(['returned: the payout has come back already']);
      expect(await postingsOf(setting, id)).toEqual([
        'payout_reserved',
        'payout_captured',
        'payout_returned',
      ]);
      expect(await moneyOf(setting, input)).toEqual(MONEY.returned);
      expect(bank.told).toEqual([`sendPayout ${id}`]);
      await saveHistory(second, 'payout-second-return');
    });
  });

  test('without words it gets ours', async () => {
    await payingOut(setting, scriptedBank(), async ({ handle, id }) => {
      await handle.signal('returned', callback());
      await handle.result();
      expect((await storedPayout(setting, id)).returned).toEqual({
        code: 'returned',
        reason: 'The receiving bank sent the payout back.',
      });
    });
  });

  test('on day 59 it counts', async () => {
    await payingOut(setting, scriptedBank(), async (paying) => {
      await complete(paying);
      await setting.env.sleep('59 days');
      await (await late(setting, paying.id, 'returned')).result();
      expect(await storedPayout(setting, paying.id)).toMatchObject({ status: 'returned' });
      expect(await moneyOf(setting, paying.input)).toEqual(MONEY.returned);
    });
  });

  test('on day 61 it is kept and shown; an operator may still mark it as returned', async () => {
    await payingOut(setting, scriptedBank(), async (paying) => {
      const { id, input } = paying;
      await complete(paying);
      await setting.env.sleep('61 days');
      const tooLate = await late(setting, id, 'returned', CAME_BACK);
      expect(await tooLate.result()).toMatchObject({ status: 'completed', version: 4 });
      expect((await storedPayout(setting, id)).attention).toBe('return_too_late');
      expect(await unapplied(id)).toEqual(['returned: a payout comes back within 60 days']);
      expect(await moneyOf(setting, input)).toEqual(MONEY.captured);

      const marked = await actAfterEnd(setting, id, 'mark_returned');
      expect(marked).toEqual({ payout_id: id, status: 'returned', version: 5 });
      const handle = handleOf(setting, id);
      expect(await handle.result()).toMatchObject({ status: 'returned' });
      expect(await storedPayout(setting, id)).toMatchObject({
        returned: { code: 'returned', reason: 'The bank reported that the payout came back.' },
        audit: [{ who: 'ada', what: 'mark_returned', before: 'completed', after: 'returned' }],
      });
      expect(await moneyOf(setting, input)).toEqual(MONEY.returned);
      await saveHistory(handle, 'payout-marked-returned-after-end');
    });
  });

  test('on a rail where nothing comes back: kept and shown, nothing moves', async () => {
    const card = { method: 'card_payout', can_be_returned: false };
    const story = async (paying: PayingOut) => {
      const { handle, id, input } = paying;
      await handle.signal('returned', callback(CAME_BACK));
      await shows(handle, 'return_not_possible');
      await complete(paying);
      expect(await storedPayout(setting, id)).toMatchObject({
        status: 'completed',
        attention: 'return_not_possible',
        returned: null,
      });
      expect(await unapplied(id)).toEqual(['returned: nothing comes back on this rail']);
      expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    };
    await payingOut(setting, scriptedBank(), story, card);
  });
});

describe('contradictions after the end move nothing, operators see them', () => {
  test.each([
    ['failed', 'completed', 'moved_after_failed', MONEY.untouched],
    ['failed', 'returned', 'moved_after_failed', MONEY.untouched],
    ['completed', 'failed', 'failed_after_completed', MONEY.captured],
    ['returned', 'completed', 'moved_after_returned', MONEY.returned],
  ])('%s, then %s: %s', async (end, contradiction, attention, money) => {
    await payingOut(setting, scriptedBank(), async ({ handle, id, input }) => {
      await handle.signal(end, callback());
      await handle.result();
      const again = await late(setting, id, contradiction);
      expect(await again.result()).toEqual({ payout_id: id, status: end, version: 4 });
      expect(await storedPayout(setting, id)).toMatchObject({ status: end, attention });
      expect(await unapplied(id)).toHaveLength(1);
      expect(await moneyOf(setting, input)).toEqual(money);
      await saveHistory(again, `payout-${contradiction}-after-${end}`);
    });
  });
});

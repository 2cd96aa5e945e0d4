import { saveHistory } from '../../support/histories';
import { eventTypes, scriptedBank, useWorkflowSetting } from '../../support/workflow-setting';
import { accepted, moneyOf, refunding, refusalOf, storedRefund } from './setting';

const setting = useWorkflowSetting();

const ACT = { operator: 'ada', reason: 'confirmed by telephone' };

test('a bank that says nothing: overdue, snoozed, overdue again, marked as settled', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id }) => {
    await accepted(handle);
    await setting.env.sleep('71h');
    expect((await storedRefund(setting, id)).attention).toBeNull();
    await setting.env.sleep('2h');
    expect(await storedRefund(setting, id)).toMatchObject({
      status: 'processing',
      attention: 'refund_overdue',
    });
    const snoozed = await handle.executeUpdate<unknown, [object]>('snooze', {
      args: [{ ...ACT, hours: 2 }],
    });
    expect(snoozed).toEqual({ refund_id: id, status: 'processing', version: 1 });
    expect((await storedRefund(setting, id)).attention).toBeNull();
    await setting.env.sleep('3h');
    expect((await storedRefund(setting, id)).attention).toBe('refund_overdue');
    await handle.executeUpdate('mark_settled', { args: [ACT] });
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    const refund = await storedRefund(setting, id);
    expect(refund.attention).toBeNull();
    expect(refund.audit).toMatchObject([
      { who: 'ada', what: 'snooze', before: 'refund_overdue', after: 'no attention' },
      { who: 'ada', what: 'mark_settled', before: 'processing', after: 'settled' },
    ]);
    await saveHistory(handle, 'refund-overdue-marked-settled');
  });
});

test('a mark that says more than lateness stays', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id }) => {
    await accepted(handle);
    await handle.signal('settled', { occurred_at: 'yesterday' });
    await setting.env.sleep('73h');
    expect((await storedRefund(setting, id)).attention).toBe('malformed_callback');
    await handle.executeUpdate('mark_settled', { args: [ACT] });
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  });
});

test('marked as failed: the amount is given back, under our words', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id, payment }) => {
    await accepted(handle);
    await handle.executeUpdate('mark_failed', { args: [ACT] });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await storedRefund(setting, id)).toMatchObject({
      failure: {
        code: 'failed_at_bank',
        message: 'The bank reported that the refund failed.',
      },
      audit: [{ what: 'mark_failed', before: 'processing', after: 'failed' }],
    });
    expect(await eventTypes(setting, payment.payment_id, id)).toEqual(['refund.failed']);
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_050 });
    await saveHistory(handle, 'refund-marked-failed');
  });
});

test('updates of no good shape are refused in words that name the field', async () => {
  await refunding(setting, scriptedBank(), async ({ handle }) => {
    const refusal = (update: string, act: unknown) =>
      refusalOf(handle.executeUpdate<unknown, [unknown]>(update, { args: [act] }));
    for (const [update, act, words] of [
      ['mark_failed', { operator: 'ada' }, /reason/],
      ['mark_settled', null, /must be an object/],
      ['mark_settled', undefined, /must be an object/],
      ['snooze', ACT, /hours/],
      ['snooze', { ...ACT, hours: -1 }, /hours/],
    ] as const) {
      expect(await refusal(update, act)).toEqual({
        code: 'invalid_request',
        message: expect.stringMatching(words),
      });
    }
    expect(await handle.query('state')).toMatchObject({ status: 'processing', version: 1 });
    await handle.executeUpdate('mark_settled', { args: [ACT] });
  });
});

test('two operators at once: the second is refused in words, the refund moves once', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id, payment }) => {
    await accepted(handle);
    // While the refund's document is held, the first move is asked for but not made.
    const session = setting.mongo.startSession();
    session.startTransaction();
    await setting.stores.refunds.update(id, 1, { request_id: 'held' }, { audit: [] }, session);
    const [first, second] = [
      await handle.startUpdate('mark_settled', { args: [ACT], waitForStage: 'ACCEPTED' }),
      await handle.startUpdate('mark_failed', { args: [ACT], waitForStage: 'ACCEPTED' }),
    ];
    await session.abortTransaction();
    await session.endSession();
    expect(await first.result()).toEqual({ refund_id: id, status: 'settled', version: 2 });
    expect(await refusalOf(second.result())).toEqual({
      code: 'wrong_state',
      message: 'The refund is settled; a final state is never left.',
    });
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 2 });
    expect(await eventTypes(setting, payment.payment_id, id)).toEqual(['refund.settled']);
    await saveHistory(handle, 'refund-two-operators');
  });
});

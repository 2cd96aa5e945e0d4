import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from '../../support/http';
import {
  callback,
  eventTypes,
  openPayment,
  paymentInput,
  scriptedBank,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { refusalOf } from '../refund/setting';

const setting = useWorkflowSetting();

const ACT = { operator: 'ada', reason: 'confirmed by telephone' };

interface State {
  status: string;
}

interface Paying {
  handle: WorkflowHandle;
  id: string;
}

/** Runs `story` with a payment that waits for its customer, or that was authorised. */
function at(
  status: 'awaiting_customer' | 'authorized',
  story: (paying: Paying) => Promise<void>,
): Promise<void> {
  return withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    const { handle } = await openPayment(setting, input);
    if (status === 'authorized') {
      await handle.signal('authorized', callback());
    }
    await eventually(status, async () => (await handle.query<State>('state')).status === status);
    await story({ handle, id: input.payment_id });
  });
}

const act = ({ handle }: Paying, update: string, args: unknown = ACT) =>
  handle.executeUpdate<object, [unknown]>(update, { args: [args] });

async function stored(id: string) {
  const payment = await setting.stores.payments.get(id);
  if (payment === null) throw new Error('not stored');
  return payment;
}

test.each([
  ['awaiting_customer', 'mark_failed', 'failed', 3, null],
  ['awaiting_customer', 'mark_settled', 'settled', 4, 1_050],
  ['authorized', 'mark_failed', 'failed', 4, null],
  ['authorized', 'mark_settled', 'settled', 4, 1_050],
] as const)(
  '%s, %s: %s, with who, when, what and why',
  async (from, what, status, version, available) => {
    await at(from, async (paying) => {
      const { handle, id } = paying;
      expect(await act(paying, what)).toEqual({ payment_id: id, status, version });
      expect(await handle.result()).toEqual({ payment_id: id, status, version });
      const payment = await stored(id);
      expect(payment.audit).toEqual([
        {
          id: `${id}:${version}`,
          who: 'ada',
          what,
          why: 'confirmed by telephone',
          when: payment.updated_at,
          before: from,
          after: status,
        },
      ]);
      const message = 'The bank reported that the payment failed.';
      expect(payment.failure).toEqual(
        status === 'failed' ? { code: 'failed_at_bank', message } : null,
      );
      expect((await eventTypes(setting, id)).at(-1)).toBe(`payment.${status}`);
      const [balance] = await setting.stores.ledger.balances(payment.account_id, false);
      expect(balance?.available ?? null).toBe(available);
    });
  },
);

test('in a wrong state, an act is refused in words and changes nothing', async () => {
  await at('awaiting_customer', async (paying) => {
    expect(await refusalOf(act(paying, 'snooze', { ...ACT, hours: 1 }))).toEqual({
      code: 'wrong_state',
      message: 'Only an authorised payment can be snoozed; it is awaiting_customer.',
    });
    expect(await stored(paying.id)).toMatchObject({ version: 2, audit: [] });
  });
});

test('updates of no good shape are refused in words that name the field', async () => {
  await at('authorized', async (paying) => {
    for (const [update, args, words] of [
      ['mark_failed', { operator: 'ada' }, /reason/],
      ['mark_failed', { reason: 'no name' }, /operator/],
      ['mark_settled', null, /must be an object/],
      ['mark_settled', { operator: ' ', reason: 'x' }, /operator/],
      ['snooze', ACT, /hours/],
      ['snooze', { ...ACT, hours: -1 }, /hours/],
    ] as const) {
      expect(await refusalOf(act(paying, update, args))).toEqual({
        code: 'invalid_request',
        message: expect.stringMatching(words),
      });
    }
    expect(await paying.handle.query('state')).toMatchObject({ status: 'authorized', version: 3 });
  });
});

test('two operators at once: the second is refused in words, the payment moves once', async () => {
  await at('authorized', async ({ handle, id }) => {
    // While the payment's document is held, the first move is asked for but not made.
    const session = setting.mongo.startSession();
    session.startTransaction();
    await setting.stores.payments.update(id, 3, { request_id: 'held' }, { audit: [] }, session);
    const args: [object] = [ACT];
    const first = await handle.startUpdate<object, [object]>('mark_settled', {
      args,
      waitForStage: 'ACCEPTED',
    });
    const second = await handle.startUpdate<object, [object]>('mark_failed', {
      args,
      waitForStage: 'ACCEPTED',
    });
    await session.abortTransaction();
    await session.endSession();
    expect(await first.result()).toEqual({ payment_id: id, status: 'settled', version: 4 });
    expect(await refusalOf(second.result())).toEqual({
      code: 'wrong_state',
      message: 'The payment is settled; a final state is never left.',
    });
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    expect(await eventTypes(setting, id)).toEqual([
      'payment.awaiting_customer',
      'payment.authorized',
      'payment.settled',
    ]);
    expect(await stored(id)).toMatchObject({ failure: null, audit: [{ what: 'mark_settled' }] });
  });
});

import { saveHistory } from '../../support/histories';
import { withHeldUpdates } from '../../support/hold-updates';
import { ACT, MONEY, refusalOf, unlessUnreachable, useLifecycles } from '../lifecycles';

const { setting, withStatus } = useLifecycles();

/** A payment of which nothing is posted. */
const UNPOSTED = { available: undefined, clearing: undefined };
const PAID = { available: 1_050, clearing: -1_050 };

test.each([
  ['payment', 'awaiting_customer', 'mark_failed', 'failed', 3, UNPOSTED],
  ['payment', 'awaiting_customer', 'mark_settled', 'settled', 4, PAID],
  ['payment', 'authorized', 'mark_failed', 'failed', 4, UNPOSTED],
  ['payment', 'authorized', 'mark_settled', 'settled', 4, PAID],
  ['refund', 'processing', 'mark_failed', 'failed', 2, { refunded: 0, available: 1_050 }],
  ['refund', 'processing', 'mark_settled', 'settled', 2, { refunded: 1_050, available: 0 }],
  ['payout', 'submitted', 'mark_failed', 'failed', 3, MONEY.untouched],
  ['payout', 'submitted', 'mark_completed', 'completed', 4, MONEY.captured],
  ['payout', 'sent', 'mark_failed', 'failed', 4, MONEY.untouched],
  ['payout', 'sent', 'mark_completed', 'completed', 4, MONEY.captured],
  ['payout', 'sent', 'mark_returned', 'returned', 4, MONEY.returned],
] as const)(
  'a %s that is %s, %s: it is %s, with who, when, what and why',
  (resource, from, what, status, version, expected) =>
    withStatus[from](async ({ id, handle, act, stored, eventTypes, money }) => {
      const state = { [`${resource}_id`]: id, status, version };
      expect(await unlessUnreachable(() => act(what))).toEqual(state);
      expect(await handle.result()).toEqual(state);
      const document = await stored();
      expect(document.audit).toEqual([
        {
          id: `${id}:${version}`,
          who: 'ada',
          what,
          why: 'confirmed by telephone',
          when: document.updated_at,
          before: from,
          after: status,
        },
      ]);
      const words = `The bank reported that the ${resource} `;
      const failure = { code: 'failed_at_bank', message: `${words}failed.` };
      const returned = { code: 'returned', reason: `${words}came back.` };
      expect(document.failure).toEqual(status === 'failed' ? failure : null);
      expect(Object(document).returned ?? null).toEqual(status === 'returned' ? returned : null);
      const events = await eventTypes();
      expect(events).toHaveLength(version - 1);
      expect(events.at(-1)).toBe(`${resource}.${status}`);
      expect(await money()).toMatchObject(expected);
      const history = `${resource}-${from}-${what.replace('_', '-')}`;
      if (resource === 'payout') await saveHistory(handle, history);
      if (resource === 'refund' && status === 'failed')
        await saveHistory(handle, 'refund-marked-failed');
    }),
);

test.each([
  ['payment', withStatus.authorized, { status: 'authorized', version: 3 }],
  ['refund', withStatus.processing, { status: 'processing', version: 1 }],
  ['payout', withStatus.sent, { status: 'sent', version: 3 }],
])(
  'updates of a %s of no good shape are refused in words that name the field',
  (resource, reach, state) =>
    reach(async ({ refusal, handle, act }) => {
      const done = resource === 'payout' ? 'mark_completed' : 'mark_settled';
      for (const [update, args, words] of [
        ['mark_failed', { operator: 'ada' }, /reason/],
        ['mark_failed', { reason: 'no name' }, /operator/],
        [done, null, /must be an object/],
        [done, undefined, /must be an object/],
        [done, { operator: ' ', reason: 'x' }, /operator/],
        ['snooze', ACT, /hours/],
        ['snooze', { ...ACT, hours: -1 }, /hours/],
        ...(resource === 'payout'
          ? ([
              ['resubmit', { reason: 'no name' }, /operator/],
              ['mark_returned', { operator: ' ', reason: 'x' }, /operator/],
            ] as const)
          : []),
      ] as const) {
        const message = expect.stringMatching(words);
        expect(await refusal(update, args)).toEqual({ code: 'invalid_request', message });
      }
      expect(await handle.query('state')).toMatchObject(state);
      await act(done);
    }),
);

const FINAL = 'a final state is never left.';

test.each([
  [
    'payment',
    withStatus.authorized,
    3,
    'mark_settled',
    'settled',
    `The payment is settled; ${FINAL}`,
  ],
  [
    'refund',
    withStatus.processing,
    1,
    'mark_settled',
    'settled',
    `The refund is settled; ${FINAL}`,
  ],
  [
    'payout',
    withStatus.sent,
    3,
    'mark_completed',
    'completed',
    'The payout is completed; only one that is under way can be marked as failed.',
  ],
] as const)(
  'two operators at once: the second is refused in words, the %s moves once',
  (resource, reach, version, update, status, message) =>
    reach(async ({ id, handle, stored, eventTypes, money }) => {
      // While updates are held, the first transition is requested but not made.
      const { payments, refunds, payouts } = setting.stores;
      const store = { payment: payments, refund: refunds, payout: payouts }[resource];
      const start = (name: string) =>
        handle.startUpdate<object, [object]>(name, { args: [ACT], waitForStage: 'ACCEPTED' });
      const [first, second] = await withHeldUpdates(
        store as Pick<typeof refunds, 'update'>,
        async (reached) => {
          const acceptedFirst = await start(update);
          await reached;
          return [acceptedFirst, await start('mark_failed')] as const;
        },
      );
      const state = { status, version: version + 1 };
      expect(await first.result()).toEqual({ [`${resource}_id`]: id, ...state });
      expect(await refusalOf(second.result())).toEqual({ code: 'wrong_state', message });
      expect(await handle.result()).toMatchObject(state);
      expect(await stored()).toMatchObject({ failure: null, audit: [{ what: update }] });
      const events = await eventTypes();
      expect(events).toHaveLength(version);
      expect(events.at(-1)).toBe(`${resource}.${status}`);
      if (resource === 'payout') expect(await money()).toEqual(MONEY.captured);
      if (resource !== 'payment') await saveHistory(handle, `${resource}-two-operators`);
    }),
);

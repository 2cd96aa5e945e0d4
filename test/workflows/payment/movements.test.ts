import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  openPayment,
  openRefund,
  paymentInput,
  refundInput,
} from '../../support/workflow-setting';
import { ACT, refusalOf, type TrackedPayment, trackPayment } from '../lifecycles';
import {
  buildHeld,
  MERCHANT,
  refuseResolve,
  resolve,
  usePaymentStories,
  wrongState,
} from './stories';

/** Holds docs/ledger.md#bank-movements for payments; late funds have a file of their own. */
const { setting, withOpen, withEnded, ...stories } = usePaymentStories();
const { readEntries, readMovements, describeMovements, findReferred, expectState } = stories;

const FIRST = { bank_reference: 'first' };
const MAIN = 'balances.main.available';

/** Reports money in flight that is not what the payment waits for. */
async function reportOdd({ signal, becomes }: TrackedPayment, facts: object): Promise<void> {
  await signal('settled', { bank_reference: 'odd', ...facts });
  await becomes({ attention: 'amount_differs' });
}

describe('a settlement of a different amount', () => {
  test.each([
    ['EUR', 1_049, 'reversed'],
    ['USD', 1_050, 'mark_reversed'],
  ] as const)(
    'in %s is in suspense, and keeps the payment open until it is returned',
    (currency, amount, how) =>
      withOpen(async (payment) => {
        const { id, account_id, handle, stored } = payment;
        const { connector } = payment.input;
        const value_date = '2026-03-01';
        await reportOdd(payment, { amount, currency, value_date });
        const { _id } = await findReferred(payment, 'odd');
        const callback_id = expect.stringMatching(/^cb-/);
        const held = {
          ...{ _id, connector, livemode: false, account_id, resource: 'payment', resource_id: id },
          ...{ order: 3, names: ['odd', callback_id], bank_reference: 'odd' },
          ...{ direction: 'in', amount, currency, value_date, reported_at: expect.any(String) },
          sources: [{ kind: 'callback', id: callback_id, at: expect.any(String) }],
          ...{ reason: 'amount_differs', applied: 0, resolutions: [], state: 'suspense' },
          entry: `payment_held:${id}:${_id}`,
        };
        expect(await readMovements(payment)).toEqual([held]);
        const book = `${account_id}:sandbox:${currency}`;
        expect(await readEntries(payment)).toMatchObject([{ _id: held.entry, book, value_date }]);
        expect(await payment.refusal('cancel', MERCHANT)).toMatchObject({ code: 'cannot_cancel' });
        await setting.env.sleep('31 minutes');
        expect(await stored()).toMatchObject({ status: 'awaiting_customer' });
        if (how === 'reversed') await payment.signal(how, { amount });
        else await payment.act(how);
        expect(await handle.result()).toMatchObject({ status: 'expired' });
        expect(await stored()).toMatchObject({ attention: null });
        const [operator, kind] = how === 'reversed' ? [null, 'callback'] : ['ada', 'act'];
        expect(await readMovements(payment)).toMatchObject([
          { ...held, state: 'resolved', resolutions: [{ as: 'customer', amount, operator }] },
          {
            ...{ direction: 'out', amount, currency, reason: null, state: 'applied' },
            ...{ sources: [{ kind }], entry: `payment_resolved:${id}:${_id}` },
          },
        ]);
        expect(await payment.money()).toMatchObject({ suspense: 0, clearing: 0 });
        if (how === 'reversed') await saveHistory(handle, 'payment-receipt-reversed-expired');
      }),
  );

  test.each([
    ['what came', {}, 999, ['suspense.late -999', `${MAIN} 999`], []],
    [
      'more, as the bank says later',
      { amount: 1_050 },
      1_050,
      ['clearing.BANK -51', 'suspense.late -999', `${MAIN} 1050`],
      ['in - 51 applied'],
    ],
  ])(
    'is posted once, whatever is reported, until an operator credits %s',
    (_what, facts, settled_amount, expected, more) =>
      withOpen(async (payment) => {
        const { signal, stored } = payment;
        const odd = { bank_reference: 'odd', amount: 999 };
        await reportOdd(payment, odd);
        await signal('settled', odd);
        for (const name of ['settled', 'authorized', 'expired'] as const) await signal(name);
        await eventually('all reports', async () => (await payment.unapplied()).length === 5);
        const unchanged = { status: 'awaiting_customer', attention: 'amount_differs' };
        await expectState(payment, { ...unchanged, rows: buildHeld(999) });
        await payment.act('mark_settled', { ...ACT, ...facts });
        expect(await payment.handle.result()).toMatchObject({ status: 'settled' });
        const credited = { amount: 1_050, settled_amount, attention: null };
        expect(await stored()).toMatchObject(credited);
        const { lines = [] } =
          (await readEntries(payment)).find(({ kind }) => kind === 'payment_settled') ?? {};
        const text = lines.map(({ account, amount }) => `${account} ${amount}`);
        expect(text.map((line) => line.replace(/clearing\.\S+/, 'clearing.BANK'))).toEqual(
          expected,
        );
        // The bank repeats the same money, now that the payment is settled.
        await payment.report('settled', odd);
        await expectState(payment, {
          attention: null,
          movements: ['in odd 999 applied', ...more],
          rows: { [MAIN]: settled_amount, clearing: -settled_amount },
          kinds: ['payment_held', 'payment_settled'],
        });
        const refund = (amount: number | null) =>
          openRefund(setting, refundInput(payment.input, { amount }));
        expect(await refusalOf(refund(settled_amount + 1))).toMatchObject({
          code: 'refund_amount_exceeds_balance',
        });
        const { handle, opened } = await refund(null);
        expect((await setting.stores.refunds.get(opened.refund_id))?.amount).toBe(settled_amount);
        // Left open, its instruction would hold the clock once this bank is gone.
        await handle.signal('settled', callback());
        await handle.result();
        await saveHistory(payment.handle, 'payment-amount-differs');
      }),
  );

  test('stays in suspense after a failure and next to late funds', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 999 });
      await payment.act('mark_failed');
      expect(await payment.handle.result()).toMatchObject({ status: 'failed' });
      await payment.report('settled', { bank_reference: 'late', amount: 1_050 });
      await expectState(payment, { attention: 'amount_differs', rows: buildHeld(2_049) });
      const [odd, late] = (await readMovements(payment)).map(({ _id }) => _id);
      const which = `Several movements are in suspense; name one by its id: ${odd}, ${late}.`;
      expect(await payment.refusalAfterEnd('mark_reversed')).toEqual(wrongState(which));
      const named = { ...ACT, movement: odd };
      await payment.actAfterEnd('mark_reversed', named);
      // The bank has still to confirm that the late funds are back.
      await expectState(payment, { attention: 'late_settlement_reversed', rows: buildHeld(1_050) });
      const again = wrongState(`No movement ${odd} is in suspense.`);
      expect(await payment.refusalAfterEnd('mark_reversed', named)).toEqual(again);
      await payment.actAfterEnd('mark_reversed');
      await expectState(payment, { attention: null, rows: {} });
    }));

  test.each([
    ['the true settlement', [], 'unread'],
    ['a malformed callback and the true settlement', [{ callback_id: 7 }], 'malformed'],
  ])('keeps its attention reason over %s', (_what, malformed, which) =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 1_049 });
      for (const each of malformed) await payment.handle.signal('settled', each);
      const settled = await payment.endBy('settled', { amount: 1_050 });
      expect(settled).toMatchObject({ status: 'settled' });
      expect(await payment.attention()).toBe('amount_differs');
      const histories = {
        unread: 'payment-amount-differs-unread',
        malformed: 'payment-malformed-under-mark',
      };
      await saveHistory(payment.handle, histories[which as keyof typeof histories]);
    }),
  );
});

test('an authorization of a different amount posts nothing and needs attention', () =>
  withOpen(async (payment) => {
    await payment.signal('authorized', { amount: 1_051, currency: 'EUR' });
    await payment.becomes({ attention: 'amount_differs' });
    await expectState(payment, { status: 'awaiting_customer', kinds: [] });
    await payment.act('mark_failed');
    expect(await payment.attention()).toBeNull();
  }));

describe('another settlement', () => {
  test.each([
    ['another reference', { bank_reference: 'second' }],
    ['another amount under the same reference', { ...FIRST, amount: 700 }],
  ])('with %s is in suspense, until the customer has it back', (what, facts) =>
    withEnded('settled', async (payment) => {
      const { amount = 1_050, bank_reference }: { amount?: number; bank_reference: string } = facts;
      await payment.report('settled', facts);
      const attention = 'second_settlement';
      const rows = { [MAIN]: 1_050, 'suspense.late': amount, clearing: -1_050 - amount };
      await expectState(payment, { status: 'settled', attention, rows });
      await payment.report('clawed_back');
      await payment.actAfterEnd('claw_back');
      expect(await payment.attention()).toBe(attention);
      const isByOperator = what === 'another reference';
      if (isByOperator) {
        await payment.report('settled', facts);
        await payment.actAfterEnd('mark_reversed');
      } else await payment.report('reversed', { bank_reference: 'back' });
      const movements = [
        ...['in first 1050 applied', `in ${bank_reference} ${amount} resolved`],
        `out ${isByOperator ? '-' : 'back'} ${amount} applied`,
      ];
      await expectState(payment, { attention: null, movements });
      expect(await payment.money()).toMatchObject({ suspense: 0 });
      await saveHistory(payment.handle, 'payment-second-settlement');
    }),
  );

  test('keeps its attention reason where a different amount, held before it, goes back', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 999 });
      await payment.endBy('settled', { ...FIRST, amount: 1_050 });
      await payment.report('settled', { bank_reference: 'second', amount: 700 });
      expect(await payment.attention()).toBe('amount_differs');
      await payment.report('reversed', { amount: 999 });
      expect(await payment.attention()).toBe('second_settlement');
      await payment.report('reversed', { amount: 700 });
      const rows = { [MAIN]: 1_050, clearing: -1_050 };
      await expectState(payment, { attention: null, rows });
    }));

  test.each([
    ['the same reference', FIRST],
    ['no reference', {}],
    ['no reference, in the amount that settled', { amount: 1_050, currency: 'EUR' }],
  ])('with %s is a repeat, and adds nothing', (_what, facts) =>
    withEnded('settled', async (payment) => {
      await payment.report('settled', facts);
      await expectState(payment, { attention: null, kinds: ['payment_settled'] });
      expect(await readMovements(payment)).toMatchObject([
        { bank_reference: 'first', state: 'applied', sources: [{ kind: 'callback' }] },
      ]);
    }),
  );

  test('reported by the bank after an operator names what the operator credited', () =>
    withOpen(async (payment) => {
      await payment.act('mark_settled');
      await payment.handle.result();
      expect(await describeMovements(payment)).toEqual(['in - 1050 applied']);
      for (const _ of ['first', 'repeat']) await payment.report('settled', FIRST);
      await expectState(payment, { attention: null, kinds: ['payment_settled'] });
      expect(await readMovements(payment)).toMatchObject([
        {
          ...{ bank_reference: 'first', names: ['first', expect.stringMatching(/^act:/)] },
          ...{ sources: [{ kind: 'act' }, { kind: 'callback' }] },
          entry: `payment_settled:${payment.id}`,
        },
      ]);
      await payment.report('settled', { bank_reference: 'second' });
      expect(await payment.attention()).toBe('second_settlement');
    }));
});

test('a settled payment that the bank sends back posts nothing, and looks clawed back', () =>
  withEnded('settled', async (payment) => {
    await payment.report('reversed', { bank_reference: 'back' });
    const movements = ['in first 1050 applied'];
    const kinds = ['payment_settled'];
    await expectState(payment, { attention: 'clawed_back', movements, kinds });
    expect(await payment.stored()).toMatchObject({ disputed_at: expect.any(String) });
    await payment.actAfterEnd('claw_back');
    expect(await payment.attention()).toBeNull();
  }));

describe('one reference of the bank', () => {
  test('holds two transfers under one reference as two movements', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 999 });
      for (const _ of ['second', 'repeat']) {
        await payment.signal('settled', { bank_reference: 'odd', amount: 600 });
      }
      await eventually('all reports', async () => (await payment.unapplied()).length === 3);
      const cb = expect.stringMatching(/^cb-/);
      expect(await readMovements(payment)).toMatchObject([
        { bank_reference: 'odd', names: ['odd', cb], amount: 999, state: 'suspense' },
        { bank_reference: 'odd', names: [cb], amount: 600, state: 'suspense' },
      ]);
      const kinds = ['payment_held', 'payment_held'];
      await expectState(payment, { kinds, rows: buildHeld(1_599) });
    }));

  test('settles each of two payments that came under it', () =>
    withOpen(async (payment) => {
      const input = paymentInput(payment.input.connector);
      const { handle } = await openPayment(setting, input);
      const other = trackPayment(setting, input, handle);
      const both = [payment, other];
      // Whoever waits for a result skips time, in which the other one would expire.
      for (const { signal } of both) await signal('settled', FIRST);
      for (const each of both) {
        expect(await each.handle.result()).toMatchObject({ status: 'settled' });
        await each.report('settled', FIRST);
        expect(await each.attention()).toBeNull();
        expect(await describeMovements(each)).toEqual(['in first 1050 applied']);
        expect(await each.differences()).toEqual([]);
      }
      const rows = (await Promise.all(both.map(readMovements))).flat();
      const named = rows.filter(({ names }) => names.includes('first'));
      expect([rows.length, named.length]).toEqual([2, 1]);
    }));
});

describe('an operator who names a movement', () => {
  test('settles the payment with it, and leaves the others in suspense', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 999 });
      await payment.signal('settled', { bank_reference: 'more', amount: 600 });
      await eventually('both reports', async () => (await payment.unapplied()).length === 2);
      const unknown = await payment.refusal('mark_settled', { ...ACT, movement: 'mv_none' });
      expect(unknown).toMatchObject({ code: 'wrong_state' });
      const { _id: movement } = await findReferred(payment, 'more');
      await payment.act('mark_settled', { ...ACT, movement });
      expect(await payment.handle.result()).toMatchObject({ status: 'settled' });
      await expectState(payment, {
        attention: 'amount_differs',
        movements: ['in odd 999 suspense', 'in more 600 applied'],
        rows: { [MAIN]: 600, 'suspense.late': 999, clearing: -1_599 },
      });
      expect(await payment.stored()).toMatchObject({ settled_amount: 600 });
      await payment.actAfterEnd('mark_reversed');
      expect(await payment.attention()).toBeNull();
    }));

  test('credits a part of it, and the rest stays in suspense', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 1_100 });
      await payment.act('mark_settled', { ...ACT, amount: 1_050 });
      expect(await payment.handle.result()).toMatchObject({ status: 'settled' });
      await expectState(payment, {
        attention: 'amount_differs',
        movements: ['in odd 1100 suspense'],
        rows: { [MAIN]: 1_050, 'suspense.late': 50, clearing: -1_100 },
      });
      // The bank sends the rest back.
      await payment.report('reversed', { amount: 50 });
      const movements = ['in odd 1100 resolved', 'out - 50 applied'];
      await expectState(payment, { attention: null, movements });
    }));
});

describe('money in suspense', () => {
  /** Adds a second settlement of 700 to a settled payment. */
  const withSecond = (story: (payment: TrackedPayment, movement: string) => Promise<unknown>) =>
    withEnded('settled', async (payment) => {
      await payment.report('settled', { bank_reference: 'second', amount: 700 });
      await story(payment, (await findReferred(payment, 'second'))._id);
    });
  const SETTLED_ROWS = { [MAIN]: 1_050, clearing: -1_050 };

  test.each([
    ['merchant', MAIN],
    ['bank', 'clearing'],
    ['loss', 'external.adjustments'],
    ['never_happened', 'clearing'],
  ])('is resolved as %s part by part, each with an entry', (as, bearer) =>
    withSecond(async (payment, movement) => {
      const buildRows = (taken: number) => {
        const rows = { [MAIN]: 1_050, clearing: -1_750, 'external.adjustments': 0 };
        const borne = { ...rows, [bearer]: (Reflect.get(rows, bearer) ?? 0) + taken };
        const all = Object.entries({ ...borne, 'suspense.late': 700 - taken });
        return Object.fromEntries(all.filter(([, amount]) => amount !== 0));
      };
      await resolve(payment, as, { amount: 300, movement });
      await expectState(payment, { attention: 'second_settlement', rows: buildRows(300) });
      const left = `Of the movement ${movement}, 400 is in suspense (minor units).`;
      expect(await refuseResolve(payment, as, { amount: 401 })).toEqual(wrongState(left));
      await resolve(payment, as);
      const back = as === 'bank' ? ['out - 300 applied', 'out - 400 applied'] : [];
      await expectState(payment, {
        attention: null,
        rows: buildRows(700),
        movements: ['in first 1050 applied', 'in second 700 resolved', ...back],
      });
      const what = 'resolve_movement';
      expect(await payment.stored()).toMatchObject({ audit: [{ what }, { what }] });
      const by = { as, operator: 'ada', reason: ACT.reason };
      const resolutions = [300, 400].map((amount) => ({ ...by, amount }));
      expect(await findReferred(payment, 'second')).toMatchObject({ applied: 0, resolutions });
      const ids = (await readEntries(payment)).map(({ _id }) => _id);
      const resolved = `payment_resolved:${payment.id}:${movement}`;
      expect(ids.slice(-2)).toEqual([resolved, `${resolved}#2`]);
      await saveHistory(payment.handle, `payment-resolved-as-${as}`);
    }),
  );

  test.each([
    ['the bank has', 'resolve_movement', { as: 'bank' }],
    ['the customer has', 'mark_reversed', {}],
  ])('that %s, as an operator says, is what the bank names later', (_who, act, more) =>
    withSecond(async (payment) => {
      await payment.actAfterEnd(act, { ...ACT, ...more });
      await payment.report('reversed', { bank_reference: 'back', amount: 700 });
      await expectState(payment, {
        attention: null,
        rows: SETTLED_ROWS,
        movements: ['in first 1050 applied', 'in second 700 resolved', 'out back 700 applied'],
        kinds: ['payment_settled', 'payment_held', 'payment_resolved'],
      });
      const sources = [{ kind: 'act' }, { kind: 'callback' }];
      expect(await findReferred(payment, 'back')).toMatchObject({ sources });
    }),
  );

  test('that never came is on no statement, so that both its entries are cleared', () =>
    withSecond(async (payment) => {
      await resolve(payment, 'never_happened');
      const { states } = setting.stores.ledger.collections;
      const cleared = { resource_id: payment.id, cleared_at: { $exists: true } };
      const kinds = (await states.find(cleared).toArray()).map(({ kind }) => kind);
      expect(kinds.toSorted()).toEqual(['payment_held', 'payment_resolved']);
      await expectState(payment, { rows: SETTLED_ROWS });
    }));

  test('goes back to the customer by the bank, which reports it', () =>
    withSecond(async (payment, movement) => {
      const refusal = await refuseResolve(payment, 'customer', { amount: 1 });
      expect(refusal).toMatchObject({ code: 'wrong_state' });
      await resolve(payment, 'customer');
      await payment.shows('reversal at the bank: accepted');
      const instruction = `reversal:${payment.id}:${movement}`;
      expect(payment.told.at(-1)).toBe(`reversePayment ${instruction}`);
      const rows = { [MAIN]: 1_050, 'suspense.late': 700, clearing: -1_750 };
      await expectState(payment, { attention: 'late_settlement_reversed', rows });
      await payment.report('reversed', { bank_reference: 'back', amount: 700 });
      await expectState(payment, { attention: null, rows: SETTLED_ROWS });
      expect(await readMovements(payment)).toMatchObject([
        { state: 'applied' },
        { resolutions: [{ as: 'customer', amount: 700, operator: null }] },
        { direction: 'out', bank_reference: 'back', state: 'applied' },
      ]);
      await saveHistory(payment.handle, 'payment-resolved-as-customer');
    }));

  test('of a payment in flight is taken only by its settlement', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { amount: 999 });
      const { _id: movement } = await findReferred(payment, 'odd');
      const how = `The payment takes it: send \`mark_settled\` with the movement ${movement}.`;
      expect(await refuseResolve(payment, 'merchant')).toEqual(wrongState(how));
      await resolve(payment, 'never_happened');
      await expectState(payment, { status: 'awaiting_customer', attention: null, rows: {} });
      expect(await payment.act('cancel', MERCHANT)).toMatchObject({ status: 'cancelled' });
    }));

  test('in another currency is credited in that currency', () =>
    withOpen(async (payment) => {
      await reportOdd(payment, { currency: 'USD', amount: 1_050 });
      await resolve(payment, 'merchant');
      await payment.becomes({ attention: null });
      const rows = { [`${MAIN} USD`]: 1_050, 'clearing USD': -1_050 };
      await expectState(payment, { rows });
      expect(await payment.endBy('settled', FIRST)).toMatchObject({ status: 'settled' });
    }));
});

import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../../src/service/balances/adjust';
import { saveHistory } from '../../support/histories';
import { describeMovement } from '../../support/movements';
import { readAccountRows } from '../../support/trial-balance';
import { openRefund, refundInput, scriptedBank } from '../../support/workflow-setting';
import { ACT, MONEY, type TrackedPayout, type TrackedRefund, useLifecycles } from '../lifecycles';

/** Holds docs/ledger.md#bank-movements for payouts of 1,000 and refunds of 1,050. */
const { setting, buildDeps, withPayout, withRefund, withStatus } = useLifecycles();

type Subject = TrackedPayout | TrackedRefund;

interface Expected {
  status?: string;
  attention?: string | null;
  movements?: string[];
  /** Kinds of the journal entries from the one that the bank moves. */
  kinds?: string[];
  money?: object;
}

const readMovements = ({ id }: Subject) => setting.stores.movements.forResource(id);

async function expectState(subject: Subject, expected: Expected): Promise<void> {
  const { movements, kinds, money, ...stored } = expected;
  expect(await subject.stored()).toMatchObject(stored);
  if (movements) expect((await readMovements(subject)).map(describeMovement)).toEqual(movements);
  if (kinds) expect((await subject.entryKinds()).slice(1)).toEqual(kinds);
  if (money) expect(await subject.money()).toEqual(money);
  expect(await subject.differences()).toEqual([]);
}

const resolve = ({ actAfterEnd }: Subject, as: string, more: object = {}) =>
  actAfterEnd('resolve_movement', { ...ACT, as, ...more });

/** Reports another amount of what the bank has only queued. */
async function reportOdd({ signal, becomes }: Subject, name: 'sent' | 'settled', amount: number) {
  await signal(name, { bank_reference: 'odd', amount });
  await becomes({ attention: 'amount_differs' });
}

describe('a payout', () => {
  test('that an operator has completed gets the name of the bank, and is posted once', () =>
    withStatus.submitted(async (payout) => {
      await payout.act('mark_completed');
      await payout.handle.result();
      await expectState(payout, { movements: ['out - 1000 applied'] });
      for (const _ of ['first', 'repeat']) {
        await payout.report('completed', { bank_reference: 'A', amount: 1_000 });
      }
      const movements = ['out A 1000 applied'];
      const posted = { kinds: ['payout_captured'], money: MONEY.captured };
      await expectState(payout, { status: 'completed', attention: null, movements, ...posted });
    }));

  test('that is sent under a second reference is in suspense, and completed by its report', () =>
    withStatus.submitted(async (payout) => {
      await payout.signal('sent', { bank_reference: 'A' });
      await payout.signal('sent', { bank_reference: 'B' });
      const attention = 'second_completion';
      await payout.becomes({ status: 'sent', attention });
      const movements = ['out A 1000 applied', 'out B 1000 suspense'];
      const held = { attention, movements, kinds: ['payout_captured', 'payout_held'] };
      await expectState(payout, held);
      await payout.report('completed', { bank_reference: 'B' });
      await expectState(payout, { status: 'completed', ...held });
    }));

  test.each([
    [
      ...(['in suspense', false, 'second_completion'] as const),
      ...(['payout-second-reference', ['out A 1000 applied', 'out B 1000 suspense']] as const),
    ],
    [
      ...(['as its name, from a bank with one for each step', true, null] as const),
      ...(['payout-reference-per-step', ['out B 1000 applied']] as const),
    ],
  ] as const)(
    'that is completed under another reference has this %s',
    (_, reference_per_step, attention, history, movements) =>
      withStatus.submitted(async (payout) => {
        const { connector } = await payout.stored();
        const served = { serves: [], functions: [], contract: 1, reference_per_step };
        const seen = { seen_at: new Date(), stopped: null };
        await setting.stores.capabilities.report(connector, served, seen);
        await payout.signal('sent', { bank_reference: 'A' });
        await payout.report('completed', { bank_reference: 'B' });
        await payout.handle.result();
        await saveHistory(payout.handle, history);
        await payout.report('completed', { bank_reference: 'B' });
        await expectState(payout, { status: 'completed', attention, movements: [...movements] });
      }),
  );

  test('of which more was sent is completed by a part, and the rest never happened', () =>
    withStatus.submitted(async (payout) => {
      await reportOdd(payout, 'sent', 1_100);
      await payout.act('mark_completed');
      await payout.handle.result();
      await expectState(payout, {
        attention: 'amount_differs',
        movements: ['out odd 1100 suspense'],
      });
      await resolve(payout, 'never_happened');
      await expectState(payout, {
        ...{ status: 'completed', attention: null, money: MONEY.captured },
        ...{ movements: ['out odd 1100 resolved'] },
        kinds: ['payout_held', 'payout_captured', 'payout_resolved'],
      });
      // The statement has 1,000, which both explain together.
      const scope = { connector: payout.input.connector, livemode: false, currency: 'EUR' };
      const awaited = await setting.stores.ledger.listUncleared({ ...scope, limit: 10 });
      expect(awaited.map(({ kind, amount }) => [kind, amount])).toEqual([
        ['payout_held', -1_100],
        ['payout_resolved', 100],
      ]);
    }));

  test('that is sent after it has come back is borne by the merchant, who owes the rest', () =>
    withPayout(scriptedBank(), async (payout) => {
      const { account_id } = payout;
      for (const name of ['completed', 'returned'] as const) await payout.report(name);
      await payout.report('completed', { bank_reference: 'again' });
      await expectState(payout, {
        ...{ status: 'returned', attention: 'moved_after_returned' },
        ...{ kinds: ['payout_captured', 'payout_returned', 'payout_held'] },
      });
      const owner = { account_id, livemode: false, currency: 'EUR', balance_account: 'main' };
      const spent = { ...owner, amount: 400 - MONEY.returned.available };
      const deps = buildDeps();
      await adjustBalance(deps, { ...spent, against: 'adjustments' }, ACT, randomUUID());
      await resolve(payout, 'merchant');
      await expectState(payout, { status: 'returned', attention: null });
      expect(await readAccountRows(setting, account_id)).toMatchObject({
        ...{ 'receivable.merchant': -600, clearing: 1_000 },
      });
      const resolutions = [{ as: 'merchant', amount: 1_000, owed: 600 }];
      expect((await readMovements(payout)).at(-1)).toMatchObject({
        state: 'resolved',
        resolutions,
      });
    }));

  describe('whose debit the bank reverses', () => {
    const day = (value_date: string) => ({ amount: 1_000, currency: 'EUR', value_date });
    const reversed = { bank_reference: 'B', ...day('2026-10-06') };
    const again = { bank_reference: 'C', ...day('2026-10-16') };
    const money = { ...MONEY.captured, atBank: 0 };
    const isOpen = { status: 'completed', attention: 'debit_reversed', money };

    test.each([
      ['after', ['debit_reversed', reversed], ['completed', again]],
      ['before', ['completed', again], ['debit_reversed', reversed]],
    ] as const)('is completed where it books it again, reported %s it', (_when, first, second) =>
      withPayout(scriptedBank(), async (payout) => {
        await payout.report('completed', { bank_reference: 'A', ...day('2026-10-05') });
        for (const [name, facts] of [first, second, second]) await payout.report(name, facts);
        const [one, other] = first[0] === 'completed' ? ['out C', 'in B'] : ['in B', 'out C'];
        await expectState(payout, {
          ...{ status: 'completed', attention: null, money: MONEY.captured },
          movements: ['out A 1000 applied', `${one} 1000 resolved`, `${other} 1000 applied`],
          kinds: ['payout_captured', 'payout_held', 'payout_resolved'],
        });
        const entries = await setting.stores.ledger.forResource(payout.id);
        const lines = entries
          .slice(-2)
          .map((entry) => [entry.bank_reference, Number(entry.bank_amount)]);
        const inOrder = [
          ['B', 1_000],
          ['C', -1_000],
        ];
        expect(lines).toEqual(first[0] === 'completed' ? inOrder.toReversed() : inOrder);
      }),
    );

    test.each([
      ['later than in ten days', { ...again, value_date: '2026-10-17' }],
      ['in another amount', { ...again, amount: 999 }],
    ])('needs an operator where it books it again %s', (_what, other) =>
      withPayout(scriptedBank(), async (payout) => {
        await payout.report('completed', { bank_reference: 'A' });
        await payout.report('debit_reversed', reversed);
        await payout.report('completed', other);
        const suspense = [`in B 1000 suspense`, `out C ${other.amount} suspense`];
        await expectState(payout, { movements: ['out A 1000 applied', ...suspense] });
      }),
    );

    test('is returned where the bank keeps it back', () =>
      withPayout(scriptedBank(), async (payout) => {
        await payout.report('completed', { bank_reference: 'A' });
        await payout.report('debit_reversed', reversed);
        const movements = ['out A 1000 applied', 'in B 1000 suspense'];
        await expectState(payout, { ...isOpen, movements });
        await resolve(payout, 'merchant');
        await saveHistory(payout.handle, 'payout-debit-reversed');
        await expectState(payout, {
          ...{ status: 'returned', attention: null, money: MONEY.returned },
          movements: ['out A 1000 applied', 'in B 1000 applied'],
        });
      }));

    test('stays completed where the bank will book it again, as an operator knows', () =>
      withPayout(scriptedBank(), async (payout) => {
        await payout.report('completed', { bank_reference: 'A' });
        await payout.report('debit_reversed', reversed);
        await resolve(payout, 'bank');
        await payout.report('completed', { ...again, value_date: '2026-12-01' });
        await expectState(payout, {
          ...{ status: 'completed', attention: null, money: MONEY.captured },
          movements: ['out A 1000 applied', 'in B 1000 resolved', 'out C 1000 applied'],
        });
      }));
  });

  test('whose return the bank reverses is returned, and owed where it was spent', () =>
    withPayout(scriptedBank(), async (payout) => {
      await payout.report('completed', { bank_reference: 'A' });
      await payout.report('returned', { bank_reference: 'B' });
      await payout.report('return_reversed', { bank_reference: 'C', amount: 1_000 });
      const movements = ['out A 1000 applied', 'in B 1000 applied'];
      await expectState(payout, {
        ...{ status: 'returned', attention: 'return_reversed' },
        movements: [...movements, 'out C 1000 suspense'],
      });
      const owner = { account_id: payout.account_id, livemode: false, currency: 'EUR' };
      const spent = { ...owner, balance_account: 'main', amount: 400 - MONEY.returned.available };
      await adjustBalance(buildDeps(), { ...spent, against: 'adjustments' }, ACT, randomUUID());
      await resolve(payout, 'merchant');
      await expectState(payout, {
        ...{ status: 'returned', attention: null },
        movements: [...movements, 'out C 1000 resolved'],
      });
      expect(await readAccountRows(setting, payout.account_id)).toMatchObject({
        'receivable.merchant': -600,
      });
    }));

  test.each([
    ['the bank reports has come back', 'bank', ['out odd 1100 resolved', 'in - 1100 applied']],
    ['an operator reports was never sent', 'never_happened', ['out odd 1100 resolved']],
  ])('that failed, and of which money is in suspense, %s', (_who, as, movements) =>
    withStatus.submitted(async (payout) => {
      await reportOdd(payout, 'sent', 1_100);
      if (as === 'bank') await payout.signal('failed');
      else await payout.act('mark_failed', { ...ACT, bank_confirmed_not_executed: true });
      await payout.handle.result();
      await expectState(payout, {
        ...{ status: 'failed', movements, money: MONEY.untouched },
        // Whether that is right, an operator knows.
        attention: as === 'bank' ? 'amount_differs' : null,
        kinds: ['payout_held', 'payout_resolved', 'payout_released'],
      });
      const operator = as === 'bank' ? null : 'ada';
      expect((await readMovements(payout))[0]).toMatchObject({
        resolutions: [{ as, amount: 1_100, operator }],
      });
    }),
  );

  test('that moves after it failed, and comes back, is back twice under one reference', () =>
    withPayout(scriptedBank(), async (payout) => {
      for (const name of ['failed', 'completed', 'failed'] as const) {
        await payout.report(name, { bank_reference: 'one' });
      }
      await expectState(payout, {
        ...{ status: 'failed', money: MONEY.untouched },
        movements: [
          expect.stringMatching(/^out ref-\S+ 1000 applied$/),
          ...['in one 1000 applied', 'out one 1000 resolved', 'in one 1000 applied'],
        ],
      });
      await payout.report('failed', { bank_reference: 'one' });
      expect(await readMovements(payout)).toHaveLength(4);
    }));

  test('that comes back in another currency, too, needs an operator until that is resolved', () =>
    withPayout(scriptedBank(), async (payout) => {
      await payout.report('completed');
      const money = { amount: 1_000, currency: 'USD' };
      await payout.report('returned', { ...money, bank_reference: 'usd' });
      const attention = 'amount_differs';
      await expectState(payout, { status: 'completed', attention });
      await payout.report('returned', { ...money, bank_reference: 'eur', currency: 'EUR' });
      const sent = expect.stringMatching(/^out ref-\S+ 1000 applied$/);
      const movements = [sent, 'in usd 1000 suspense', 'in eur 1000 applied'];
      await expectState(payout, { status: 'returned', attention, movements });
      await resolve(payout, 'never_happened');
      await expectState(payout, { status: 'returned', attention: null, money: MONEY.returned });
    }));

  test('of which less is back and that is sent again needs an operator for one after the other', () =>
    withPayout(scriptedBank(), async (payout) => {
      await payout.signal('returned', { bank_reference: 'less', amount: 900 });
      await payout.becomes({ attention: 'amount_differs' });
      await payout.signal('sent', { bank_reference: 'again' });
      await payout.act('mark_returned', { ...ACT, amount: 900 });
      await payout.handle.result();
      await expectState(payout, { status: 'returned', attention: 'second_completion' });
      await resolve(payout, 'loss');
      await expectState(payout, { status: 'returned', attention: null });
    }));
});

describe('a refund', () => {
  test('that fails after it settled can be asked for again once the merchant has it', () =>
    withRefund(scriptedBank(), async (refund) => {
      await refund.endBy('settled', { bank_reference: 'A' });
      await refund.report('failed', { bank_reference: 'back' });
      await expectState(refund, {
        ...{ status: 'settled', attention: 'failed_after_settled' },
        ...{ movements: ['out A 1050 applied', 'in back 1050 suspense'] },
        money: { refunded: 1_050, available: 0 },
      });
      await resolve(refund, 'merchant');
      await expectState(refund, { attention: null, money: { refunded: 0, available: 1_050 } });
      const { handle, opened } = await openRefund(setting, refundInput(refund.payment));
      expect(opened).toMatchObject({ status: 'processing' });
      await handle.terminate('end of test');
    }));

  test('of which less was sent takes it, and gives the rest back to the balance', () =>
    withRefund(scriptedBank(), async (refund) => {
      await refund.shows('instruction at the bank: accepted');
      await reportOdd(refund, 'settled', 900);
      const movement = (await readMovements(refund))[0]?._id;
      for (const as of ['merchant', 'loss']) {
        expect(await refund.refusal('resolve_movement', { ...ACT, as })).toEqual({
          code: 'wrong_state',
          message: `The refund takes it: send \`mark_settled\` with the movement ${movement}.`,
        });
      }
      await refund.act('mark_settled', { ...ACT, movement });
      await refund.handle.result();
      await expectState(refund, {
        ...{ status: 'settled', attention: null, movements: ['out odd 900 applied'] },
        ...{ kinds: ['refund_held', 'refund_settled'] },
        money: { refunded: 900, available: 150 },
      });
    }));
});

import { createMovements } from '../../../activities/movements';
import { inTransaction } from '../../../src/base/mongo';
import type { PaymentCallbackName } from '../../../src/domain/callback/callback';
import { applyMovements } from '../../../src/movements/register';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedBank } from '../../support/workflow-setting';
import { ACT } from '../lifecycles';
import {
  buildHeld,
  refuseResolve,
  resolve,
  type Story,
  usePaymentStories,
  wrongState,
} from './stories';

/**
 * Holds docs/ledger.md#money-that-goes-wrong for money that comes after the end of a payment. Tests
 * that leave an instruction without an answer are last: those hold the clock.
 */
const { setting, buildDeps, withEnded, ...stories } = usePaymentStories();
const { readEntries, readMovements, describeMovements, findReferred, expectState } = stories;

const [SENT_BACK, NOT_SENT_BACK] = ['late_settlement_reversed', 'late_settlement_not_reversed'];
const ONE = { bank_reference: 'one' };
const TWO = { bank_reference: 'two', amount: 700 };
const BACK_TWO = { bank_reference: 'back-two', amount: 700 };

interface Late {
  title: string;
  /** A report or act; then what is in suspense, and the attention reason. */
  steps: [PaymentCallbackName | 'mark_reversed', object, number, string | null][];
  /** Those that came have an entry that holds them, and those that went one that resolves. */
  movements: string[];
  currency?: string;
  /** Returns that the bank got; by default one of all. */
  returns?: string[];
}

describe('late funds', () => {
  test.each<Late>([
    {
      title: 'are in suspense until the bank has returned them, and count once',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        // Sent again under the same id.
        ['settled', ONE, 1_050, SENT_BACK],
        ['reversed', { value_date: '2026-03-02' }, 0, SENT_BACK],
        ['reversed', {}, 0, SENT_BACK],
      ],
      movements: ['in one 1050 resolved', 'out - 1050 applied'],
      returns: [' 1050', ' 1050'],
    },
    {
      title: 'of two settlements are posted and returned one by one',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        ['settled', TWO, 1_750, SENT_BACK],
        ['reversed', BACK_TWO, 1_050, SENT_BACK],
        ['reversed', BACK_TWO, 1_050, SENT_BACK],
        ['reversed', {}, 0, SENT_BACK],
        ['settled', TWO, 0, SENT_BACK],
      ],
      movements: [
        ...['in one 1050 resolved', 'in two 700 resolved'],
        ...['out back-two 700 applied', 'out - 1050 applied'],
      ],
      returns: [' 1050', ':two 700'],
    },
    {
      title: 'of two settlements of one amount are back the oldest first, whichever it was',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        ['settled', { bank_reference: 'two' }, 2_100, SENT_BACK],
        ['reversed', {}, 1_050, SENT_BACK],
        ['reversed', { amount: 1_050 }, 0, SENT_BACK],
      ],
      movements: [
        ...['in one 1050 resolved', 'in two 1050 resolved'],
        ...['out - 1050 applied', 'out - 1050 applied'],
      ],
      returns: [' 1050', ':two 1050'],
    },
    {
      title: 'of two settlements wait for an amount that tells which is back',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        ['settled', TWO, 1_750, SENT_BACK],
        ['reversed', {}, 1_750, 'amount_differs'],
        ['reversed', BACK_TWO, 1_050, SENT_BACK],
        ['reversed', { bank_reference: 'back-one' }, 0, SENT_BACK],
      ],
      movements: [
        ...['in one 1050 resolved', 'in two 700 resolved'],
        ...['out back-two 700 applied', 'out back-one 1050 applied'],
      ],
      returns: [' 1050', ':two 700'],
    },
    {
      title: 'of a different amount are returned in the amount that came',
      steps: [
        ['settled', { ...ONE, amount: 700 }, 700, SENT_BACK],
        ['reversed', { amount: 650 }, 700, 'amount_differs'],
        ['reversed', { amount: 700 }, 0, SENT_BACK],
      ],
      movements: ['in one 700 resolved', 'out - 700 applied'],
      returns: [' 700'],
    },
    {
      title: 'in another currency wait for an operator',
      steps: [['settled', { ...ONE, currency: 'USD' }, 1_050, 'amount_differs']],
      ...{ currency: 'USD', movements: ['in one 1050 suspense'], returns: [] },
    },
    {
      title: 'are in suspense when the bank reports their return in another currency',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        ['reversed', { amount: 1_050, currency: 'USD' }, 1_050, 'amount_differs'],
      ],
      movements: ['in one 1050 suspense'],
    },
    {
      title: 'that the bank returns before it reports that they came are posted once',
      steps: [
        ['reversed', { bank_reference: 'back' }, 0, SENT_BACK],
        ['settled', ONE, 0, SENT_BACK],
      ],
      ...{ movements: ['in one 1050 resolved', 'out back 1050 applied'], returns: [] },
    },
    {
      title: 'that the bank cannot return are returned by hand, and an operator records it',
      steps: [
        ['settled', ONE, 1_050, SENT_BACK],
        ['reversal_failed', {}, 1_050, NOT_SENT_BACK],
        ['mark_reversed', ACT, 0, null],
      ],
      movements: ['in one 1050 resolved', 'out - 1050 applied'],
    },
  ])('$title', async ({ steps, movements, currency = 'EUR', returns = [' 1050'] }) => {
    const sent: string[] = [];
    const bank = scriptedBank({
      reversePayment: async ({ instruction_id, amount }) => {
        sent.push(`${instruction_id} ${amount}`);
        return { outcome: 'accepted', bank_reference: 'back' };
      },
    });
    const story: Story = async (payment) => {
      for (const [name, facts, held, attention] of steps) {
        if (name === 'mark_reversed') await payment.actAfterEnd(name, facts);
        else await payment.report(name, facts);
        await expectState(payment, { attention, rows: buildHeld(held, currency) });
        expect(await payment.differences()).toEqual([]);
      }
      const { _id: two } = await findReferred(payment, 'two').catch(() => ({ _id: '' }));
      const ids = returns.map((each) => each.replace('two', two));
      expect(sent).toEqual(ids.map((each) => `reversal:${payment.id}${each}`));
      const acts = steps.filter(([name]) => name === 'mark_reversed');
      expect(await payment.stored()).toMatchObject({
        audit: acts.map(([what]) => ({ who: 'ada', what })),
      });
      const kinds = movements.map((each) =>
        each.startsWith('in ') ? 'payment_held' : 'payment_resolved',
      );
      await expectState(payment, { movements, kinds });
      const books = new Set((await readEntries(payment)).map(({ book }) => book.split(':')[2]));
      expect([...books]).toEqual([currency]);
      if (movements.length === 2) await saveHistory(payment.handle, 'payment-late-reversed');
    };
    await withEnded('cancelled', story, bank);
  });

  test.each([
    ['known', 'cancelled', { amount: 1_050, currency: 'EUR' }, SENT_BACK, 1_050],
    ['different', 'expired', { amount: 100, currency: 'EUR' }, SENT_BACK, 100],
    ['unknown', 'cancelled', {}, NOT_SENT_BACK, undefined],
  ] as const)(
    'of a late authorization that cannot be voided are returned unless their amount is unknown: %s',
    (_which, how, money, attention, amount) => {
      const voidPayment = async () => ({ outcome: 'already_settled', ...money }) as const;
      const story: Story = async (payment) => {
        const { id, told } = payment;
        await payment.report('authorized');
        const kinds = amount === undefined ? [] : ['payment_held'];
        await expectState(payment, { status: how, attention, kinds });
        const instructions = [`voidPayment void:${id}`, `reversePayment reversal:${id}`];
        expect(told.slice(-2)).toEqual(
          amount === undefined ? ['closeSession', instructions[0]] : instructions,
        );
        // The bank's own report is of the same money.
        const settled = { ...ONE, amount: amount ?? 1_050 };
        await payment.report('settled', settled);
        expect(await readMovements(payment)).toMatchObject([settled]);
        await expectState(payment, { rows: buildHeld(settled.amount) });
      };
      return withEnded(how, story, scriptedBank({ voidPayment }));
    },
  );

  const recordReturn = async (resource_id: string) => {
    const { version = 0, transition = 0 } = (await setting.stores.payments.get(resource_id)) ?? {};
    const source = { kind: 'callback', id: `back-${resource_id}` } as const;
    const about = { kind: 'payment', resource_id, at: new Date().toISOString() } as const;
    const report = { source, direction: 'out' } as const;
    await createMovements(buildDeps()).recordReturn({ ...about, report, version, transition });
  };
  const creditMovements = async (id: string) => {
    const movements = await readMovements({ id });
    const taken = movements.map(({ _id, amount }) => ({ id: _id, amount }));
    await inTransaction(setting.mongo, (session) =>
      applyMovements(setting.stores, id, taken, session),
    );
  };

  test.each([
    ['resolved', recordReturn, SENT_BACK],
    ['applied', creditMovements, null],
  ] as const)(
    'that only the record has as %s, as after a reset, are not called refused or reversed',
    (state, changeRecord, attention) => {
      const bank = scriptedBank({
        reversePayment: async ({ payment_id }) => {
          await changeRecord(payment_id);
          return { outcome: 'outdated' };
        },
      });
      const story: Story = async (payment) => {
        await payment.report('settled', ONE);
        expect(await payment.attention()).toBe(attention);
        expect((await describeMovements(payment))[0]).toBe(`in one 1050 ${state}`);
      };
      return withEnded('cancelled', story, bank);
    },
  );
});

describe('a return that the bank has not answered', () => {
  function silentBank() {
    const { opened, release } = gate();
    let instructions = 0;
    const bank = scriptedBank({
      reversePayment: async () => {
        instructions += 1;
        if (instructions === 1) await opened;
        return { outcome: 'accepted', bank_reference: 'back' };
      },
    });
    return { bank, release };
  }

  test('delays nothing that the bank reports, and cannot be recorded by hand', () => {
    const { bank, release } = silentBank();
    const story: Story = async (payment) => {
      const nothing = wrongState('No money is in suspense.');
      expect(await payment.refusalAfterEnd('mark_reversed')).toEqual(nothing);
      await payment.signalAfterEnd('settled', ONE);
      await payment.becomes({ attention: 'late_money_pending' });
      await expectState(payment, { rows: buildHeld(1_050) });
      const why =
        'The bank is instructed to send the money back. Wait for its answer, or send `give_up_closing`.';
      expect(await payment.refusalAfterEnd('mark_reversed')).toEqual(wrongState(why));
      expect(await refuseResolve(payment, 'loss')).toEqual(wrongState(why));
      await payment.signal('reversed');
      await payment.becomes({ attention: SENT_BACK });
      await expectState(payment, { rows: {} });
      release();
      await payment.handle.result();
      expect(await payment.attention()).toBe(SENT_BACK);
    };
    return withEnded('cancelled', story, bank);
  });

  test.each(['mark_reversed', 'loss', 'merchant'])(
    'is given up by an operator, for what can then be decided: %s',
    (decision) => {
      const bank = scriptedBank({ reversePayment: () => Promise.reject(new Error('retired')) });
      const story: Story = async (payment) => {
        expect(await payment.refusalAfterEnd('give_up_closing')).toMatchObject(
          wrongState('No session, void or reversal of the payment is open at the bank.'),
        );
        await payment.signalAfterEnd('settled', ONE);
        await payment.becomes({ attention: 'late_money_pending' });
        await payment.actAfterEnd('give_up_closing');
        await payment.becomes({ attention: NOT_SENT_BACK });
        await payment.handle.result();
        await saveHistory(payment.handle, 'payment-reversal-given-up');
        await expectState(payment, { rows: buildHeld(1_050) });
        if (decision === 'mark_reversed') await payment.actAfterEnd(decision);
        else await resolve(payment, decision);
        await payment.handle.result();
        const [held] = await describeMovements(payment);
        expect(held).toBe('in one 1050 resolved');
      };
      return withEnded('cancelled', story, bank);
    },
  );

  test('that is given up while the bank executes it counts as the bank answers', () => {
    const { bank, release } = silentBank();
    const story: Story = async (payment) => {
      await payment.signalAfterEnd('settled', ONE);
      await eventually('the instruction', async () =>
        bank.told.some((line) => line.startsWith('reversePayment')),
      );
      await payment.actAfterEnd('give_up_closing');
      release();
      await payment.handle.result();
      expect(await payment.attention()).toBe(SENT_BACK);
    };
    return withEnded('cancelled', story, bank);
  });

  test('is sent again by a new run, with the same id', () => {
    const { bank, release } = silentBank();
    const listReturns = () => bank.told.filter((line) => line.startsWith('reversePayment'));
    const story: Story = async (payment) => {
      await payment.signalAfterEnd('settled', ONE);
      await eventually('the instruction', async () => listReturns().length === 1);
      await payment.handle.terminate('a test');
      await payment.restart();
      await payment.handle.result();
      release();
      expect(listReturns()).toEqual(Array(2).fill(`reversePayment reversal:${payment.id}`));
      expect(await payment.attention()).toBe(SENT_BACK);
      await saveHistory(payment.handle, 'payment-resumed-reversal');
    };
    return withEnded('cancelled', story, bank);
  });
});

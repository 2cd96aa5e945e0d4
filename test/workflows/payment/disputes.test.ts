import type { PaymentCallbackName } from '../../../src/domain/callback/callback';
import { reverseOperation } from '../../../src/service/balances/reverse';
import { operatorsAudit } from '../../support/audit';
import { saveHistory } from '../../support/histories';
import {
  callback,
  openRefund,
  refundInput,
  scriptedBank,
  settledPayment,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { postOnce } from '../../support/write-once';
import { refusalOf } from '../lifecycles';
import { ACT, actAfterEnd, bookOf, differencesOf, reportAfterEnd, storedPayment } from './setting';

const setting = useWorkflowSetting();

/** Settles a payment of 1,050, and tells the story of its disputes. */
async function settled(story: (payment: Settled) => Promise<void>): Promise<void> {
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = await settledPayment(setting, connector);
    const { payment_id: id, account_id } = input;
    await story({
      id,
      input,
      book: () => bookOf(setting, account_id),
      report: (name, facts = {}) => reportAfterEnd(setting, id, name, callback(facts)),
      act: (what, facts = {}) => actAfterEnd(setting, id, what, { ...ACT, ...facts }),
      refund: async (amount) => {
        const { opened } = await openRefund(setting, refundInput(input, { amount }));
        return opened;
      },
    });
    expect(await differencesOf(setting, id)).toEqual([]);
    expect(await differencesOf(setting, account_id)).toEqual([]);
  });
}

interface Settled {
  id: string;
  input: Awaited<ReturnType<typeof settledPayment>>;
  book: () => ReturnType<typeof bookOf>;
  report: (name: PaymentCallbackName, facts?: object) => ReturnType<typeof reportAfterEnd>;
  act: (what: 'claw_back' | 'dispute_won', facts?: object) => Promise<unknown>;
  refund: (amount: number | null) => Promise<unknown>;
}

const stored = (id: string) => storedPayment(setting, id);
const entriesOf = async (id: string) =>
  (await setting.stores.ledger.forResource(id)).map(({ _id }) => _id.replace(id, 'ID'));
const whysOf = async (id: string) =>
  (await setting.stores.callbacks.forResource(id)).flatMap(({ unapplied }) => unapplied ?? []);

/** Spends what the merchant has; once in a test. */
async function spend({ input }: Settled, amount: number): Promise<void> {
  const { account_id, livemode, currency } = input;
  const legs = [
    { account: 'balances.main.available', amount: -amount },
    { account: 'external.adjustments', amount },
  ];
  const owner = { account_id, livemode, currency, at: new Date().toISOString() };
  const entry = { kind: 'adjusted', resource_id: `spent-${input.payment_id}`, ...owner, legs };
  await postOnce(setting, { ...entry, kind: 'adjusted' });
}

const reverse = (operation: string) => {
  const { mongo, stores } = setting;
  const now = () => new Date();
  const deps = { mongo, stores, now, audit: operatorsAudit(stores), approvalLimit: 0 };
  return reverseOperation(deps, operation, { operator: 'mia', reason: 'the bank erred' });
};

test('several disputes: each debits at once with its fee, and what is won comes back', async () => {
  await settled(async (payment) => {
    const { id, report, book, refund } = payment;
    const first = { dispute_id: 'D1', amount: 400, currency: 'EUR', fee: 15 };
    await report('dispute_opened', first);
    await report('dispute_opened', first);
    expect(await book()).toMatchObject({ available: 635, clearing: -635 });
    expect(await refusalOf(refund(1))).toMatchObject({ code: 'payment_disputed' });
    await spend(payment, 600);
    await report('dispute_opened', { dispute_id: 'D2', amount: 300 });
    expect(await book()).toMatchObject({ available: 0, receivable: -265 });
    await report('dispute_lost', { dispute_id: 'D1' });
    expect(await refusalOf(refund(1))).toMatchObject({ code: 'payment_disputed' });
    const won = { dispute_id: 'D2', amount: 300, currency: 'EUR' };
    const handle = await report('dispute_won', won);
    await report('dispute_won', won);
    expect(await book()).toMatchObject({ available: 300, receivable: -265 });
    expect(await stored(id)).toMatchObject({
      attention: null,
      disputes: [
        { id: 'D1', amount: 400, fee: 15, held: 415, owed: 0, state: 'lost' },
        { id: 'D2', amount: 300, fee: 0, held: 35, owed: 265, state: 'won', won: 300 },
      ],
    });
    expect(await entriesOf(id)).toEqual([
      'payment_settled:ID',
      'payment_dispute_opened:ID:D1',
      'payment_dispute_opened:ID:D2',
      'payment_dispute_won:ID:D2',
    ]);
    expect(await whysOf(id)).toEqual(Array(2).fill('the dispute is posted already'));
    expect(await refusalOf(refund(651))).toMatchObject({ code: 'refund_amount_exceeds_balance' });
    await refund(300);
    await saveHistory(handle, 'payment-disputes');
  });
});

type Told = [name: PaymentCallbackName, facts: object];
const OPENED: Told = ['dispute_opened', { dispute_id: 'D1', amount: 400, fee: 15 }];

test.each<[string, Told[], Told, string]>([
  ['of more than the payment', [], ['dispute_opened', { amount: 1_051 }], '1050 is left'],
  ['of more than is left', [OPENED], ['dispute_opened', { amount: 651 }], '650 is left'],
  ['in another currency', [], ['dispute_opened', { currency: 'USD' }], 'in USD'],
  ['known with another fee', [OPENED], ['dispute_opened', { dispute_id: 'D1' }], 'another amount'],
  ['won before it is opened', [], ['dispute_won', { dispute_id: 'D1' }], 'no such dispute'],
  ['that is not known', [OPENED], ['dispute_lost', { dispute_id: 'D2' }], 'no such dispute'],
  ['won with more than it took', [OPENED], ['dispute_won', { amount: 401 }], 'more came back'],
  ['won with more than its fee', [OPENED], ['dispute_won', { fee: 16 }], 'more came back'],
  ['lost with another amount', [OPENED], ['dispute_lost', { amount: 399 }], 'another amount'],
  [
    'lost after it was won',
    [OPENED, ['dispute_won', {}]],
    ['dispute_lost', { dispute_id: 'D1' }],
    'is won already',
  ],
])('a dispute %s changes nothing, and waits for an operator', async (_, before, last, why) => {
  await settled(async ({ id, report, book }) => {
    for (const [name, facts] of before) await report(name, facts);
    const [books, { disputes }] = [await book(), await stored(id)];
    expect((await stored(id)).attention).toBeNull();
    const handle = await report(...last);
    expect(await stored(id)).toMatchObject({ attention: 'dispute_differs' });
    expect((await stored(id)).disputes).toEqual(disputes);
    expect(await book()).toEqual(books);
    expect(await whysOf(id)).toEqual([expect.stringContaining(why)]);
    if (before.length === 0) await saveHistory(handle, 'payment-dispute-differs');
  });
});

test('a dispute that was lost is won by arbitration, and then closed', async () => {
  await settled(async ({ id, report, book }) => {
    for (const [name, facts] of [OPENED, ['dispute_lost', {}] satisfies Told]) {
      await report(name, facts);
    }
    expect(await book()).toMatchObject({ available: 635 });
    await report('dispute_won', { amount: 400 });
    expect(await book()).toMatchObject({ available: 1_035 });
    const { attention, disputes } = await stored(id);
    expect({ attention, disputes }).toMatchObject({
      attention: null,
      disputes: [{ id: 'D1', state: 'won', won: 400, fee_returned: 0 }],
    });
    await report('dispute_lost', { dispute_id: 'D1' });
    expect(await stored(id)).toMatchObject({ attention: 'dispute_differs' });
  });
});

test('a chargeback comes in parts, each once, up to the amount of the payment', async () => {
  await settled(async ({ id, report, act, book, refund }) => {
    await report('clawed_back');
    await act('claw_back', { amount: 400, operation_id: 'part-1' });
    await act('claw_back', { amount: 400, operation_id: 'part-1' });
    const answer = refusalOf(act('claw_back', { amount: 500, operation_id: 'part-1' }));
    expect(await answer).toMatchObject({ code: 'wrong_state' });
    await act('claw_back', { amount: 300, operation_id: 'part-2' });
    expect(await book()).toMatchObject({ available: 350, clearing: -350 });
    const more = await refusalOf(act('claw_back', { amount: 351 }));
    expect(more).toMatchObject({ message: expect.stringContaining('1050, and 700 is taken back') });
    expect(await refusalOf(refund(351))).toMatchObject({ code: 'refund_amount_exceeds_balance' });
    await refund(50);
    expect(await entriesOf(id)).toEqual([
      'payment_settled:ID',
      'payment_clawed_back:ID',
      'payment_clawed_back:ID:part-2',
    ]);
    await act('claw_back');
    expect(await refusalOf(act('claw_back'))).toMatchObject({
      message: expect.stringContaining('posted already'),
    });
    expect(await refusalOf(refund(1))).toMatchObject({ code: 'payment_disputed' });
  });
});

test('an operator lifts a dispute: of several, by its id; the payment can be refunded again', async () => {
  await settled(async (payment) => {
    const { id, report, act, book, refund } = payment;
    const why = async (facts: object = {}) => {
      const refusal = await refusalOf(act('dispute_won', facts));
      return refusal?.message;
    };
    expect(await why()).toBe('The payment is not disputed.');
    await report('clawed_back');
    await act('dispute_won');
    expect(await stored(id)).toMatchObject({ attention: null, disputed_at: null });
    await refund(50);
    await act('claw_back', { amount: 400 });
    await report(...OPENED);
    expect(await why()).toContain('several disputes');
    expect(await why({ dispute_id: 'D2' })).toContain('no dispute D2');
    expect(await why({ dispute_id: 'D1', fee: 16 })).toContain('is 15');
    await report('dispute_lost', { dispute_id: 'D1' });
    const before = await book();
    await act('dispute_won', { dispute_id: 'D1', fee: 15 });
    expect((await book()).available).toBe(Number(before.available) + 415);
    expect(await why({ dispute_id: 'D1' })).toContain('no dispute D1');
    await act('dispute_won');
    expect(await book()).toMatchObject({ available: 1_000, clearing: -1_050 });
    await refund(null);
    expect((await stored(id)).refunded).toBe(1_050);
  });
});

test('a chargeback is reversed once, and what is still owed is paid by it', async () => {
  await settled(async (payment) => {
    const { id, act, book, refund } = payment;
    await spend(payment, 1_000);
    await act('claw_back');
    expect(await book()).toMatchObject({ available: 0, receivable: -1_000 });
    const operation = `payment_clawed_back:${id}`;
    const won = await reverse(operation);
    expect(won).toMatchObject({ amount: 1_050 });
    await reverse(operation);
    expect(await book()).toMatchObject({ available: 50, receivable: 0, clearing: -1_050 });
    const lifted = await refusalOf(act('dispute_won'));
    expect(lifted).toMatchObject({ message: 'The payment is not disputed.' });
    expect(await stored(id)).toMatchObject({ disputes: [{ state: 'won', is_reversed: true }] });
    await refund(1);
    await act('claw_back', { amount: 100, operation_id: 'again' });
    await act('dispute_won');
    const again = reverse(`${operation}:again`);
    await expect(again).rejects.toMatchObject({ code: 'not_reversible' });
  });
});

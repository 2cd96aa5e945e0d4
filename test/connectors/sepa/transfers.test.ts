import { WithStartWorkflowOperation, type Workflow } from '@temporalio/client';
import { buildCreditorReference } from '../../../src/domain/payment/creditor-reference';
import { advance, repeatIfBehind } from '../../api/clock-setting';
import { useHook } from '../../support/hook';
import { eventually, idealPayment } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { type Account, useAccount, useService } from '../../support/service';
import { IBAN, makePrefix, ROUTES, useSepa } from './world';

const AMOUNT = 4_950;
/** Time that a cancellation gives the bank. */
const BANK_MS = 3_000;

describeWithBank('payments by transfer', () => {
  const prefix = makePrefix();
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
  const world = useSepa(service, prefix);
  const hook = useHook(service);
  const shop = useAccount(service);

  const stored = async (id: string) => {
    const payment = await service.stores.payments.get(id);
    if (payment === null) throw new Error('There is no such payment.');
    return payment;
  };
  /** Creates a payment, and reads what the customer has to transfer. */
  const open = async (account: Account = shop) => {
    const { body, status, text } = await account.post(
      '/v1/payments',
      idealPayment({
        ...{ method: 'multibanco', country: 'PT', amount: AMOUNT },
        customer: { email: 'payer@example.com' },
      }),
    );
    if (status !== 201) throw new Error(text);
    const { instructions } = await stored(body.id);
    return { id: body.id, instructions, reference: instructions?.reference ?? '' };
  };
  const settles = (id: string) => service.becomes('payments', id, { status: 'settled' });
  const read = async (id: string) => (await shop.get(`/v1/payments/${id}`)).body;
  const callbacks = async (id: string) =>
    (await service.stores.callbacks.forResource(id)).map(({ name, body }) => [
      name,
      body.bank_reference,
    ]);
  const attention = (id: string, reason: string) =>
    service.becomes('payments', id, { attention: reason });
  const held = async (id: string) =>
    ((await stored(id)).receipts ?? []).map(({ amount, reason, state }) => [amount, reason, state]);
  const act = (payment_id: string, name: string) =>
    service.temporal.workflow.executeUpdateWithStart<Workflow, object, [object]>(name, {
      args: [{ operator: 'ada', reason: 'ticket 1' }],
      startWorkflowOperation: new WithStartWorkflowOperation('payment', {
        ...{ workflowId: `payment:${payment_id}`, taskQueue: service.queues.lifecycle },
        args: [{ payment_id, resume: true, request_id: 'test' }],
        workflowIdConflictPolicy: 'USE_EXISTING',
      }),
    });
  const balance = async (account: Account = shop) => {
    const rows = await service.stores.ledger.balances(account.account_id, false);
    return Number(rows.find(({ balance_account }) => balance_account === 'main')?.available ?? 0);
  };

  test('the whole amount settles it, and the webhook says so', async () => {
    await hook.register(shop);
    const { id, instructions, reference } = await open();
    expect(await read(id)).toMatchObject({ status: 'awaiting_customer', method: 'multibanco' });
    expect(instructions).toEqual({
      ...{ iban: IBAN, account_holder: 'ACME Corporation', bic: 'MOCKNL2A', amount: AMOUNT },
      reference: expect.stringMatching(/^RF[0-9]{18}$/),
    });
    const before = await balance();
    const { id: number } = await world.bank.credit({ amount: AMOUNT, reference });
    await settles(id);
    expect(await balance()).toBe(before + AMOUNT);
    expect(await callbacks(id)).toEqual([['settled', `MB-RCV-${number}`]]);
    const types = () => hook.events(id).map(({ type }) => type);
    await eventually('the webhook', async () => types().includes('payment.settled'));
    expect(JSON.stringify(await stored(id))).not.toContain('Zephyrine');
    expect(world.logged.join('')).not.toContain('Zephyrine');
  });

  test('a reference is found in a text that the bank cuts at 35', async () => {
    const { id, reference } = await open();
    const grouped = reference.replace(/(.{4})(?=.)/g, '$1 ');
    await world.bank.credit({ amount: AMOUNT, note: `For the blue flowers, ${grouped}`, wrap: 35 });
    await settles(id);
  });

  test('a movement that is reported three times counts once', async () => {
    const { id, reference } = await open();
    const before = await balance();
    await world.bank.credit({ amount: AMOUNT, note: reference });
    await settles(id);
    await world.drained();
    const name = world.listIn('processed').findLast((each) => each.startsWith('camt.054')) ?? '';
    const text = world.readIn('processed', name);
    world.deliver('again.xml', text.replaceAll(/MB-C054-ACME-\d+/g, 'MB-C054-AGAIN'));
    await world.drained();
    await world.advance(1);
    await world.drained();
    expect(world.listIn('processed')).toContain('again.xml');
    expect(await callbacks(id)).toHaveLength(1);
    expect((await world.book.payments.findOne({ _id: id }))?.credits).toHaveLength(1);
    expect(await balance()).toBe(before + AMOUNT);
    expect(await held(id)).toEqual([]);
  });

  test('less waits for the operator, and what is missing comes later', async () => {
    const { id, reference } = await open();
    const before = await balance();
    await world.bank.credit({ amount: 4_000, reference });
    await attention(id, 'amount_differs');
    expect((await read(id)).status).toBe('awaiting_customer');
    expect((await shop.post(`/v1/payments/${id}/cancel`)).body.error.code).toBe('cannot_cancel');
    await world.bank.credit({ amount: 950, reference });
    await eventually('the second part', async () => (await held(id)).length === 2);
    expect(await balance()).toBe(before);
    await act(id, 'mark_settled');
    await settles(id);
    expect(await held(id)).toEqual([
      [4_000, 'amount_differs', 'credited'],
      [950, 'amount_differs', 'credited'],
    ]);
    expect(await balance()).toBe(before + AMOUNT);
  });

  test('more waits for the operator, too', async () => {
    const { id, reference } = await open();
    await world.bank.credit({ amount: 5_000, reference });
    await attention(id, 'amount_differs');
    expect(await held(id)).toEqual([[5_000, 'amount_differs', 'suspense']]);
    expect(await read(id)).toMatchObject({ status: 'awaiting_customer', amount: AMOUNT });
  });

  test('a second transfer of a settled payment is in suspense', async () => {
    const { id, reference } = await open();
    await world.bank.credit({ amount: AMOUNT, reference });
    await settles(id);
    await world.bank.credit({ amount: AMOUNT, reference });
    await attention(id, 'second_settlement');
    expect(await held(id)).toEqual([[AMOUNT, 'second_settlement', 'suspense']]);
  });

  test('a transfer without a reference that is known waits in its statement', async () => {
    const { id } = await open();
    const note = buildCreditorReference('1234567890123456');
    const { id: number } = await world.bank.credit({ amount: 1_111, note });
    await world.advance(1);
    await world.drained();
    const imports = await world.importAll();
    expect(imports.map(({ refusal }) => refusal)).toEqual(imports.map(() => null));
    const lines = await service.collection('statement_lines').find({ amount: 1_111 }).toArray();
    const open_ = lines.filter(({ status }) => status === 'open');
    expect(open_).toEqual([expect.objectContaining({ bank_reference: `MB-RCV-${number}` })]);
    // Those of payments are matched.
    const others = await service.collection('statement_lines').find({ status: 'open' }).toArray();
    expect(others).toHaveLength(1);
    expect(await callbacks(id)).toEqual([]);
    expect(JSON.stringify(lines)).not.toContain('Zephyrine');
  });

  test(
    'a transfer after the expiry is late funds, which an operator sends back',
    repeatIfBehind(async () => {
      const late = await service.account();
      const { id, reference } = await open(late);
      await advance(late, { advance: 'P4D' });
      expect((await late.get(`/v1/payments/${id}`)).body.status).toBe('expired');
      await world.bank.credit({ amount: AMOUNT, reference });
      await attention(id, 'late_settlement_not_reversed');
      expect(await held(id)).toEqual([[AMOUNT, 'late', 'suspense']]);
      expect(await balance(late)).toBe(0);
      await act(id, 'mark_reversed');
      expect(await held(id)).toEqual([[AMOUNT, 'late', 'returned']]);
    }),
  );

  test('a customer who has transferred before the merchant cancels has paid', async () => {
    let isHeld = true;
    await world.restart({}, (deliver) => async (...report) => {
      if (isHeld) throw new Error('killed');
      return await deliver(...report);
    });
    // Where the bank is not heard within three seconds, the payment is cancelled.
    const { id, refusal } = await eventually('a timely answer of the bank', async () => {
      const { id, reference } = await open();
      await world.bank.credit({ amount: AMOUNT, reference });
      await world.drained();
      const began = performance.now();
      const { status, body } = await shop.post(`/v1/payments/${id}/cancel`);
      if (status === 200) expect(performance.now() - began).toBeGreaterThan(BANK_MS);
      return status !== 200 && { id, refusal: [status, body.error?.code] };
    });
    expect(refusal).toEqual([422, 'cannot_cancel']);
    expect((await read(id)).status).toBe('authorized');
    isHeld = false;
    await settles(id);
    await world.restart();
  });

  test.each(['before', 'after'])(
    'a kill %s the report loses nothing, and doubles nothing',
    async (when) => {
      const { id, reference } = await open();
      const before = await balance();
      await world.restart({}, (deliver) => async (...report) => {
        if (when === 'after') await deliver(...report);
        throw new Error('killed');
      });
      await world.bank.credit({ amount: AMOUNT, reference });
      await world.drained();
      await eventually('the credit in the book', async () => {
        const payment = await world.book.payments.findOne({ _id: id });
        return payment?.report_batch != null;
      });
      if (when === 'before') expect(await callbacks(id)).toEqual([]);
      await world.restart();
      await settles(id);
      await eventually('the end of the report', async () => {
        return (await world.book.payments.findOne({ _id: id }))?.unreported === false;
      });
      expect(await callbacks(id)).toHaveLength(1);
      expect(await held(id)).toEqual([]);
      expect(await balance()).toBe(before + AMOUNT);
    },
  );

  test('it is not refunded', async () => {
    const { id, reference } = await open();
    await world.bank.credit({ amount: AMOUNT, reference });
    await settles(id);
    const { status, body } = await shop.post('/v1/refunds', { payment_id: id });
    expect([status, body.error.code]).toEqual([422, 'refund_not_supported']);
  });
});

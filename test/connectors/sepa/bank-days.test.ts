import { WithStartWorkflowOperation, type Workflow } from '@temporalio/client';
import { buildCreditorReference } from '../../../src/domain/payment/creditor-reference';
import { payoutWorkflowId } from '../../../src/domain/payout/payout';
import { verifyLedger } from '../../../src/ledger-check/verify';
import { shortenId } from '../../../src/service/sepa/book';
import { advance, between, DAY_MS, repeatIfBehind } from '../../api/clock-setting';
import { type CamtStatement, camt } from '../../support/camt';
import { useHook } from '../../support/hook';
import { eventually, idealPayment } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import type { Account } from '../../support/service';
import { IBAN, writeNotification } from './bank-files';
import { openPayer, useSepa } from './world';

const AMOUNT = 4_950;
/** Time that a cancellation gives the bank. */
const BANK_MS = 3_000;

// The days of the bank only go on, so the order of the stories matters.
describeWithBank('with the connector of SEPA files', () => {
  const { service, world, payer } = useSepa();
  const hook = useHook(service);

  describe('the clock of an account', () => {
    test(
      'does not end payouts about which the bank says nothing for sixty days, and the bank’s later word counts',
      repeatIfBehind(async () => {
        const merchant = await openPayer(service, world);
        const first = await merchant.submit();
        const { created_at } = await merchant.read(first);
        await advance(merchant, { advance: 'P60D' });
        await service.becomes('payouts', first, { status: 'submitted', attention: 'not_sent' });

        const second = await merchant.submit({ amount: 2_000 });
        const later = (await merchant.read(second)).created_at;
        expect(between(created_at, later)).toBeGreaterThan(60 * DAY_MS);
        await world.send();
        for (const id of [first, second]) {
          const { completed_at } = await merchant.becomes(id, 'completed');
          expect(between(created_at, completed_at)).toBeGreaterThan(60 * DAY_MS);
        }
        await advance(merchant, { advance: 'P30D' });
        const { differences } = await verifyLedger(service.mongo, service.database);
        expect(differences).toEqual([]);
      }),
    );
  });

  describe('a payment by transfer', () => {
    const stored = async (id: string) => {
      const payment = await service.stores.payments.get(id);
      if (payment === null) throw new Error('There is no such payment.');
      return payment;
    };
    /** Creates a payment, and reads what the customer has to transfer. */
    const open = async (account: Pick<Account, 'post'> = payer) => {
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
    const settle = (id: string) => service.becomes('payments', id, { status: 'settled' });
    /** Creates a payment that the customer transfers in whole. */
    const openSettled = async () => {
      const payment = await open();
      const { id: number } = await world.bank.credit({
        amount: AMOUNT,
        reference: payment.reference,
      });
      await settle(payment.id);
      return { ...payment, number };
    };
    const read = async (id: string) => (await payer.get(`/v1/payments/${id}`)).body;
    const callbacks = async (id: string) =>
      (await service.stores.callbacks.forResource(id)).map(({ name, body }) => [
        name,
        body.bank_reference,
      ]);
    const needsAttention = (id: string, attention: string) =>
      service.becomes('payments', id, { attention });
    /** Lists what is in suspense, or was. */
    const held = async (id: string) =>
      (await service.stores.movements.forResource(id)).flatMap(({ amount, reason, state }) =>
        reason === null ? [] : [[amount, reason, state]],
      );
    const act = (payment_id: string, name: string) =>
      service.temporal.workflow.executeUpdateWithStart<Workflow, object, [object]>(name, {
        args: [{ operator: 'ada', reason: 'ticket 1' }],
        startWorkflowOperation: new WithStartWorkflowOperation('payment', {
          ...{ workflowId: `payment:${payment_id}`, taskQueue: service.queues.lifecycle },
          args: [{ payment_id, resume: true, request_id: 'test' }],
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      });
    const available = async () => (await payer.balance())[0];

    test('settles with the whole amount, and a webhook says so', async () => {
      await hook.register(payer);
      const before = await available();
      const { id, instructions, number } = await openSettled();
      expect(instructions).toEqual({
        ...{ iban: IBAN, account_holder: 'ACME Corporation', bic: 'MOCKNL2A', amount: AMOUNT },
        reference: expect.stringMatching(/^RF[0-9]{18}$/),
      });
      expect(await available()).toBe(before + AMOUNT);
      expect(await callbacks(id)).toEqual([['settled', `MB-RCV-${number}`]]);
      const types = () => hook.events(id).map(({ type }) => type);
      await eventually('the webhook', async () => types().includes('payment.settled'));
      expect(JSON.stringify(await stored(id))).not.toContain('Zephyrine');
      expect(world.logged.join('')).not.toContain('Zephyrine');
    });

    test('is found by a reference in a text that the bank cuts at 35', async () => {
      const { id, reference } = await open();
      expect(await read(id)).toMatchObject({ status: 'awaiting_customer', method: 'multibanco' });
      const grouped = reference.replace(/(.{4})(?=.)/g, '$1 ');
      const note = `For the blue flowers, ${grouped}`;
      await world.bank.credit({ amount: AMOUNT, note, wrap: 35 });
      await settle(id);
    });

    test('counts a movement once that is reported three times', async () => {
      const before = await available();
      const { id, reference } = await openSettled();
      await world.drained();
      const processed = world.listIn('processed').map((name) => world.readIn('processed', name));
      const text = processed.find((each) => each.includes(reference)) ?? '';
      world.deliver('copy.xml', text.replaceAll(/MB-C054-ACME-\d+/g, 'MB-C054-AGAIN'));
      await world.drained();
      await world.advance(1);
      expect(world.listIn('processed')).toContain('copy.xml');
      expect(await callbacks(id)).toHaveLength(1);
      expect((await world.book.payments.findOne({ _id: id }))?.credits).toHaveLength(1);
      expect(await available()).toBe(before + AMOUNT);
      expect(await held(id)).toEqual([]);
    });

    test('is not settled by a statement that does not add up, is in another currency, or came otherwise', async () => {
      const { id, reference } = await open();
      const other = await open();
      const write = (name: string, to: string, more: CamtStatement = {}) => {
        const entries = [{ amount: AMOUNT, reference: to, bank_reference: name }];
        return camt([{ iban: IBAN, day: '2026-10-05', entries, ...more }]).toString();
      };
      world.deliver('sum.xml', write('W-1', reference, { id: 'W-1', closing: 1 }));
      world.deliver('usd.xml', write('W-2', reference, { id: 'W-2', currency: 'USD' }));
      world.deliver('first.xml', write('W-3', other.reference, { id: 'W-3', opening: 77 }));
      await settle(other.id);
      world.deliver('second.xml', write('W-4', reference, { id: 'W-3', opening: 77 }));
      await world.drained();
      const codes = (await world.importRefusals()).toSorted();
      expect(codes).toEqual(['statement_gap', 'statement_gap', 'sum_mismatch', 'wrong_currency']);
      expect(await callbacks(id)).toEqual([]);
      expect((await world.book.payments.findOne({ _id: id }))?.credits).toEqual([]);
    });

    test('waits for an operator where less comes, also once the rest has come', async () => {
      const { id, reference } = await open();
      const before = await available();
      await world.bank.credit({ amount: 4_000, reference });
      await needsAttention(id, 'amount_differs');
      expect((await read(id)).status).toBe('awaiting_customer');
      const { body } = await payer.post(`/v1/payments/${id}/cancel`);
      expect(body.error.code).toBe('cannot_cancel');
      await world.bank.credit({ amount: 950, reference });
      await eventually('the second part', async () => (await held(id)).length === 2);
      expect(await available()).toBe(before);
      await act(id, 'mark_settled');
      await settle(id);
      expect(await held(id)).toEqual([
        [4_000, 'amount_differs', 'applied'],
        [950, 'amount_differs', 'applied'],
      ]);
      expect(await available()).toBe(before + AMOUNT);
    });

    test('waits for an operator where more comes', async () => {
      const { id, reference } = await open();
      await world.bank.credit({ amount: 5_000, reference });
      await needsAttention(id, 'amount_differs');
      expect(await held(id)).toEqual([[5_000, 'amount_differs', 'suspense']]);
      expect(await read(id)).toMatchObject({ status: 'awaiting_customer', amount: AMOUNT });
    });

    test('that is settled holds a second transfer in suspense, and is not refunded', async () => {
      const { id, reference } = await openSettled();
      const { status, body } = await payer.post('/v1/refunds', { payment_id: id });
      expect([status, body.error.code]).toEqual([422, 'refund_not_supported']);
      await world.bank.credit({ amount: AMOUNT, reference });
      await needsAttention(id, 'second_settlement');
      expect(await held(id)).toEqual([[AMOUNT, 'second_settlement', 'suspense']]);
    });

    test('that is settled is charged back where the bank reverses its transfer, but first one in suspense', async () => {
      const { id, reference } = await openSettled();
      await world.bank.credit({ amount: AMOUNT, reference });
      await needsAttention(id, 'second_settlement');
      const reverse = (name: string) => {
        const entry = { amount: -AMOUNT, reference, bank_reference: name, reversal: true };
        const notification = { id: name, iban: IBAN, day: '2026-10-05', entries: [entry] };
        const text = camt([notification], { message: 'camt.054.001.08' }).toString();
        world.deliver(`${name}.xml`, text.replace('<MsgId>M-1', `<MsgId>${name}`));
      };
      reverse('RV-1');
      await eventually('no reason', async () => (await stored(id)).attention === null);
      expect((await stored(id)).status).toBe('settled');
      expect(await held(id)).toEqual([[AMOUNT, 'second_settlement', 'resolved']]);
      reverse('RV-2');
      await needsAttention(id, 'clawed_back');
      expect((await service.stores.callbacks.forResource(id)).at(-1)).toMatchObject({
        ...{ name: 'clawed_back', body: { amount: AMOUNT, bank_reference: 'RV-2' } },
      });
    });

    test('does not get a transfer of an unknown reference, which is an open line of the statement', async () => {
      const { id } = await open();
      const note = buildCreditorReference('1234567890123456');
      const { id: number } = await world.bank.credit({ amount: 1_111, note });
      await world.advance(1);
      expect(await world.importRefusals()).toEqual([]);
      // Those of payments are matched.
      const lines = await service.collection('statement_lines').find({ status: 'open' }).toArray();
      expect(lines).toEqual([
        expect.objectContaining({ bank_reference: `MB-RCV-${number}`, amount: 1_111 }),
      ]);
      expect(await callbacks(id)).toEqual([]);
      expect(JSON.stringify(lines)).not.toContain('Zephyrine');
    });

    test(
      'that has expired gets a transfer as late funds, which an operator sends back',
      repeatIfBehind(async () => {
        const late = await service.account();
        const { id, reference } = await open(late);
        await advance(late, { advance: 'P4D' });
        expect((await late.get(`/v1/payments/${id}`)).body.status).toBe('expired');
        await world.bank.credit({ amount: AMOUNT, reference });
        await needsAttention(id, 'late_settlement_not_reversed');
        expect(await held(id)).toEqual([[AMOUNT, 'late', 'suspense']]);
        const balances = await service.stores.ledger.balances(late.account_id, false);
        expect(balances.filter(({ available: amount }) => Number(amount) !== 0)).toEqual([]);
        await act(id, 'mark_reversed');
        expect(await held(id)).toEqual([[AMOUNT, 'late', 'resolved']]);
      }),
    );

    test('is paid where the customer has transferred before the merchant cancels', async () => {
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
        const { status, body } = await payer.post(`/v1/payments/${id}/cancel`);
        if (status === 200) expect(performance.now() - began).toBeGreaterThan(BANK_MS);
        return status !== 200 && { id, refusal: [status, body.error?.code] };
      });
      expect(refusal).toEqual([422, 'cannot_cancel']);
      expect((await read(id)).status).toBe('authorized');
      isHeld = false;
      await settle(id);
      await world.restart();
    });

    test.each(['before', 'after'])(
      'settles once where a kill comes %s the report',
      async (when) => {
        const { id, reference } = await open();
        const before = await available();
        await world.restart({}, (deliver) => async (...report) => {
          if (when === 'after') await deliver(...report);
          throw new Error('killed');
        });
        await world.bank.credit({ amount: AMOUNT, reference });
        await world.drained();
        const inBook = () => world.book.payments.findOne({ _id: id });
        await eventually('the credit in the book', async () => {
          return (await inBook())?.report_batch != null;
        });
        if (when === 'before') expect(await callbacks(id)).toEqual([]);
        await world.restart();
        await settle(id);
        await eventually('the end of the report', async () => {
          return (await inBook())?.unreported === false;
        });
        expect(await callbacks(id)).toHaveLength(1);
        expect(await held(id)).toEqual([]);
        expect(await available()).toBe(before + AMOUNT);
      },
    );
  });

  describe('a payout', () => {
    test('of a file fails with the code of the bank, and its money is back once', async () => {
      const [before] = await payer.balance();
      const submit = async (iban: string, amount: number) =>
        await payer.submit({ recipient_id: await payer.createRecipient({ iban }), amount });
      const own = 'DE89370400440532013000';
      const [good, AC04, RC01, AC01, AM04] = await Promise.all([
        payer.submit({ amount: 400 }),
        submit('NL84MOCK0000000003', 500),
        submit('NL57MOCK0000000004', 600),
        submit(own, 700),
        submit(own, 9_000),
      ]);
      const failing = { AC04, RC01, AC01, AM04 };
      const { balance } = await world.bank.account('ACME');
      // Enough for all but the last.
      await world.bank.patch('ACME', { behaviour: 'insufficient-funds', balance: 2_000 });
      const [id = ''] = await world.cut();
      // A digit is lost on the way: no payout with wrong check digits is created.
      const payee = new RegExp(`(${shortenId(AC01)}</EndToEndId>.*?<IBAN>DE)89`);
      world.alter(id, (text) => text.replace(payee, '$198'));
      await world.bank.scan();
      for (const [code, payout] of Object.entries(failing)) {
        expect(await payer.becomes(payout, 'failed')).toMatchObject({ failure: { code } });
      }
      await payer.becomes(good, 'completed');
      await world.drained();
      expect(await payer.balance()).toEqual([before - 400, 0]);
      expect(await world.fileState(id)).toBe('booked');
      // The statement of the day continues the one before.
      const paid = 2_000 - (await world.bank.account('ACME')).balance;
      await world.bank.patch('ACME', { behaviour: 'accept', balance: balance - paid });
      await world.advance(1);
      expect(await world.importRefusals()).toEqual([]);
    });

    test('is booked once where a statement comes twice, also in other bytes', async () => {
      const payout = await payer.completeOnDay();
      expect(await world.importRefusals()).toEqual([]);
      const name = world.listIn('processed').findLast((each) => /^camt[.]053/.test(each)) ?? '';
      const xml = world.readIn('processed', name);
      world.deliver('again.xml', xml);
      world.deliver('other-bytes.xml', `${xml}\n`);
      await world.drained();
      expect(world.readIn('refused', 'again.xml.txt')).toMatch(/^file_repeated: /);
      const refused = await eventually('the statement in other bytes', async () => {
        const codes = await world.importRefusals();
        return codes.length > 0 && codes;
      });
      expect(refused).toEqual(['statement_conflict']);
      expect(await world.line(payout)).toMatchObject({ state: 'booked', others: [] });
    });

    test('after the cut-off of a Friday is due on Monday, and waits for a holiday of the bank', async () => {
      await world.bank.call('POST', '/_mock/advance?to=2026-10-16');
      await world.bank.call('PUT', '/_mock/holidays', ['2026-10-19']);
      world.clock.now = new Date('2026-10-16T14:00:00Z');
      const payout = await payer.submit();
      const id = await world.send();
      expect((await world.show(id)).file.execution_day).toBe('2026-10-19');
      await world.advance(3);
      expect((await payer.read(payout)).status).toBe('submitted');
      await world.advance(1);
      await payer.becomes(payout, 'completed');
      const [callback] = await service.stores.callbacks.forResource(payout);
      expect(callback).toMatchObject({ body: { value_date: '2026-10-20' } });
      expect(await world.importRefusals()).toEqual([]);
    });

    test('is not paid twice after a restart that sets the clock of the bank back', async () => {
      const before = await payer.submit();
      await world.cut();
      await world.bank.restart('2026-10-15T09:30');
      await world.bank.scan();
      const after = await payer.submit();
      await world.send();
      await world.advance(7);
      world.clock.now = new Date('2026-10-22T09:30:00Z');
      for (const payout of [before, after]) {
        await payer.becomes(payout, 'completed');
        expect(await world.bank.payments(shortenId(payout))).toHaveLength(1);
        expect(await world.line(payout)).toMatchObject({ state: 'booked', others: [] });
      }
      expect((await payer.balance())[1]).toBe(0);
      expect(await world.importRefusals()).toEqual([]);
    });

    test('stays in the book where our copy of its file is erased, 90 days after the end', async () => {
      const payout = await payer.complete();
      const { file_id } = (await world.line(payout)) ?? {};
      const readFile = () => world.book.files.findOne({ _id: String(file_id) });
      const { ended_at, sha256 } = (await readFile()) ?? {};
      const ended = Number(ended_at);
      const afterRound = async () => {
        // The second answer comes after a whole round.
        await world.cut();
        await world.cut();
        return await readFile();
      };
      world.clock.now = new Date(ended + 90 * DAY_MS - 1_000);
      expect((await afterRound())?.bytes).not.toBeNull();
      world.clock.now = new Date(ended + 90 * DAY_MS + 1_000);
      expect(await afterRound()).toMatchObject({ bytes: null, state: 'booked', sha256 });
      expect(await world.line(payout)).toMatchObject({ state: 'booked', amount: 1_000 });
      world.clock.now = new Date(ended);
    });

    test('is in no imported statement whose balance jumps, which an alarm says with the amount', async () => {
      const { balance } = await world.bank.account('ACME');
      await world.bank.patch('ACME', { balance: balance + 12_345 });
      await payer.completeOnDay();
      const [refusal] = (await world.importAll()).flatMap((each) => each.refusal ?? []);
      expect(refusal).toMatchObject({
        code: 'statement_gap',
        message: expect.stringContaining('€123.45 differ'),
      });
    });

    test('stays completed where the bank reverses its debit and books it again, line by line', async () => {
      const payout = await payer.complete();
      const [account] = await service.stores.bankAccounts.list({ connector: 'sepa', iban: IBAN });
      const { amount: opening = 0, day = '' } = account?.closing ?? {};
      const book = (amount: number, bank_reference: string, reversal = false) => ({
        ...{ amount, bank_reference, reversal, reference: shortenId(payout) },
      });
      const entries = [book(-1_000, 'A1'), book(1_000, 'A2', true), book(-1_000, 'A3')];
      const statement = { id: 'C-11', iban: IBAN, day, opening, entries };
      world.deliver('corrected.xml', camt([statement]).toString());
      const states = async () =>
        (await service.stores.movements.forResource(payout)).map(({ state }) => state);
      const after = ['applied', 'resolved', 'applied'];
      await eventually('both to cancel out', async () => `${await states()}` === `${after}`);
      await world.drained();
      const imported = (await world.importAll()).flatMap(({ statements }) => statements);
      expect(imported.find(({ statement_id }) => statement_id === 'C-11')).toMatchObject({
        ...{ lines: 3, matched: 3, open: 0 },
      });
      expect(await payer.read(payout)).toMatchObject({ status: 'completed', returned: null });
      const types = (await payer.get(`/v1/events?resource_id=${payout}`)).body.data;
      expect(types.map(({ type }: { type: string }) => type)).not.toContain('payout.returned');
    });

    test('that comes back after more than 60 days is held, and not lost', async () => {
      const payout = await payer.complete({ amount: 1_500 });
      const [available] = await payer.balance();
      await service.temporal.workflow.getHandle(payoutWorkflowId(payout)).result();
      world.clock.now = new Date();
      const completed_at = new Date(world.clock.now.getTime() - 61 * DAY_MS).toISOString();
      const payouts = service.collection<{ _id: string }>('payouts');
      await payouts.updateOne({ _id: payout }, { $set: { completed_at } });
      const returned = { id: payout, amount: 1_500, reference: 'LATE-1', returned: 'MD07' };
      world.deliver('late.xml', writeNotification({ ...returned, message: 'L-1' }));
      const stored = await payer.needsAttention(payout, 'return_too_late');
      expect(stored.status).toBe('completed');
      expect((await service.stores.movements.forResource(payout)).at(-1)).toMatchObject({
        ...{ bank_reference: 'LATE-1', amount: 1_500, state: 'suspense' },
      });
      expect(await payer.balance()).toEqual([available, 0]);
    });
  });
});

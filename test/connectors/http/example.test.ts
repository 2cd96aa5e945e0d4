import { signPayload } from '../../../src/webhooks/signature';
import { useShop } from '../../api/payout-setting';
import { useFixture } from '../../support/fixture';
import { eventually, idealPayment } from '../../support/http';
import { describeWith } from '../../support/python-tools';
import { useService } from '../../support/service';
import { createConnectorProcess, makePrefix, ROUTES, startPythonBank } from './world';

describeWith('python3', 'the example of a bank team’s server', () => {
  const prefix = makePrefix();
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
  const shop = useShop(service);
  const bank = useFixture(
    () => startPythonBank(service),
    (opened) => opened.stop(),
  );
  const connector = useFixture(
    async () => {
      const opened = createConnectorProcess(service, {
        ...{ prefix, url: bank.faults.url, secretFile: bank.secretFile },
      });
      await opened.start();
      return opened;
    },
    (opened) => opened.stop(),
  );

  const becomes = (id: string, status: string) =>
    eventually(
      `a payout that is ${status}`,
      async () => {
        const { body } = await shop.get(`/v1/payouts/${id}`);
        return body.status === status && body;
      },
      120_000,
    );
  const statuses = (id: string) => bank.sent(id).map(({ status }) => status);

  test('a payout is executed, and completes by the bank’s own callbacks', async () => {
    const { body } = await shop.pay({ reference: 'Salary 11/2026' });
    await becomes(body.id, 'completed');
    expect(statuses(body.id)).toEqual([200]);
    expect(JSON.parse(String(bank.sent(body.id)[0]?.body))).toMatchObject({
      ...{ payout_id: body.id, amount: 1_000, currency: 'EUR', reference: 'Salary 11/2026' },
      recipient: { first_name: 'Ada', iban: 'DE89370400440532013000' },
    });
    expect(await shop.events(body.id)).toContain('payout.completed');
    expect(await service.stores.payouts.get(body.id)).toMatchObject({
      bank_reference: `B-${body.id}`,
    });
  });

  test('a refusal fails the payout in the bank’s words', async () => {
    const { body } = await shop.pay({ amount: 66_600 });
    expect(await becomes(body.id, 'failed')).toMatchObject({
      failure: { code: 'amount_too_high', message: 'The bank sends no transfer of this amount.' },
    });
  });

  test.each(['cut_after', 'fails_after'] as const)(
    'an answer that is lost (%s) is looked up, and nothing sent again',
    async (fault) => {
      const armed = bank.faults.arm(fault, { ids: ['sendPayout'], of: 'writes' });
      const { body } = await shop.pay();
      await eventually('the fault', async () => armed.hits() > 0).finally(armed.clear);
      await becomes(body.id, 'completed');
      expect(statuses(body.id)).toEqual([200]);
    },
  );

  test('after an outage the payout is sent again under its key, once', async () => {
    const armed = bank.faults.arm('unavailable', { ids: ['sendPayout'], of: 'writes' });
    const { body } = await shop.pay();
    await eventually('the outage', async () => armed.hits() > 0).finally(armed.clear);
    await becomes(body.id, 'completed');
    expect(statuses(body.id)).toEqual([200]);
    expect(bank.sent(body.id)[0]?.headers['idempotency-key']).toBe(body.id);
  });

  test('a bank that is killed before it has the payout gets it again', async () => {
    const held = bank.faults.hold('sendPayout');
    const { body } = await shop.pay();
    await held.reached;
    await bank.kill();
    held.release();
    await bank.start();
    await becomes(body.id, 'completed');
    expect(statuses(body.id)).toEqual([0, 200]);
  });

  test('a connector that is killed in an instruction looks it up when it is back', async () => {
    const held = bank.faults.hold('sendPayout');
    const { body } = await shop.pay();
    await held.reached;
    await connector.kill();
    held.release();
    await eventually('the bank to have it', async () => statuses(body.id).includes(200));
    await connector.start();
    await becomes(body.id, 'completed');
    await eventually('the answer', async () => {
      const stored = await service.stores.payouts.get(body.id);
      return stored?.bank_reference === `B-${body.id}`;
    });
    expect(statuses(body.id)).toEqual([200]);
  });

  describe('payments', () => {
    const create = async () => {
      const { body } = await shop.post('/v1/payments', idealPayment());
      const page = await eventually('a session', async () => {
        const stored = await service.stores.payments.get(body.id);
        return stored?.session_url;
      });
      return { id: String(body.id), page };
    };
    /** Pays as the customer's browser does. */
    const payAt = (page: string) => fetch(page, { method: 'POST', redirect: 'manual' });
    const listEffects = async (id: string) => {
      const answer = await fetch(`${bank.deskUrl}/effects/${encodeURIComponent(id)}`);
      return Object(await answer.json()).effects;
    };

    test('one is paid on the bank’s page, settles, and is refunded', async () => {
      const { id, page } = await create();
      expect(await (await fetch(page)).text()).toContain('Pay');
      const { status, headers } = await payAt(page);
      expect([status, headers.get('location')]).toEqual([303, expect.stringContaining('http')]);
      await service.becomes('payments', id, { status: 'settled' });
      await payAt(page);
      const refund = await shop.post('/v1/refunds', { payment_id: id, amount: 50 });
      await service.becomes('refunds', refund.body.id, { status: 'settled' });
      expect(await listEffects(refund.body.id)).toMatchObject([{ amount: 50, currency: 'EUR' }]);
      expect(await shop.events(id)).toContain('payment.settled');
    });

    test('the page of one that was cancelled takes no money', async () => {
      const { id, page } = await create();
      await shop.post(`/v1/payments/${id}/cancel`);
      await service.becomes('payments', id, { status: 'cancelled' });
      // It ends once the bank has closed the session, which may be after the cancellation.
      await service.temporal.workflow.getHandle(`payment:${id}`).result();
      expect((await payAt(page)).status).toBe(303);
      // What the bank reports of another one comes later.
      const other = await create();
      await payAt(other.page);
      await service.becomes('payments', other.id, { status: 'settled' });
      expect(await service.stores.callbacks.forResource(id)).toEqual([]);
    });

    test('money that came while the bank was not reached is sent back, once', async () => {
      const { id, page } = await create();
      const armed = bank.faults.arm('unavailable', { ids: ['closeSession'], of: 'all' });
      await shop.post(`/v1/payments/${id}/cancel`);
      await service.becomes('payments', id, { status: 'cancelled' });
      await payAt(page);
      armed.clear();
      await service.becomes('payments', id, { attention: 'late_settlement_reversed' });
      const effects = await listEffects(`reversal:${id}`);
      expect(effects).toMatchObject([{ amount: 1_050, currency: 'EUR' }]);
      const receipts = await eventually('the bank’s report', async () => {
        const stored = await service.stores.payments.get(id);
        return stored?.receipts?.some(({ state }) => state === 'returned') && stored.receipts;
      });
      expect(receipts).toMatchObject([{ amount: 1_050, state: 'returned' }]);
    });
  });

  test('the bank refuses what the service has not signed', async () => {
    const payout_id = '6e18a581-6e58-48b5-af5a-f37d146bf085';
    const instruction = { payout_id, amount: 1_000, currency: 'EUR', method: 'sepa_instant' };
    const body = JSON.stringify({ activity: 'sendPayout', ...instruction });
    const seconds = Math.floor(Date.now() / 1_000);
    const post = async (signature: string | undefined, path = 'sendPayout', text = body) => {
      const headers = {
        'Idempotency-Key': payout_id,
        ...(signature && { 'Service-Signature': signature }),
      };
      const init = { method: 'POST', headers, body: text };
      return (await fetch(`${bank.url}/instructions/${path}`, init)).status;
    };
    const genuine = signPayload(bank.secret, body, seconds);
    expect(await post(undefined)).toBe(401);
    expect(await post('t=²,v1=é')).toBe(401);
    expect(await post(signPayload('another secret', body, seconds))).toBe(401);
    expect(await post(signPayload(bank.secret, body, seconds - 600))).toBe(401);
    expect(await post(genuine, 'sendPayout', body.replace('1000', '9000'))).toBe(401);
    expect(await post(genuine, 'lookUpPayout')).toBe(400);
    const effects = await fetch(`${bank.deskUrl}/effects/${payout_id}`);
    expect(await effects.json()).toEqual({ effects: [] });
    expect(await post(genuine)).toBe(200);
    const changed = body.replace('1000', '9000');
    expect(await post(signPayload(bank.secret, changed, seconds), 'sendPayout', changed)).toBe(409);
  });

  test('no log and no document of the connector has the recipient', async () => {
    const rows = await service.mongo
      .db(`${service.database}_acme`)
      .collection('instructions')
      .find({})
      .toArray();
    expect(rows.length).toBeGreaterThan(5);
    const text = `${connector.readLogs()}${JSON.stringify(rows)}`;
    expect(text).toContain('the connector serves its bank');
    expect(text).not.toMatch(/Lovelace|DE89370400440532013000/);
  });
});

import { checkConnector } from '../../../connectors/conformance/check';
import { defineHttp } from '../../../connectors/http/definition';
import { payoutWorkflowId } from '../../../src/domain/payout/payout';
import { createOperatorDeps, createReadDeps } from '../../../src/service/operators/deps';
import { signPayload } from '../../../src/webhooks/signature';
import { freePort } from '../../../stack/ports';
import { useShop } from '../../api/payout-setting';
import { eventually, idealPayment } from '../../support/http';
import { describeWith } from '../../support/python-tools';
import { temporalAddress } from '../../support/servers';
import { beginPayout } from '../begin-payout';
import { listBroken, PATIENT_WAIT_MS, startOnKit } from '../conformance/setting';
import { NAME, useConnectorProcess, useHttpBank } from './world';

describeWith('python3', 'the example of a bank team’s server', () => {
  const world = useHttpBank();
  const { service, bank } = world;
  const connector = useConnectorProcess(world);
  const shop = useShop(service);

  const becomes = (id: string, status: string) =>
    eventually(`a payout that is ${status}`, async () => {
      const { body } = await shop.get(`/v1/payouts/${id}`);
      return body.status === status && body;
    });
  /** ID of the activity that asks the connector about a payout. */
  const readAttempts = async (id: string, activity: string) => {
    const handle = service.temporal.workflow.getHandle(payoutWorkflowId(id));
    const { pendingActivities } = (await handle.describe()).raw;
    return pendingActivities?.find(({ activityType }) => activityType?.name === activity)
      ?.activityId;
  };
  const statuses = (id: string) => bank.sent(id).map(({ status }) => status);
  const listEffects = async (id: string) => {
    const answer = await fetch(`${bank.deskUrl}/effects/${encodeURIComponent(id)}`);
    return Object(await answer.json()).effects;
  };

  test('executes a payout, which its own callbacks complete', async () => {
    const id = await beginPayout(service, shop, { reference: 'Salary 11/2026' });
    await becomes(id, 'completed');
    expect(statuses(id)).toEqual([200]);
    expect(JSON.parse(String(bank.sent(id)[0]?.body))).toMatchObject({
      ...{ payout_id: id, amount: 1_000, currency: 'EUR', reference: 'Salary 11/2026' },
      recipient: { first_name: 'Ada', iban: 'DE89370400440532013000' },
    });
    expect(await shop.events(id)).toContain('payout.completed');
    expect(await service.stores.payouts.get(id)).toMatchObject({
      bank_reference: `B-${id}`,
    });
  });

  test('fails a payout that it refuses, in its own words', async () => {
    const id = await beginPayout(service, shop, { amount: 66_600 });
    expect(await becomes(id, 'failed')).toMatchObject({
      failure: { code: 'amount_too_high', message: 'The bank sends no transfer of this amount.' },
    });
  });

  const own = () => service.mongo.db(`${service.database}_${NAME}`);

  test('gets a payout again that had not arrived when it was killed', async () => {
    const held = bank.faults.hold('sendPayout');
    const id = await beginPayout(service, shop);
    await held.reached;
    await bank.kill();
    held.release();
    await bank.start();
    const records = own().collection<{ _id: string }>('instructions');
    // The attempt has failed, so that its time may end.
    await eventually('the failed attempt', () => readAttempts(id, 'lookUpPayout'));
    await records.updateOne({ _id: `payout:${id}` }, { $set: { deadline: new Date(0) } });
    await becomes(id, 'completed');
    expect(statuses(id)).toEqual([0, 200]);
  });

  test('is asked about a payout by a connector that was killed during the instruction', async () => {
    const held = bank.faults.hold('sendPayout');
    const id = await beginPayout(service, shop);
    await held.reached;
    await connector.kill();
    held.release();
    await eventually('the bank to have it', async () => statuses(id).includes(200));
    await connector.start();
    // Temporal gives the attempt up by itself after 30 seconds.
    const activityId = await eventually('the attempt', () => readAttempts(id, 'sendPayout'));
    const workflowId = payoutWorkflowId(id);
    await service.temporal.activity.fail({ workflowId, activityId }, new Error('killed'));
    await becomes(id, 'completed');
    await eventually('the answer', async () => {
      const stored = await service.stores.payouts.get(id);
      return stored?.bank_reference === `B-${id}`;
    });
    expect(statuses(id)).toEqual([200]);
  });

  describe('with a payment', () => {
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
    const cancel = async (id: string) => {
      await shop.post(`/v1/payments/${id}/cancel`);
      await service.becomes('payments', id, { status: 'cancelled' });
    };

    test('takes the money on its page, settles it, and refunds it', async () => {
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

    test('takes no money on the page of a cancelled one', async () => {
      const { id, page } = await create();
      await cancel(id);
      // It ends once the bank has closed the session, which may be after the cancellation.
      await service.temporal.workflow.getHandle(`payment:${id}`).result();
      expect((await payAt(page)).status).toBe(303);
      // What the bank reports of another one comes later.
      const other = await create();
      await payAt(other.page);
      await service.becomes('payments', other.id, { status: 'settled' });
      expect(await service.stores.callbacks.forResource(id)).toEqual([]);
    });
  });

  test('refuses what the service has not signed', async () => {
    const payout_id = '6e18a581-6e58-48b5-af5a-f37d146bf085';
    const instruction = { payout_id, amount: 1_000, currency: 'EUR', method: 'sepa_instant' };
    const body = JSON.stringify({ activity: 'sendPayout', ...instruction });
    const changed = body.replace('1000', '9000');
    const seconds = Math.floor(Date.now() / 1_000);
    const sign = (text: string, secret = bank.secret, at = seconds) =>
      signPayload(secret, text, at);
    const post = async (signature: string | undefined, path = 'sendPayout', text = body) => {
      const headers = {
        'Idempotency-Key': payout_id,
        ...(signature && { 'Service-Signature': signature }),
      };
      const init = { method: 'POST', headers, body: text };
      return (await fetch(`${bank.url}/instructions/${path}`, init)).status;
    };
    expect(await post(undefined)).toBe(401);
    expect(await post('t=²,v1=é')).toBe(401);
    expect(await post(sign(body, 'another secret'))).toBe(401);
    expect(await post(sign(body, bank.secret, seconds - 600))).toBe(401);
    expect(await post(sign(body), 'sendPayout', changed)).toBe(401);
    expect(await post(sign(body), 'lookUpPayout')).toBe(400);
    expect(await listEffects(payout_id)).toEqual([]);
    expect(await post(sign(body))).toBe(200);
    expect(await post(sign(changed), 'sendPayout', changed)).toBe(409);
  });

  test('gets the recipient, of whom no log and no document of the connector has anything', async () => {
    const rows = await own().collection('instructions').find({}).toArray();
    expect(rows.length).toBeGreaterThan(5);
    const text = `${connector.readLogs()}${JSON.stringify(rows)}`;
    expect(text).toContain('the connector serves its bank');
    expect(text).not.toMatch(/Lovelace|DE89370400440532013000/);
  });
});

describeWith('python3', 'a check of the example of a bank team’s server', () => {
  // The API alone, which takes the callbacks.
  const { prefix, service, bank } = useHttpBank({ worker: false });

  test('finds that it keeps every promise', async () => {
    const { mongo, database, keysDir, temporal } = service;
    const bankPort = await freePort();
    const served: Parameters<typeof defineHttp>[0] = {
      ...{ INSTRUCTIONS_FOR: ['payments', 'refunds', 'payouts', 'cancelPayout'] },
      ...{ INSTRUCTIONS_PER_SECOND: 200, REFERENCE_PER_STEP: 'no' },
    };
    const settings = {
      ...{ ...served, INSTRUCTIONS_URL: `http://127.0.0.1:${bankPort}` },
      INSTRUCTIONS_SECRET_FILE: bank.secret,
    };
    const place = { name: NAME, database, prefix, keysDir, settings };
    const connector = await startOnKit(defineHttp(served), place);
    const deps = await createOperatorDeps(createReadDeps(mongo, database));
    const access = { address: temporalAddress(), namespace: 'default' };
    const report = await checkConnector(
      {
        ...{ ...deps, temporal, access, database, keysDir, taskQueuePrefix: prefix },
        progress: () => undefined,
      },
      {
        ...{ connector: NAME, methods: ['ideal'], rails: ['sepa_credit_transfer'] },
        ...{ deskUrl: bank.deskUrl, bankUrl: bank.recorder, bankPort, waitMs: PATIENT_WAIT_MS },
      },
    ).finally(connector.stop);
    expect(listBroken(report)).toEqual([]);
    const missing = report.promises.filter(({ result }) => result === 'not_applicable');
    expect(missing.map(({ id, seen }) => [id, seen])).toEqual([
      ...['lost', 'verified', 'acknowledged'].map((name) => [
        `webhooks.${name}`,
        'It needs the proxy in front of the connector’s own port.',
      ]),
      ['poll.repeated', 'No list of the bank was read: none of its answers to a GET had the fact.'],
    ]);
    expect(report.passed).toBe(report.promises.length - missing.length);
  });
});

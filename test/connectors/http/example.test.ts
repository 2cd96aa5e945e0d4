import { randomUUID } from 'node:crypto';
import { checkConnector } from '../../../connectors/conformance/check';
import { createOperatorDeps, createReadDeps } from '../../../src/service/operators/deps';
import { signPayload } from '../../../src/webhooks/signature';
import { freePort } from '../../../stack/ports';
import { useShop } from '../../api/payout-setting';
import { commandsIn, useCommands } from '../../cli/cli';
import { dumpDatabase, restoreDatabase } from '../../support/dump';
import { useFixture } from '../../support/fixture';
import { eventually, idealPayment } from '../../support/http';
import { describeWith } from '../../support/python-tools';
import { temporalAddress } from '../../support/servers';
import { listBroken, PATIENT_WAIT_MS } from '../conformance/setting';
import { NAME, useHttpBank } from './world';

describeWith('python3', 'the example of a bank team’s server', () => {
  const { prefix, service, bank, connector } = useHttpBank();
  const shop = useShop(service);

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
  const listEffects = async (id: string) => {
    const answer = await fetch(`${bank.deskUrl}/effects/${encodeURIComponent(id)}`);
    return Object(await answer.json()).effects;
  };

  test('executes a payout, which its own callbacks complete', async () => {
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

  test('fails a payout that it refuses, in its own words', async () => {
    const { body } = await shop.pay({ amount: 66_600 });
    expect(await becomes(body.id, 'failed')).toMatchObject({
      failure: { code: 'amount_too_high', message: 'The bank sends no transfer of this amount.' },
    });
  });

  test('gets a payout again that had not arrived when it was killed', async () => {
    const held = bank.faults.hold('sendPayout');
    const { body } = await shop.pay();
    await held.reached;
    await bank.kill();
    held.release();
    await bank.start();
    await becomes(body.id, 'completed');
    expect(statuses(body.id)).toEqual([0, 200]);
  });

  test('is asked about a payout by a connector that was killed during the instruction', async () => {
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

    test('sends money back once that came while it was not reached', async () => {
      const { id, page } = await create();
      const armed = bank.faults.arm('unavailable', { ids: ['closeSession'], of: 'all' });
      await cancel(id);
      await payAt(page);
      armed.clear();
      await service.becomes('payments', id, { attention: 'late_settlement_reversed' });
      const effects = await listEffects(`reversal:${id}`);
      expect(effects).toMatchObject([{ amount: 1_050, currency: 'EUR' }]);
      const movements = await eventually('the bank’s report', async () => {
        const rows = await service.stores.movements.forResource(id);
        return rows.some(({ direction }) => direction === 'out') && rows;
      });
      expect(movements).toMatchObject([
        { direction: 'in', amount: 1_050, state: 'resolved', resolutions: [{ as: 'customer' }] },
        { direction: 'out', amount: 1_050, state: 'applied' },
      ]);
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
    const own = service.mongo.db(`${service.database}_acme`);
    const rows = await own.collection('instructions').find({}).toArray();
    expect(rows.length).toBeGreaterThan(5);
    const text = `${connector.readLogs()}${JSON.stringify(rows)}`;
    expect(text).toContain('the connector serves its bank');
    expect(text).not.toMatch(/Lovelace|DE89370400440532013000/);
  });

  // Last: the epoch of the product is put back.
  describe('in front of a database that was restored', () => {
    const commands = useCommands(service);
    const cli = (...args: string[]) =>
      commandsIn({
        ...{ ...commands.env, TASK_QUEUE_PREFIX: prefix },
        SANDBOX_CONNECTORS: `${NAME}=sepa_credit_transfer|sepa_instant|ideal`,
      }).cli(...args);
    const RELEASE = ['connector', 'release', NAME, '--env', 'sandbox', '--after-restore'];

    const pay = async () => {
      const method = 'sepa_credit_transfer';
      const { body, text } = await shop.pay({ method, recipient_id: shop.recipients[method] });
      if (body.id === undefined) throw new Error(text);
      return String(body.id);
    };
    const untilSent = (id: string) =>
      eventually('the instruction', async () => bank.sent(id).length === 1);
    const readStop = async () => (await service.stores.capabilities.get(NAME))?.stopped;
    const epochs = () => service.db.collection<{ _id: string; at: string }>('service_epoch');

    /** Sends nothing for a payout until an operator releases the connector. */
    async function expectStopped(id: string, reason: RegExp): Promise<void> {
      const stop = await eventually('a stop', readStop);
      expect(stop.reason).toMatch(reason);
      await eventually('a log line', async () =>
        connector.readLogs().includes('connector_stopped'),
      );
      expect(bank.sent(id)).toEqual([]);
      const health = await cli('connector', 'health', NAME, '--json');
      expect(JSON.parse(health.stdout).faults).toEqual(
        expect.arrayContaining([expect.stringContaining('it sends nothing until')]),
      );
      expect(await cli(...RELEASE, '--reason', `Ticket ${randomUUID()}`)).toMatchObject({
        exit: 0,
      });
      await untilSent(id);
      await eventually('the report', async () => (await readStop()) === null);
    }

    test('an epoch that is put back while it runs stops a connector before the next instruction', async () => {
      const { at } = await service.stores.epoch.raise(new Date().toISOString());
      await untilSent(await pay());
      await epochs().updateOne({}, { $set: { at: '2026-01-01T00:00:00.000Z' } });
      const id = await pay();
      await expectStopped(id, /^MongoDB has the state of 2026-01-01/);
      await epochs().updateOne({}, { $set: { at } });
    });

    test('a restore of its database stops a connector that was stopped, whatever the epoch is', async () => {
      const own = service.mongo.db(`${service.database}_${NAME}`);
      await untilSent(await pay());
      const dump = await dumpDatabase(own);
      // The count is raised at most once a second.
      await new Promise((done) => setTimeout(done, 1_100));
      await untilSent(await pay());
      await connector.kill();
      await restoreDatabase(own, dump);
      await epochs().updateOne({}, { $set: { at: new Date().toISOString() } });
      const id = await pay();
      await connector.start();
      await expectStopped(id, /database is older than its state file/);
    });
  });
});

describeWith('python3', 'a check of the example of a bank team’s server', () => {
  const port = useFixture(async () => ({ bank: await freePort() }));
  // The API alone, which takes the callbacks.
  const { prefix, service, bank } = useHttpBank({ worker: false, bankPort: () => port.bank });

  test('finds that it keeps every promise', async () => {
    const { mongo, database, keysDir, temporal } = service;
    const deps = await createOperatorDeps(createReadDeps(mongo, database));
    const access = { address: temporalAddress(), namespace: 'default' };
    const report = await checkConnector(
      {
        ...{ ...deps, temporal, access, database, keysDir, taskQueuePrefix: prefix },
        progress: () => undefined,
      },
      {
        ...{ connector: NAME, methods: ['ideal'], rails: ['sepa_credit_transfer'] },
        ...{ deskUrl: bank.deskUrl, bankUrl: bank.recorder, bankPort: port.bank },
        waitMs: PATIENT_WAIT_MS,
      },
    );
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

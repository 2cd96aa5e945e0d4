import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { temporal as proto } from '@temporalio/proto';
import { createAuditActivities } from '../../activities/schedules/audit';
import { webhookWorkflowId } from '../../src/domain/events/event';
import { paymentWorkflowId } from '../../src/domain/payment/payment';
import type { IdempotencyRecord } from '../../src/store/idempotency';
import { FUNDS, openShop } from '../api/payout-setting';
import { expectRefusal } from '../api/refusal';
import { eventually } from '../support/eventually';
import { buildPayment } from '../support/factories';
import { useHook } from '../support/hook';
import { idealPayment, readReplayed } from '../support/http';
import { mockActivityEnvironment } from '../support/quiet';
import { useAccount, useService } from '../support/service';

// No worker runs by default, which is the outage.
const service = useService({ worker: false });

const shop = useAccount(service);

/** Longest that a caller waits for a 503: the request limit of 8 s, and time for a busy machine. */
const ANSWER_MS_MAX = 30_000;
const LATE = 'temporarily_unavailable';

const create = (idempotencyKey: string, once = true) =>
  shop.post('/v1/payments', idealPayment(), { idempotencyKey, once });
/** Repeats the call while a busy machine answers too late. */
const insist = (idempotencyKey: string) => create(idempotencyKey, false);
const records = () => service.collection<IdempotencyRecord>('idempotency_records');
const findRecord = (key: string, { account_id } = { ...shop }) =>
  records().findOne({ account_id, key });
const getHandle = (id: string) => service.temporal.workflow.getHandle(paymentWorkflowId(id));

async function withWorkers<T>(run: () => Promise<T>): Promise<T> {
  const workers = await service.startWorkers();
  return await run().finally(() => workers.stop());
}

/** Expects a refusal in time, to be repeated after a second. */
async function expectLate(
  call: ReturnType<typeof create>,
  code: typeof LATE | 'idempotency_request_in_progress' = LATE,
) {
  const begun = performance.now();
  const answer = await call;
  expect(performance.now() - begun).toBeLessThan(ANSWER_MS_MAX);
  expectRefusal(answer, code);
  expect(answer.headers.get('Retry-After')).toBe('1');
  return answer;
}

describe('without a worker', () => {
  /** Ids that the calls without a worker have reserved, by key. */
  const reserved: Record<string, string> = {};

  test('creates are refused in time, and their keys stay reserved, however old', async () => {
    const first = expectLate(create('outage'));
    const open = await eventually('the record', () => findRecord('outage'));
    expect(open).toMatchObject({ status: null, request: expect.any(Object) });
    // As a call leaves it whose process died at once: no workflow was started.
    const { account_id, livemode, operation, fingerprint, request: accepted } = open;
    const owner = { account_id, livemode, operation, key: 'left', fingerprint, request: accepted };
    const ids = { resource_id: randomUUID(), request_id: randomUUID() };
    const old = new Date(Date.now() - 48 * 60 * 60 * 1_000);
    await service.stores.idempotency.reserveKey({ ...owner, ...ids }, old);

    /** A second caller waits for the first call, and is then refused as in progress. */
    const expectCrowd = async () => {
      const call = expectLate(create('crowd'));
      const { resource_id } = await eventually('the record', () => findRecord('crowd'));
      // As if the first had just come in, however busy the machine is.
      const created_at = new Date(Date.now() + 10 * ANSWER_MS_MAX);
      await records().updateOne({ resource_id }, { $set: { created_at } });
      await expectLate(create('crowd'), 'idempotency_request_in_progress');
      await call;
    };
    const [answer] = await Promise.all([first, expectLate(create('left')), expectCrowd()]);
    expect(answer.body.error.message).toContain('same Idempotency-Key');
    for (const key of ['outage', 'crowd', 'left']) {
      reserved[key] = (await findRecord(key))?.resource_id ?? '';
    }
    expect(reserved['left']).toBe(ids.resource_id);
  });

  test('all callers of a key get one payment under the reserved id once a worker runs', async () => {
    await withWorkers(async () => {
      for (const [key, id] of Object.entries(reserved)) {
        const answers = await Promise.all([insist(key), insist(key), insist(key)]);
        const seen = answers.map(({ status, body }) => [status, body.id]);
        expect(seen).toEqual(Array(3).fill([201, id]));
        expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
        expect((await insist(key)).headers.get('Idempotent-Replayed')).toBe('true');
        const payments = service.collection<{ _id: string }>('payments');
        expect(await payments.countDocuments({ _id: id })).toBe(1);
      }
      const headers = {
        Authorization: `Bearer ${shop.key}`,
        ...{ 'Content-Type': 'application/json', 'Idempotency-Key': 'gone' },
      };
      const sent = request(`${service.url}/v1/payments`, { method: 'POST', headers });
      sent.on('error', () => {});
      sent.end(JSON.stringify(idealPayment()));
      const record = await eventually('the record', () => findRecord('gone'));
      // A caller who hangs up gets the payment with the next call.
      sent.destroy();
      const retry = await insist('gone');
      expect([retry.status, retry.body.id]).toEqual([201, record.resource_id]);
    });
  });

  test('a key is free again when the workflow was terminated before the payment was stored', async () => {
    // On a busy machine a call may end before its workflow has begun.
    const first = await eventually('its workflow', async () => {
      const call = expectLate(create('ended'));
      const ended = await eventually('its start', async () => {
        const record = await findRecord('ended');
        const terminated = record && getHandle(record.resource_id).terminate('by hand');
        return await terminated?.then(
          () => record,
          () => undefined,
        );
      }).catch(() => undefined);
      await call;
      return ended;
    });
    // On a busy machine a call may end before it has learned so.
    await eventually('the key to be free', async () => {
      if ((await findRecord('ended')) === null) return true;
      // Until its time is over, the first call counts as still running.
      expect([409, 503]).toContain((await create('ended')).status);
      return false;
    });
    const next = await withWorkers(() => insist('ended'));
    expect(next.status).toBe(201);
    expect(next.body.id).not.toBe(first.resource_id);
  });
});

test('a key stays reserved when the database has lost its payment, so that it is not paid twice', async () => {
  await withWorkers(async () => {
    const { id } = (await insist('restored')).body;
    await shop.post(`/v1/payments/${id}/cancel`);
    await getHandle(id).result();
    // As a backup from before the answer would have it.
    await service.collection<{ _id: string }>('payments').deleteOne({ _id: id });
    const created_at = new Date(Date.now() - 60_000);
    await records().updateOne(
      { resource_id: id },
      { $set: { status: null, body: null, created_at }, $unset: { expires_at: '' } },
    );
    expectRefusal(await create('restored'), LATE);
    expect(await findRecord('restored')).toMatchObject({ resource_id: id });
  });
});

// What the workflow leaves of it: test/workflows/shared/bank.test.ts
test('a payout without a worker is refused for good when one comes, and its key creates a new one', async () => {
  const payer = await openShop(service);
  // On a busy machine a call may end before its workflow has begun.
  const first = await eventually('its workflow', async () => {
    const late = await payer.pay({}, 'late', true);
    if (late.status === 409) return undefined;
    expectRefusal(late, LATE);
    expect(late.headers.get('Retry-After')).toBe('1');
    const id = (await findRecord('late', payer))?.resource_id;
    const handle = service.temporal.workflow.getHandle(`payout:${id}`);
    return (await handle.describe().catch(() => undefined)) && { id, handle };
  });
  await withWorkers(async () => {
    expect(await first.handle.result()).toMatchObject({ status: 'refused', code: LATE });
    const next = await payer.pay({}, 'late');
    expect([next.status, readReplayed(next)]).toEqual([201, null]);
    expect(next.body.id).not.toBe(first.id);
    expectRefusal(await payer.get(`/v1/payouts/${first.id}`), 'payout_not_found');
    expect(await payer.count('payouts')).toBe(1);
    await payer.untilSent();
    expect(await payer.balance()).toEqual([FUNDS.main - 1_000, 0]);
  });
});

describe('versions of workers', () => {
  const { VERSIONING_BEHAVIOR_AUTO_UPGRADE, VERSIONING_BEHAVIOR_PINNED } =
    proto.api.enums.v1.VersioningBehavior;
  const hook = useHook(service);

  beforeAll(() => hook.register(shop));
  beforeEach(() => {
    hook.answer.status = 500;
  });

  const start = (buildId: string) =>
    service.startWorkers({ deploymentName: service.connector, buildId });

  /**
   * Makes a version current as `temporal worker deployment set-current-version` does, once the server
   * knows its worker; its queues learn of it a little later.
   * @returns a payment that this version has begun
   */
  async function makeCurrent(buildId: string): Promise<string> {
    const { workflowService } = service.temporal;
    const request = { namespace: 'default', deploymentName: service.connector, buildId };
    const isSet = () =>
      workflowService.setWorkerDeploymentCurrentVersion({ ...request, identity: 'test' }).then(
        () => true,
        () => false,
      );
    await eventually(`${buildId} to be known`, isSet);
    return await eventually(`${buildId} to be current`, async () => {
      const id = await pay();
      const delivered = await readDeliveryVersion(id, 'payment.awaiting_customer');
      const begun = await readVersion(paymentWorkflowId(id));
      return begun.buildId === buildId && delivered.buildId === buildId && id;
    });
  }

  /** Reads the version of a workflow, which it has at the end of its first task. */
  async function readVersion(workflowId: string) {
    return await eventually(`a version of ${workflowId}`, async () => {
      const handle = service.temporal.workflow.getHandle(workflowId);
      const described = await handle.describe().catch(() => undefined);
      const { versioningInfo } = described?.raw.workflowExecutionInfo ?? {};
      const { behavior, deploymentVersion } = versioningInfo ?? {};
      const buildId = deploymentVersion?.buildId;
      return buildId !== undefined && { behavior, buildId };
    });
  }

  const pay = async (): Promise<string> => (await buildPayment(shop)).id;

  async function settle(id: string): Promise<void> {
    await shop.post(`/v1/sandbox/payments/${id}/simulate`, { event: 'settled' });
    // The document is written within the task at whose end the version is.
    await getHandle(id).result();
  }

  async function findEventId(resource_id: string, type: string): Promise<string> {
    const filter = { account_id: shop.account_id, livemode: false, resource_id, limit: 10 };
    const event = (await service.stores.events.list(filter)).find((each) => each.type === type);
    return event?._id ?? '';
  }

  /** Reads the version of the delivery of a payment's event. */
  const readDeliveryVersion = async (resource_id: string, type: string) =>
    await readVersion(webhookWorkflowId(await findEventId(resource_id, type)));

  const lifecycle = (buildId: string) => ({ behavior: VERSIONING_BEHAVIOR_AUTO_UPGRADE, buildId });
  const delivery = (buildId: string) => ({ behavior: VERSIONING_BEHAVIOR_PINNED, buildId });

  test('a new version continues waiting resources, a delivery ends under its first version, and a rollback works the same way', async () => {
    await start('a');
    const first = await makeCurrent('a');
    expect(await readVersion(paymentWorkflowId(first))).toEqual(lifecycle('a'));

    await start('b');
    expect(await readVersion(paymentWorkflowId(await pay()))).toEqual(lifecycle('a'));

    const second = await makeCurrent('b');
    await settle(first);
    expect(await readVersion(paymentWorkflowId(first))).toEqual(lifecycle('b'));
    expect(await readDeliveryVersion(first, 'payment.awaiting_customer')).toEqual(delivery('a'));
    expect(await readDeliveryVersion(first, 'payment.settled')).toEqual(delivery('b'));

    await makeCurrent('a');
    await settle(second);
    expect(await readVersion(paymentWorkflowId(second))).toEqual(lifecycle('a'));
    expect(await readDeliveryVersion(second, 'payment.settled')).toEqual(delivery('a'));
  });

  test('the audit moves a late delivery whose version no worker polls to the current one, which repeats no attempt', async () => {
    const old = await start('c');
    const payment = await makeCurrent('c');
    await start('d');
    await makeCurrent('d');
    await old.stop();
    const id = await findEventId(payment, 'payment.awaiting_customer');
    const readAttempts = async () => (await service.stores.deliveries.forEvents([id]))[0]?.attempts;
    expect(await readAttempts()).toBe(1);
    const { stores, temporal } = service;
    const audit = createAuditActivities({
      ...{ stores, temporal, lifecycleQueue: 'unused', webhookQueue: 'unused' },
      // Then the second attempt is late, and the last poll of the old version was long ago.
      now: () => new Date(Date.now() + 3 * 60_000),
      log: { info: () => undefined, warn: () => undefined },
    });
    // As after a kill between moving a delivery and trying it, and in an audit that comes too soon.
    for (let times = 0; times < 2; times += 1) {
      await mockActivityEnvironment().run(audit.auditDeliveries);
    }
    // The second attempt is due 42 s after the first.
    await eventually('its second attempt', async () => (await readAttempts()) === 2, 60_000);
    expect(hook.events(id)).toHaveLength(2);
  });
});

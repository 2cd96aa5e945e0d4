import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import type { IdempotencyRecord } from '../../src/store/idempotency';
import { useFixture } from '../support/fixture';
import { eventually, idealPayment, readReplayed } from '../support/http';
import { useAccount, useService } from '../support/service';
import { FUNDS, useShop } from './payout-setting';
import { expectRefusal } from './refusal';

/** Longest that a caller waits for a 503: the request limit of 8 s, and time for a busy machine. */
const ANSWER_MS_MAX = 60_000;

// No worker runs by default, which is the outage.
const service = useService({ worker: false });
const shop = useAccount(service);
/** Record of a call that no worker has carried out, as a pattern for others. */
let open: IdempotencyRecord | null = null;

const create = (idempotencyKey: string, once = true) =>
  shop.post('/v1/payments', idealPayment(), { idempotencyKey, once });
/** Repeats the call while a busy machine answers too late. */
const insist = (idempotencyKey: string) => create(idempotencyKey, false);
const records = () => service.collection<IdempotencyRecord>('idempotency');
const findRecord = (key: string, { account_id } = { ...shop }) =>
  records().findOne({ account_id, key });

/** Reserves a key like a call whose process died at once: nothing was started at Temporal. */
async function leaveRecord(idempotencyKey: string): Promise<string> {
  if (open === null) throw new Error('There is no open record to copy.');
  const { fingerprint, livemode, operation, request } = open;
  const resource_id = randomUUID();
  await service.stores.idempotency.reserveKey(
    {
      account_id: shop.account_id,
      livemode,
      operation,
      key: idempotencyKey,
      fingerprint,
      resource_id,
      request,
      request_id: randomUUID(),
    },
    new Date(Date.now() - 60_000),
  );
  return resource_id;
}

test('a create whose worker has died is answered by another worker', async () => {
  const first = create('lost');
  // A poller that takes the task and is never heard of again.
  const poll = { namespace: 'default', taskQueue: { name: service.queues.lifecycle } };
  const taken = await eventually('the task', async () => {
    const { workflowService } = service.temporal;
    const ask = () => workflowService.pollWorkflowTaskQueue(poll);
    const task = await service.temporal.withDeadline(Date.now() + 2 * ANSWER_MS_MAX, ask);
    // A poll ends empty where nothing has come for a minute.
    return task.taskToken.length > 0 && task;
  });
  const workers = await service.startWorkers();
  await first;
  // A busy machine may have used up the first call's time.
  const { body } = await insist('lost');
  await workers.stop();
  expect(taken.workflowExecution?.workflowId).toBe(`payment:${body.id}`);
  const { events } = await service.temporal.workflow.getHandle(`payment:${body.id}`).fetchHistory();
  const lost = events?.filter((event) => event.workflowTaskTimedOutEventAttributes) ?? [];
  // One task, or more where the next worker was slow as well.
  expect(lost).not.toHaveLength(0);
  // Half of a call's time, whatever a busy machine makes of it.
  const begun = events?.[0]?.workflowExecutionStartedEventAttributes;
  expect(Number(begun?.workflowTaskTimeout?.seconds)).toBe(4);
});

test('a create without a worker ends as 503 in time, and its key stays reserved', async () => {
  const begun = performance.now();
  const answer = await create('outage');
  expect(performance.now() - begun).toBeLessThan(ANSWER_MS_MAX);
  expectRefusal(answer, 'temporarily_unavailable');
  expect(answer.headers.get('Retry-After')).toBe('1');
  expect(answer.body.error.message).toContain('same Idempotency-Key');
  open = await findRecord('outage');
  expect(open).toMatchObject({ status: null, request: expect.any(Object) });
});

test('a second caller waits for the first call, and is then refused as in progress', async () => {
  const first = create('crowd');
  await eventually('the record', () => findRecord('crowd'));
  // As if the first had just come in, however busy the machine is.
  const created_at = new Date(Date.now() + 10 * ANSWER_MS_MAX);
  await records().updateOne(
    { account_id: shop.account_id, key: 'crowd' },
    { $set: { created_at } },
  );
  const begun = performance.now();
  const second = await create('crowd');
  expect(performance.now() - begun).toBeLessThan(ANSWER_MS_MAX);
  expectRefusal(second, 'idempotency_request_in_progress');
  expect(second.headers.get('Retry-After')).toBe('1');
  expectRefusal(await first, 'temporarily_unavailable');
});

test('an open key is not freed by time, so that nothing is created twice', async () => {
  const id = await leaveRecord('old');
  const long = new Date(Date.now() - 48 * 60 * 60 * 1_000);
  await records().updateOne({ resource_id: id }, { $set: { created_at: long } });
  expectRefusal(await create('old'), 'temporarily_unavailable');
  expect((await findRecord('old'))?.resource_id).toBe(id);
});

describe('once a worker runs', () => {
  useFixture(
    () => service.startWorkers(),
    (workers) => workers.stop(),
  );

  test('a repeat under the same key answers with the payment of the first call', async () => {
    const reserved = (await findRecord('outage'))?.resource_id;
    const retry = await insist('outage');
    expect(retry.status).toBe(201);
    expect(retry.body.id).toBe(reserved);
    const again = await insist('outage');
    expect(again.text).toBe(retry.text);
    expect(again.headers.get('Idempotent-Replayed')).toBe('true');
    expect(
      await service.collection('payments').countDocuments({ _id: { $eq: retry.body.id } }),
    ).toBe(1);
  });

  test('both callers of one key get the same payment', async () => {
    const [one, two] = await Promise.all([insist('crowd'), insist('crowd')]);
    expect([one.status, two.status]).toEqual([201, 201]);
    expect(one.text).toBe(two.text);
  });

  test('a repeat completes what a process left when it died, under the reserved id', async () => {
    const id = await leaveRecord('left');
    const answers = await Promise.all([insist('left'), insist('left'), insist('left')]);
    expect(answers.map(({ status, body }) => [status, body.id])).toEqual(Array(3).fill([201, id]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  });

  test('a caller who hangs up gets the payment with the next call', async () => {
    const { hostname, port } = new URL(service.url);
    const sent = request({
      hostname,
      port,
      method: 'POST',
      path: '/v1/payments',
      headers: {
        Authorization: `Bearer ${shop.key}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': 'gone',
      },
    });
    sent.on('error', () => {});
    sent.end(JSON.stringify(idealPayment()));
    const record = await eventually('the record', () => findRecord('gone'));
    sent.destroy();
    const retry = await insist('gone');
    expect(retry.status).toBe(201);
    expect(retry.body.id).toBe(record.resource_id);
  });
});

test('a key is free again when the workflow was terminated before the payment was stored', async () => {
  // On a busy machine a call may end before its workflow has begun.
  const first = await eventually('its workflow', async () => {
    expectRefusal(await create('ended'), 'temporarily_unavailable');
    const record = await findRecord('ended');
    const handle = service.temporal.workflow.getHandle(`payment:${record?.resource_id}`);
    return await handle.terminate('by hand').then(
      () => record,
      () => undefined,
    );
  });
  // On a busy machine a call may end before it has learned so.
  await eventually('the key to be free', async () => {
    expectRefusal(await create('ended'), 'temporarily_unavailable');
    return (await findRecord('ended')) === null;
  });
  const workers = await service.startWorkers();
  try {
    const next = await create('ended', false);
    expect(next.status).toBe(201);
    expect(next.body.id).not.toBe(first.resource_id);
  } finally {
    await workers.stop();
  }
});

test('a key stays reserved when the database has lost its payment, so that no money moves twice', async () => {
  const workers = await service.startWorkers();
  try {
    const made = await create('restored', false);
    const { id } = made.body;
    await shop.post(`/v1/payments/${id}/cancel`);
    await service.temporal.workflow.getHandle(`payment:${id}`).result();
    // As a backup from before the answer would have it.
    const request = (await findRecord('restored'))?.request ?? null;
    await service.collection<{ _id: string }>('payments').deleteOne({ _id: id });
    await records().updateOne(
      { resource_id: id },
      {
        $set: { status: null, body: null, request, created_at: new Date(Date.now() - 60_000) },
        $unset: { expires_at: '' },
      },
    );
    expectRefusal(await create('restored'), 'temporarily_unavailable');
    expect(await findRecord('restored')).toMatchObject({ resource_id: id });
  } finally {
    await workers.stop();
  }
});

describe('a payout without a worker', () => {
  const payer = useShop(service);

  test('is refused for good when a worker comes, and its key creates a new one', async () => {
    // On a busy machine a call may end before its workflow has begun.
    const { first, handle } = await eventually('its workflow', async () => {
      const late = await payer.pay({}, 'late', true);
      if (late.status === 409) return undefined;
      expectRefusal(late, 'temporarily_unavailable');
      expect(late.headers.get('Retry-After')).toBe('1');
      const record = await findRecord('late', payer);
      const begun = service.temporal.workflow.getHandle(`payout:${record?.resource_id}`);
      return await begun.describe().then(
        () => ({ first: record, handle: begun }),
        () => undefined,
      );
    });
    const workers = await service.startWorkers();
    try {
      expect(await handle.result()).toMatchObject({
        payout_id: first?.resource_id,
        status: 'refused',
        code: 'temporarily_unavailable',
      });
      expect(await findRecord('late', payer)).toBeNull();
      expect(await payer.balance()).toEqual([FUNDS.main, 0]);
      expect(await payer.count('payouts')).toBe(0);
      const next = await payer.pay({}, 'late');
      expect([next.status, readReplayed(next)]).toEqual([201, null]);
      expect(next.body.id).not.toBe(first?.resource_id);
      expectRefusal(await payer.get(`/v1/payouts/${first?.resource_id}`), 'payout_not_found');
      await payer.untilSent();
      expect(await payer.balance()).toEqual([FUNDS.main - 1_000, 0]);
    } finally {
      await workers.stop();
    }
  });

  test('is refused to all simultaneous callers of its key, and later created once', async () => {
    const crowd = () => Promise.all(Array.from({ length: 3 }, () => payer.pay({}, 'crowd', true)));
    for (const answer of await crowd()) expect([409, 503]).toContain(answer.status);
    const paid = await payer.count('payouts');
    const workers = await service.startWorkers();
    try {
      const made = await eventually('one that is taken', async () => {
        const answers = await crowd();
        return answers.every(({ status }) => status === 201) && answers;
      });
      expect(new Set(made.map(({ text }) => text)).size).toBe(1);
      expect(await payer.count('payouts')).toBe(paid + 1);
    } finally {
      await workers.stop();
    }
  });
});

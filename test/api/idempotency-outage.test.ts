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

const service = useService({ worker: false });
const shop = useAccount(service);
/** The claim of a call that no worker has taken up, as a pattern for others. */
let open: IdempotencyRecord | null = null;

const create = (idempotencyKey: string, once = true) =>
  shop.post('/v1/payments', idealPayment(), { idempotencyKey, once });
/** Asks again while a busy machine answers too late. */
const insist = (idempotencyKey: string) => create(idempotencyKey, false);
const claims = () => service.collection<IdempotencyRecord>('idempotency');
const claimOf = (key: string, { account_id } = { ...shop }) =>
  claims().findOne({ account_id, key });

/** Claimed by a call whose process died at once: nothing was started at Temporal. */
async function leaveClaim(idempotencyKey: string): Promise<string> {
  if (open === null) throw new Error('There is no open claim to copy.');
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

test('a create whose task went away with its worker is answered, since it is given to another', async () => {
  const asked = create('lost');
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
  await asked;
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

test('with no worker a create ends as 503 in time, with Retry-After; the claim stays', async () => {
  const begun = performance.now();
  const answer = await create('outage');
  expect(performance.now() - begun).toBeLessThan(ANSWER_MS_MAX);
  expectRefusal(answer, 'temporarily_unavailable');
  expect(answer.headers.get('Retry-After')).toBe('1');
  expect(answer.body.error.message).toContain('same Idempotency-Key');
  open = await claimOf('outage');
  expect(open).toMatchObject({ status: null, request: expect.any(Object) });
});

test('a second caller during the first call waits, then is told it is in progress', async () => {
  const first = create('crowd');
  await eventually('the claim', () => claimOf('crowd'));
  // As if the first had just come in, however busy the machine is.
  const created_at = new Date(Date.now() + 10 * ANSWER_MS_MAX);
  await claims().updateOne({ account_id: shop.account_id, key: 'crowd' }, { $set: { created_at } });
  const begun = performance.now();
  const second = await create('crowd');
  expect(performance.now() - begun).toBeLessThan(ANSWER_MS_MAX);
  expectRefusal(second, 'idempotency_request_in_progress');
  expect(second.headers.get('Retry-After')).toBe('1');
  expectRefusal(await first, 'temporarily_unavailable');
});

test('an open claim is not freed by time, so that nothing is made twice', async () => {
  const id = await leaveClaim('old');
  const long = new Date(Date.now() - 48 * 60 * 60 * 1_000);
  await claims().updateOne({ resource_id: id }, { $set: { created_at: long } });
  expectRefusal(await create('old'), 'temporarily_unavailable');
  expect((await claimOf('old'))?.resource_id).toBe(id);
});

describe('once a worker is up', () => {
  useFixture(
    () => service.startWorkers(),
    (workers) => workers.stop(),
  );

  test('the retry with the same key gives the one payment that the first call began', async () => {
    const claimed = (await claimOf('outage'))?.resource_id;
    const retry = await insist('outage');
    expect(retry.status).toBe(201);
    expect(retry.body.id).toBe(claimed);
    const again = await insist('outage');
    expect(again.text).toBe(retry.text);
    expect(again.headers.get('Idempotent-Replayed')).toBe('true');
    expect(
      await service.collection('payments').countDocuments({ _id: { $eq: retry.body.id } }),
    ).toBe(1);
  });

  test('both callers of one key come to the same payment', async () => {
    const [one, two] = await Promise.all([insist('crowd'), insist('crowd')]);
    expect([one.status, two.status]).toEqual([201, 201]);
    expect(one.text).toBe(two.text);
  });

  test('a claim left by a process that died is taken up: the payment has its id', async () => {
    const id = await leaveClaim('left');
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
    const claim = await eventually('the claim', () => claimOf('gone'));
    sent.destroy();
    const retry = await insist('gone');
    expect(retry.status).toBe(201);
    expect(retry.body.id).toBe(claim.resource_id);
  });
});

test('ended from outside before it was stored: the key is free again, and makes a new payment', async () => {
  // On a busy machine a call may end before its workflow has begun.
  const first = await eventually('its workflow', async () => {
    expectRefusal(await create('ended'), 'temporarily_unavailable');
    const claim = await claimOf('ended');
    const handle = service.temporal.workflow.getHandle(`payment:${claim?.resource_id}`);
    return await handle.terminate('by hand').then(
      () => claim,
      () => undefined,
    );
  });
  // On a busy machine a call may end before it has learned so.
  await eventually('the key to be free', async () => {
    expectRefusal(await create('ended'), 'temporarily_unavailable');
    return (await claimOf('ended')) === null;
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

test('stored once and lost by the database: its key stays, so that no money moves twice', async () => {
  const workers = await service.startWorkers();
  try {
    const made = await create('restored', false);
    const { id } = made.body;
    await shop.post(`/v1/payments/${id}/cancel`);
    await service.temporal.workflow.getHandle(`payment:${id}`).result();
    // As a backup from before the answer would have it.
    const request = (await claimOf('restored'))?.request ?? null;
    await service.collection<{ _id: string }>('payments').deleteOne({ _id: id });
    await claims().updateOne(
      { resource_id: id },
      {
        $set: { status: null, body: null, request, created_at: new Date(Date.now() - 60_000) },
        $unset: { expires_at: '' },
      },
    );
    expectRefusal(await create('restored'), 'temporarily_unavailable');
    expect(await claimOf('restored')).toMatchObject({ resource_id: id });
  } finally {
    await workers.stop();
  }
});

describe('while nobody works on payouts', () => {
  const payer = useShop(service);

  test('one is refused for good, no money moves later, and its key makes a new one', async () => {
    // On a busy machine a call may end before its workflow has begun.
    const { first, handle } = await eventually('its workflow', async () => {
      const late = await payer.pay({}, 'late', true);
      if (late.status === 409) return undefined;
      expectRefusal(late, 'temporarily_unavailable');
      expect(late.headers.get('Retry-After')).toBe('1');
      const claim = await claimOf('late', payer);
      const begun = service.temporal.workflow.getHandle(`payout:${claim?.resource_id}`);
      return await begun.describe().then(
        () => ({ first: claim, handle: begun }),
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
      expect(await claimOf('late', payer)).toBeNull();
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

  test('a crowd of callers with one key are all told to come back, and then one is made', async () => {
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

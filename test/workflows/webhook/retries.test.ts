import type { WebhookActivityDeps } from '../../../activities/webhooks/next-attempt';
import { ATTEMPTS_MAX, nextAttemptDelayMs } from '../../../src/domain/webhook/schedule';
import { runWhile } from '../../support/run-while';
import { useReceivers } from '../../webhooks/posting';
import {
  activitiesOn,
  type Delivering,
  recordEvent,
  startDelivery,
  useRealServer,
  useStores,
  workerOn,
} from './setting';

/** The retries of a real server: it can't skip time, so the day is pressed into five seconds. */
const SCALE = 18_000;
const inFiveSeconds: WebhookActivityDeps['nextDelayMs'] = (failed) => {
  const nowMs = failed.firstAtMs + (failed.nowMs - failed.firstAtMs) * SCALE;
  return Math.max(1, Math.round(nextAttemptDelayMs({ ...failed, nowMs }) / SCALE));
};

const server = useRealServer();
const stores = useStores();

const receivers = useReceivers();
const failing = () => receivers.http((_request, response) => response.writeHead(503).end());

async function withWorker<T>(
  changes: Partial<WebhookActivityDeps>,
  work: (delivering: Delivering) => Promise<T>,
): Promise<T> {
  const delivering = { env: server.env, taskQueue: `webhooks-${Object.keys(changes).join('')}` };
  const worker = await workerOn(delivering, activitiesOn(stores, changes));
  return await runWhile(worker, () => work(delivering));
}

test('the server makes 12 attempts, each when the last one asked for it', async () => {
  const receiver = await failing();
  const event = await recordEvent(stores, receiver.url);
  await withWorker({ nextDelayMs: inFiveSeconds }, async (delivering) => {
    const handle = await startDelivery(delivering, event);
    expect(await handle.result()).toEqual({ outcome: 'exhausted' });
    expect((await handle.describe()).searchAttributes['ServiceAttention']).toEqual([
      'webhook_exhausted',
    ]);
    expect(await handle.query('__temporal_workflow_metadata')).toMatchObject({
      currentDetails: expect.stringMatching(
        new RegExp(`Last failure: HTTP 503 from localhost:\\d+[^]*event redeliver ${event._id}`),
      ),
    });
  });
  expect(receiver.connections()).toBe(ATTEMPTS_MAX);
  const rows = (await stores.deliveries.forEvent(event._id)).reverse();
  expect(rows.map(({ attempt }) => attempt)).toEqual(rows.map((_row, index) => index + 1));
  for (const [index, { next_attempt_at }] of rows.slice(0, -1).entries()) {
    const late = Date.parse(rows[index + 1]?.at ?? '') - Date.parse(next_attempt_at ?? '');
    // Milliseconds of a server that rounds its timers, and what a busy machine takes.
    expect(late).toBeGreaterThanOrEqual(-50);
    expect(late).toBeLessThan(60_000);
  }
});

test('between attempts the operator sees the attempt, the failure and the next time', async () => {
  const receiver = await failing();
  const event = await recordEvent(stores, receiver.url);
  await withWorker({ random: () => 1 }, async (delivering) => {
    const handle = await startDelivery(delivering, event);
    const pending = await retried(handle);
    const next = Number(pending.scheduledTime?.seconds) * 1_000;
    expect(pending.attempt).toBe(2);
    expect(pending.lastFailure).toMatchObject({
      message: `HTTP 503 from localhost:${receiver.port} (attempt 1 of ${ATTEMPTS_MAX})`,
      applicationFailureInfo: { type: 'WebhookAttemptFailed', nonRetryable: false },
    });
    const { events } = await handle.fetchHistory();
    const scheduled = events?.find((past) => past.activityTaskScheduledEventAttributes);
    const { retryPolicy } = scheduled?.activityTaskScheduledEventAttributes ?? {};
    // 42 s and all of the jitter, a twentieth, and what a busy machine took for the attempt.
    const waits = next - Number(scheduled?.eventTime?.seconds) * 1_000;
    expect(waits).toBeGreaterThan(43_000);
    expect(waits).toBeLessThan(105_000);
    // The twelve are counted where they are made: a try that ended without a word is none of them.
    expect(retryPolicy).toMatchObject({ backoffCoefficient: 2, maximumAttempts: 0 });
    expect(Number(retryPolicy?.initialInterval?.seconds)).toBe(1);
    expect(Number(retryPolicy?.maximumInterval?.seconds)).toBe(600);
    await handle.terminate();
  });
});

/** Waits until the server has planned the second attempt. */
async function retried(handle: Awaited<ReturnType<typeof startDelivery>>) {
  for (;;) {
    const [pending] = (await handle.describe()).raw.pendingActivities ?? [];
    if (pending?.attempt === 2 && pending.lastFailure) return pending;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

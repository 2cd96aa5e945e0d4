import { MongoNetworkError } from 'mongodb';
import type { WebhookActivities } from '../../../activities/webhooks/deliver';
import type { WebhookActivityDeps } from '../../../activities/webhooks/next-attempt';
import { saveHistory } from '../../support/histories';
import { runWhile } from '../../support/run-while';
import { useReceivers } from '../../webhooks/posting';
import {
  activitiesOn,
  type Delivering,
  recordEvents,
  startDelivery,
  useRealServer,
  useStores,
  workerOn,
} from './setting';

/** First attempts that the task which starts a delivery makes, on a real server. */
const server = useRealServer();
const stores = useStores();

// Each task is counted; a machine that stalls adds one.
jest.retryTimes(3);

const receivers = useReceivers();
let queues = 0;

/**
 * Delivers three events of a merchant, one after the other, who answers the nth post with the nth
 * status. The first shows that the endpoint answers at once.
 */
async function deliverThree(
  statuses: number[],
  changes: Partial<WebhookActivityDeps> = {},
  wrap: (activities: WebhookActivities) => WebhookActivities = (activities) => activities,
) {
  let posts = 0;
  const receiver = await receivers.http((request, response) => {
    request.resume();
    posts += 1;
    response.writeHead(statuses[posts - 1] ?? 200).end('thanks');
  });
  const events = await recordEvents(stores, receiver.url, 3);
  queues += 1;
  const delivering: Delivering = { env: server.env, taskQueue: `webhooks-first-${queues}` };
  const worker = await workerOn(delivering, wrap(activitiesOn(stores, changes)));
  const handles = await runWhile(worker, async () => {
    const made = [];
    for (const event of events) {
      const handle = await startDelivery(delivering, event);
      expect(await handle.result()).toEqual({ outcome: 'delivered' });
      made.push(handle);
    }
    return made;
  });
  const histories = await Promise.all(
    handles.map(async (handle) => (await handle.fetchHistory()).events ?? []),
  );
  const [, second] = events;
  const rows = (await stores.deliveries.forEvent(second?._id ?? '')).reverse();
  const delivery = (await stores.events.get(second?._id ?? ''))?.delivery;
  return { url: receiver.url, posts, handles, histories, rows, delivery };
}

test('at an endpoint that answers at once the task that starts the delivery ends it', async () => {
  const { histories, handles, rows, delivery, posts } = await deliverThree([200, 204]);
  // With the native activity: one marker, three events of it and three of its task more.
  expect(histories.map((events) => events.length)).toEqual([12, 6, 6]);
  expect(posts).toBe(3);
  expect(rows).toEqual([
    expect.objectContaining({
      run: 0,
      attempt: 1,
      outcome: 'delivered',
      status_code: 204,
      next_attempt_at: null,
    }),
  ]);
  expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, next_attempt_at: null });
  if (handles[1] !== undefined) await saveHistory(handles[1], 'webhook-first-attempt');
});

test('one that fails there is the first of twelve, and the activity shows it', async () => {
  const nextDelayMs = () => 2_000;
  const { histories, rows, delivery, posts } = await deliverThree([200, 503, 200], { nextDelayMs });
  expect(posts).toBe(4);
  expect(rows.map(({ attempt, status_code }) => [attempt, status_code])).toEqual([
    [1, 503],
    [2, 200],
  ]);
  expect(delivery).toMatchObject({ status: 'delivered', attempts: 2 });
  const tried = histories[1]?.find((event) => event.activityTaskStartedEventAttributes);
  expect(tried?.activityTaskStartedEventAttributes).toMatchObject({
    attempt: 2,
    lastFailure: { message: expect.stringMatching(/^HTTP 503 from .*\(attempt 1 of 12\)$/) },
  });
  // The endpoint has shown itself again meanwhile.
  expect(histories[2]).toHaveLength(6);
});

test('one whose report was lost is not made again', async () => {
  const { posts, rows, delivery } = await deliverThree([200], {}, (activities) => ({
    ...activities,
    firstAttempt: async (input) => {
      const outcome = await activities.firstAttempt(input);
      if (outcome === 'delivered') throw new Error('The worker was lost.');
      return outcome;
    },
  }));
  expect(posts).toBe(3);
  expect(rows).toMatchObject([{ attempt: 1, outcome: 'delivered' }]);
  expect(delivery).toMatchObject({ status: 'delivered', attempts: 1 });
});

test('one that could not be recorded is carried to where it can, and not made again', async () => {
  const { deliveries } = stores;
  let kept = 0;
  const keep: typeof deliveries.addAttempt = (row) => {
    kept += 1;
    // Away once the first event is told, until another step comes, with what it was handed.
    const isAway = kept > 1 && row.url.includes('source');
    return isAway ? Promise.reject(new MongoNetworkError('away')) : deliveries.addAttempt(row);
  };
  const { url, posts, rows, histories } = await deliverThree([200], {
    deliveries: { ...deliveries, addAttempt: keep },
  });
  expect(posts).toBe(3);
  const { origin } = new URL(url);
  expect(rows).toMatchObject([
    { attempt: 1, url: origin, response_excerpt: '', outcome: 'delivered' },
  ]);
  expect(JSON.stringify(histories[1])).not.toMatch(/source=test|thanks/);
});

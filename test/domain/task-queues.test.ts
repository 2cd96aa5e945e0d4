import {
  connectorQueue,
  environmentQueue,
  questionQueue,
  readPrefix,
  taskQueues,
} from '../../src/domain/task-queues';

test.each(['', 'shop', 'eu_2-a', 'lifecycle', 'a-lifecycle', 'a-lifecycle-live'])(
  'the prefix "%s" is read back from both lifecycle queues',
  (prefix) => {
    const { lifecycleQueue } = taskQueues(prefix);
    for (const livemode of [false, true]) {
      expect(readPrefix(environmentQueue(lifecycleQueue, livemode))).toBe(prefix);
    }
  },
);

test('installations, and environments of one installation, never share a queue', () => {
  const names = ['', 'a', 'b'].flatMap((prefix) => {
    const { lifecycleQueue, webhookQueue } = taskQueues(prefix);
    const own = [lifecycleQueue, webhookQueue];
    const live = own.map((queue) => environmentQueue(queue, true));
    const connector = [connectorQueue('sandbox', prefix), questionQueue('sandbox', prefix)];
    return [...own, ...live, ...connector];
  });
  expect(new Set(names).size).toBe(names.length);
  const first = ['lifecycle', 'webhooks', 'lifecycle-live', 'webhooks-live', 'connector-sandbox'];
  expect(names.slice(0, 5)).toEqual(first);
});

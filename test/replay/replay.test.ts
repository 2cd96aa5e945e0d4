import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { workflowBundles } from '../support/bundle';
import { quietTemporal } from '../support/quiet';

/**
 * Saved histories of every path: from 2.0.0 on, workflows that run now must go on under the code of
 * tomorrow. README.md next to this file lists them, and test/docs holds the list against the folder.
 */
const FOLDER = join(__dirname, 'histories');
const names = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
const read = (name: string) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8'));

/** As it was: a workflow holds the id of its input against its own. */
function readWorkflowId(history: Saved) {
  const started = history.events[0]?.workflowExecutionStartedEventAttributes;
  const data = started?.input?.payloads?.[0]?.data ?? '';
  const input = JSON.parse(Buffer.from(data, 'base64').toString() || '{}');
  const type = started?.workflowType.name;
  if (type === 'webhookDelivery') return `webhook:${input.event_id}`;
  // `cryptoPayment` has `crypto-payment:{crypto_payment_id}`.
  const named = (joint: string) => type?.replace(/[A-Z]/g, (c) => `${joint}${c.toLowerCase()}`);
  return `${named('-')}:${input[`${named('_')}_id`]}`;
}

function readRunId(history: Saved): string {
  return history.events[0]?.workflowExecutionStartedEventAttributes.originalExecutionRunId ?? '';
}

interface Saved {
  events: { workflowExecutionStartedEventAttributes: Started }[];
}

interface Started {
  workflowType: { name: string };
  originalExecutionRunId: string;
  input?: { payloads?: { data: string }[] };
}

/** Faults by run; null: it replayed. */
const replayed = new Map<string, Error | null>();

/** Replays all of a bundle by one worker: making one takes longer than any replay. */
beforeAll(async () => {
  quietTemporal();
  const { lifecycle, webhooks } = await workflowBundles();
  const deliveries = names.filter((name) => name.startsWith('webhook-'));
  const others = names.filter((name) => !deliveries.includes(name));
  await replayAll(lifecycle, others);
  await replayAll(webhooks, deliveries);
});

async function replayAll(workflowBundle: WorkflowBundleOption, all: string[]): Promise<void> {
  const saved = all.map(read);
  const histories = saved.map((history) => ({ history, workflowId: readWorkflowId(history) }));
  for await (const { runId, error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
    replayed.set(runId, error ?? null);
  }
}

test.each(names)('%s replays', (name) => {
  expect(replayed.get(readRunId(read(name)))).toBeNull();
});

test('no run is saved twice', () => {
  expect(replayed.size).toBe(names.length);
});

test('a history of other code does not replay', async () => {
  const history = read('payment-settled.json');
  const attributes = 'activityTaskScheduledEventAttributes';
  const scheduled = history.events.find((event: object) => attributes in event);
  scheduled[attributes].activityType.name = 'anotherActivity';
  const options = { workflowBundle: (await workflowBundles()).lifecycle };
  await expect(Worker.runReplayHistory(options, history, readWorkflowId(history))).rejects.toThrow(
    DeterminismViolationError,
  );
});

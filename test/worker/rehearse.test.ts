import { readFileSync } from 'node:fs';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { formatRehearsal } from '../../worker/rehearse/main';
import { rehearse } from '../../worker/rehearse/rehearse';
import { workflowBundles } from '../support/bundle';
import { eventually } from '../support/http';
import { scriptedBank } from '../support/workflow-setting';
import { useLifecycles } from '../workflows/lifecycles';

const { setting, withPayment, withPayout, withRefund } = useLifecycles('real');

const rename = (step: string) => [`\\b${step}\\(`, `${step}Again(`] as const;

/** Edits of the workflows' code, under which those that run would not continue. */
const EDITS: [edit: string, type: string, from: string, to: string][] = [
  ['opens a payment by another step', 'payment', ...rename('activities.openPayment')],
  ['records a payment by another step', 'payment', ...rename('activities.recordPaymentMove')],
  ['opens a session by another step', 'payment', 'openSession', 'openSessionAgain'],
  ['opens a refund by another step', 'refund', ...rename('activities.openRefund')],
  ['records a refund by another step', 'refund', ...rename('activities.recordRefundMove')],
  ['sends a refund by another step', 'refund', ...rename('once.sendRefund')],
  ['records a payout by another step', 'payout', ...rename('activities.recordPayoutMove')],
  ['sends a payout by another step', 'payout', ...rename('once.sendPayout')],
  ['sets no timer for what is due', 'payment', 'alarm\\.set\\(', 'void ('],
  ['shows no status', 'payment', 'pairs\\.length > 0', 'pairs.length > 9'],
];

async function rehearseUnder(lifecycle: WorkflowBundleOption) {
  const { env, queues } = setting;
  const { webhooks } = await workflowBundles();
  return await rehearse({
    client: env.client,
    bundles: { lifecycle, webhooks },
    queues: { lifecycleQueue: queues.lifecycle, webhookQueue: queues.webhooks },
    most: 50,
  });
}

async function readCode(): Promise<string> {
  const { lifecycle } = await workflowBundles();
  return 'code' in lifecycle ? lifecycle.code : readFileSync(lifecycle.codePath, 'utf8');
}

/** Runs some workflows of each kind to their ends, and leaves one payment running. */
beforeAll(async () => {
  await withPayment(scriptedBank(), ({ endBy }) => endBy('settled'));
  await withRefund(scriptedBank(), ({ endBy }) => endBy('settled'));
  await withPayout(scriptedBank(), ({ endBy }) => endBy('completed'));
  await withPayment(scriptedBank(), ({ becomes }) => becomes({ status: 'awaiting_customer' }));
  await eventually('the workflows to be visible', async () => {
    const query = `TaskQueue = '${setting.queues.lifecycle}'`;
    return (await setting.env.client.workflow.count(query)).count >= 5;
  });
});

test('what has happened continues under the same code; of each path one is replayed', async () => {
  const { lifecycle } = await workflowBundles();
  const result = await rehearseUnder(lifecycle);
  expect(result).toEqual({
    types: [
      { type: 'payment', histories: 3, paths: expect.any(Number) },
      { type: 'refund', histories: 1, paths: 1 },
      { type: 'payout', histories: 1, paths: 1 },
    ],
    divergence: null,
  });
  expect(result.types[0]?.paths).toBeLessThan(4);
  expect(formatRehearsal(result)).toContain('All continue under this build.');
});

test.each(EDITS)('an edit that %s is found', async (_edit, type, from, to) => {
  const code = await readCode();
  const edited = code.replace(new RegExp(from, 'g'), to);
  expect(edited).not.toBe(code);
  const { divergence } = await rehearseUnder({ code: edited });
  expect(divergence).toEqual({
    type,
    workflow_id: expect.stringMatching(new RegExp(`^${type}:`)),
    run_id: expect.any(String),
    message: expect.stringMatching(/nondetermin|TMPRL1100/i),
  });
});

test('no workflow of another installation is read', async () => {
  const { lifecycle, webhooks } = await workflowBundles();
  const result = await rehearse({
    client: setting.env.client,
    bundles: { lifecycle, webhooks },
    queues: { lifecycleQueue: 'unused-lifecycle', webhookQueue: 'unused-webhooks' },
    most: 50,
  });
  expect(result).toEqual({ types: [], divergence: null });
  expect(formatRehearsal(result)).toContain('No workflow was found.');
});

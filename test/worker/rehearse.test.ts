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

/** Edits of the workflows' code under which running workflows would not continue. */
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

/** Workflow ids of the payouts that a busy machine did not accept, so that another was opened. */
async function refusedPayouts(accepted_account: string): Promise<string[]> {
  const { postings } = setting.stores.ledger.collections;
  // Each has an account of its own, funded first; its key and its record may be gone.
  const books = await postings.distinct('book', { kind: 'funded' });
  const refused = books.filter((book) => !book.startsWith(`${accepted_account}:`));
  return refused.map((book) => book.replace(/^acct_([^:]+):.*$/, 'payout:$1'));
}

/** Deletes a workflow that has ended: what is left is just what the tests count. */
async function deleteWorkflow(workflowId: string): Promise<void> {
  const { connection, namespace = 'default' } = setting.env;
  const workflowExecution = { workflowId };
  await connection.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
}

/** The server may take half a minute to delete one. */
const VISIBLE_MS_MAX = 150_000;

async function listWorkflows(): Promise<string[]> {
  const query = `TaskQueue = '${setting.queues.lifecycle}'`;
  const ids: string[] = [];
  for await (const { workflowId } of setting.env.client.workflow.list({ query })) {
    ids.push(workflowId);
  }
  return ids;
}

/** Runs some workflows of each kind to their ends, and leaves one payment running. */
beforeAll(async () => {
  let refused: string[] = [];
  await withPayment(scriptedBank(), ({ endBy }) => endBy('settled'));
  await withRefund(scriptedBank(), ({ endBy }) => endBy('settled'));
  await withPayout(scriptedBank(), async ({ account_id, endBy }) => {
    await endBy('completed');
    refused = await refusedPayouts(account_id);
  });
  await Promise.all(refused.map(deleteWorkflow));
  await withPayment(scriptedBank(), ({ becomes }) => becomes({ status: 'awaiting_customer' }));
  await eventually(
    'the workflows to be visible',
    async () => {
      const listed = await listWorkflows();
      return listed.length === 5 && !refused.some((id) => listed.includes(id));
    },
    VISIBLE_MS_MAX,
  );
});

test('recorded histories continue under the same code, and one of each path is replayed', async () => {
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

test.each(EDITS)('finds an edit that %s', async (_edit, type, from, to) => {
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

test('reads no workflow of another installation', async () => {
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

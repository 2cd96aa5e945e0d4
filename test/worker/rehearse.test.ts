import { readFileSync } from 'node:fs';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { formatRehearsal, rehearse } from '../../worker/rehearse';
import { workflowBundles } from '../support/bundle';
import { eventually } from '../support/eventually';
import { scriptedBank } from '../support/workflow-setting';
import { useLifecycles } from '../workflows/lifecycles';

const { setting, withPayment, withPayout, withRefund } = useLifecycles('real');

const rename = (step: string) => [`\\b${step}\\(`, `${step}Again(`] as const;

/** Edits of the workflows' code under which running workflows would not continue. */
const EDITS: [edit: string, type: string, from: string, to: string][] = [
  ['opens a payment by another step', 'payment', ...rename('activities.openPayment')],
  ['records a refund by another step', 'refund', ...rename('activities.recordRefundMove')],
  ['sends a payout by another step', 'payout', ...rename('once.sendPayout')],
  ['sets no timer for what is due', 'payment', 'alarm\\.set\\(', 'void ('],
  ['shows no status', 'payment', 'pairs\\.length > 0', 'pairs.length > 9'],
];

async function rehearseUnder(lifecycle: WorkflowBundleOption, queues = setting.queues) {
  const { webhooks } = await workflowBundles();
  return await rehearse({
    client: setting.env.client,
    bundles: { lifecycle, webhooks },
    queues: { lifecycleQueue: queues.lifecycle, webhookQueue: queues.webhooks },
    most: 50,
  });
}

/** Counts payouts that a busy machine did not accept, so that another was opened. */
async function countRefusedPayouts(): Promise<number> {
  // Each has an account of its own, funded first; its key and its record may be gone.
  const books = await setting.stores.ledger.collections.entries.distinct('book', {
    kind: 'funded',
  });
  return books.length - 1;
}

/** The server may take so long to list a workflow. */
const VISIBLE_MS_MAX = 150_000;
let refused: number;

/** Runs some workflows of each kind to their ends, and leaves one payment running. */
beforeAll(async () => {
  await withPayment(scriptedBank(), ({ endBy }) => endBy('settled'));
  await withRefund(scriptedBank(), ({ endBy }) => endBy('settled'));
  await withPayout(scriptedBank(), ({ endBy }) => endBy('completed'));
  refused = await countRefusedPayouts();
  await withPayment(scriptedBank(), ({ becomes }) => becomes({ status: 'awaiting_customer' }));
  const query = `TaskQueue = '${setting.queues.lifecycle}'`;
  await eventually(
    'the workflows to be visible',
    async () => (await setting.env.client.workflow.count(query)).count === 5 + refused,
    VISIBLE_MS_MAX,
  );
});

test('recorded histories continue under the same code', async () => {
  const { lifecycle } = await workflowBundles();
  const result = await rehearseUnder(lifecycle);
  expect(result).toEqual({
    types: [
      { type: 'payment', histories: 3 },
      { type: 'refund', histories: 1 },
      { type: 'payout', histories: 1 + refused },
    ],
    divergence: null,
  });
  expect(formatRehearsal(result)).toContain('All continue under this build.');
});

test.each(EDITS)('a rehearsal finds an edit that %s', async (_edit, type, from, to) => {
  const { lifecycle } = await workflowBundles();
  const code = 'code' in lifecycle ? lifecycle.code : readFileSync(lifecycle.codePath, 'utf8');
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

test('a rehearsal reads no workflow of another installation', async () => {
  const { lifecycle } = await workflowBundles();
  const queues = { ...setting.queues, lifecycle: 'unused-lifecycle', webhooks: 'unused-webhooks' };
  const result = await rehearseUnder(lifecycle, queues);
  expect(result).toEqual({ types: [], divergence: null });
  expect(formatRehearsal(result)).toContain('No workflow was found.');
});

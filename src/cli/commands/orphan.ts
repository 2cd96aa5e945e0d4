import { z } from 'zod';
import { listOrphans, restartOrphans, type ShownOrphan } from '../../service/operators/orphans';
import { defineCommand, defineGroup } from '../command';
import type { CliContext } from '../context';
import { limit } from '../options';
import { formatAge, formatTime, table } from '../output';

const Limit = limit(10_000, 1_000);

const list = defineCommand({
  name: 'list',
  description: 'list resources and deliveries in flight without a workflow',
  options: z.object({ limit: Limit }),
  example: 'orphan list',
  run: async (context, { limit: count }) => {
    const json = await listOrphans(await createDeps(context), count);
    const none = `All ${json.checked} in flight have a workflow that runs.`;
    context.print({ json, text: orphanTable(json.data, none) + formatMore(json) });
  },
});

const restart = defineCommand({
  name: 'restart',
  description: 'restart their workflows: of those named, or of all',
  options: z.object({
    ids: z
      .array(z.string())
      .default([])
      .describe('resources or events')
      .meta({ argument: true, placeholder: 'id' }),
    limit: Limit,
  }),
  notes: `
The workflow loads its state and continues. A resource with a completed workflow is left alone: its document
is behind, as after a restore, and \`reconcile\` updates it.`,
  example: 'orphan restart 0d1f… 7c2e…',
  run: async (context, options) => {
    const { audit } = await context.actingDeps();
    const json = await restartOrphans({ ...(await createDeps(context)), audit }, options);
    const { data, left_alone } = json;
    const parts = [
      `Started again: ${data.length}.`,
      ...(data.length === 0 ? [] : [orphanTable(data, '')]),
      ...(left_alone.length === 0
        ? []
        : [`Left alone, since their workflow has completed:\n${orphanTable(left_alone, '')}`]),
    ];
    context.print({ json, text: parts.join('\n\n') + formatMore(json) });
  },
});

async function createDeps(context: CliContext) {
  return { ...(await context.withTemporal(await context.readDeps())), progress: context.progress };
}

function orphanTable(rows: readonly ShownOrphan[], none: string): string {
  const cells = rows.map((row) => [
    row.resource,
    row.id,
    row.env,
    row.status,
    formatTime(row.updated_at),
    formatAge(row.age_seconds),
    row.workflow.toLowerCase().replace('_', ' '),
    row.account_id,
  ]);
  const heading = ['RESOURCE', 'ID', 'ENV', 'STATUS', 'SINCE', 'AGE', 'WORKFLOW', 'ACCOUNT'];
  return table(heading, cells, none);
}

function formatMore({ checked, has_more }: { checked: number; has_more: boolean }): string {
  return has_more ? `\n\nThere are more: it stopped after ${checked} were checked.` : '';
}

export const orphanCommands = defineGroup({
  name: 'orphan',
  description: 'what is in flight without a workflow, and restarting it',
  notes: `
An orphan is a payment, refund or payout that is in flight in MongoDB while none of its workflows runs, or
an event whose next attempt is a minute late without a delivery: the workflow was terminated, or lost.`,
  commands: [list, restart],
});

import { parseArgs } from 'node:util';
import { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { describeError, OperationalError } from '../src/base/errors';
import { environmentQueue, type TaskQueues, taskQueues } from '../src/domain/task-queues';
import { LIFECYCLES } from '../src/lifecycles';
import { temporalAccess } from '../src/temporal/access';
import { connectNative } from '../src/temporal/native';
import { type WorkflowBundles, workflowBundles } from './bundle';
import { quietRuntime } from './rebuild/replay';

const MOST = 1_000;
const MOST_MAX = 1_000_000;

const USAGE = `Usage: npm run rehearse -- --from ADDRESS [options]

Replays the running workflows of a Temporal namespace, and those that closed last, under the code of
this checkout. It only reads. Run it before you deploy: the exit code is 1, and the first workflow
that would not continue is named, if this code diverges from what has happened.

Options:
  --from ADDRESS  Temporal server, such as temporal.example:7233
  --most N        most runs of each type, running and closed (default ${MOST})
  --json          the result as JSON
  --help          this text

Environment:
  TASK_QUEUE_PREFIX, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_*  as for the worker
`;

interface Options {
  from: string;
  most: number;
  json: boolean;
}

/** @returns null for the help @throws OperationalError */
export function readOptions(args: readonly string[]): Options | null {
  const { from, most, json, help } = parse(args);
  if (help === true) return null;
  if (from === undefined || !/^[^\s:/]+:\d{1,5}$/.test(from)) {
    throw new OperationalError(
      `--from takes the address of a Temporal server, HOST:PORT\n\n${USAGE}`,
    );
  }
  const count = Number(most ?? MOST);
  if (!Number.isInteger(count) || count < 1 || count > MOST_MAX) {
    throw new OperationalError(`--most takes a whole number from 1 to ${MOST_MAX}, not ${most}`);
  }
  return { from, most: count, json: json === true };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const options = { from: text, most: text, json: flag, help: { ...flag, short: 'h' } } as const;
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new OperationalError(`${describeError(error)}\n\n${USAGE}`);
  }
}

const LIFECYCLE_TYPES = Object.values(LIFECYCLES).map(({ workflowType }) => workflowType);
const SCHEDULE_TYPES = ['audit', 'cryptoSettlements', 'ledgerCheck', 'retention'];

const TYPES = {
  lifecycle: [...LIFECYCLE_TYPES, 'accountClock', ...SCHEDULE_TYPES],
  webhooks: ['webhookDelivery'],
} as const satisfies Partial<Record<keyof WorkflowBundles, readonly string[]>>;

export interface RehearsalOptions {
  client: Client;
  bundles: Pick<WorkflowBundles, keyof typeof TYPES>;
  /** Base names: an installation may have a prefix. */
  queues: TaskQueues;
  /** Limit per type, of running and of closed runs. */
  most: number;
  onProgress?: (type: string, histories: number) => void;
}

export interface Rehearsal {
  types: { type: string; histories: number }[];
  divergence: { type: string; workflow_id: string; run_id: string; message: string } | null;
}

/**
 * Reads only, and ends at the first run that diverges.
 * @throws errors of Temporal
 * @see docs/operations.md#upgrading
 */
export async function rehearse({
  client,
  bundles,
  queues,
  most,
  onProgress,
}: RehearsalOptions): Promise<Rehearsal> {
  const types: Rehearsal['types'] = [];
  for (const [workflowBundle, names, queue] of [
    [bundles.lifecycle, TYPES.lifecycle, queues.lifecycleQueue],
    [bundles.webhooks, TYPES.webhooks, queues.webhookQueue],
  ] as const) {
    const own = [false, true].map((livemode) => `'${environmentQueue(queue, livemode)}'`);
    for (const type of names) {
      const query = `WorkflowType = '${type}' AND TaskQueue IN (${own.join(', ')})`;
      const rehearsed = { type, histories: 0 };
      const histories = readHistories(client, query, most);
      for await (const run of Worker.runReplayHistories({ workflowBundle }, histories)) {
        if (rehearsed.histories === 0) types.push(rehearsed);
        rehearsed.histories += 1;
        onProgress?.(type, rehearsed.histories);
        if (run.error === undefined) continue;
        const { workflowId: workflow_id, runId: run_id, error } = run;
        return { types, divergence: { type, workflow_id, run_id, message: error.message } };
      }
    }
  }
  return { types, divergence: null };
}

async function* readHistories(client: Client, query: string, most: number) {
  for (const status of ["= 'Running'", "!= 'Running'"]) {
    const runs = client.workflow.list({ query: `${query} AND ExecutionStatus ${status}` });
    let left = most;
    // One at a time: others would be read ahead, all of the namespace.
    for await (const history of runs.intoHistories({ concurrency: 1 })) {
      yield history;
      left -= 1;
      if (left === 0) break;
    }
  }
}

export function formatRehearsal({ types, divergence }: Rehearsal): string {
  const lines = types.map(({ type, histories }) => type.padEnd(18) + `${histories}`.padStart(9));
  const allWell = types.length === 0 ? 'No workflow was found.' : 'All continue under this build.';
  const { workflow_id, run_id, message } = divergence ?? {};
  const end =
    divergence === null
      ? allWell
      : `${workflow_id} (run ${run_id}) would not continue under this build:\n${message}`;
  return [`${'type'.padEnd(18)}histories`, ...lines, '', end, ''].join('\n');
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options === null) {
    process.stdout.write(USAGE);
    return 0;
  }
  const { from, most, json } = options;
  quietRuntime();
  const access = temporalAccess({ ...process.env, TEMPORAL_ADDRESS: from });
  const connection = await connectNative(access);
  try {
    const result = await rehearse({
      client: new Client({ connection, namespace: access.namespace }),
      bundles: await workflowBundles(),
      queues: taskQueues(process.env['TASK_QUEUE_PREFIX'] ?? ''),
      most,
      onProgress: (type, histories) => {
        if (histories % 100 === 0) process.stderr.write(`  ${type}: ${histories} histories\n`);
      },
    });
    process.stdout.write(json ? `${JSON.stringify(result)}\n` : formatRehearsal(result));
    return result.divergence === null ? 0 : 1;
  } finally {
    await connection.close();
  }
}

if (require.main === module) {
  main(process.argv.slice(2)).then(
    (code) => {
      process.exitCode = code;
    },
    (error: unknown) => {
      process.stderr.write(`${describeError(error)}\n`);
      process.exitCode = 2;
    },
  );
}

import type { Client } from '@temporalio/client';
import { CALLBACK_RESOURCES, type CallbackResource } from '../../../domain/callback/callback';
import { buildWorkflowQuery } from '../../../domain/task-queues';
import { KINDS, LIFECYCLES } from '../../../lifecycles';

export interface PlaceDeps {
  temporal: Client;
  /** Two services may share a namespace. */
  lifecycleQueue: string;
  /** Runs of one place. */
  runsMax?: number;
}

/** Resources of a kind whose ids begin alike. */
export interface Place {
  kind: CallbackResource;
  /** Empty for all. */
  prefix: string;
}

const RUNS_MAX = 50_000;
const HEX = [...'0123456789abcdef'];

/** Places are small, so that a walk goes on where it ended. */
export async function* listPlaces(
  deps: PlaceDeps,
  since: Date,
  from: Place | undefined,
): AsyncGenerator<Place> {
  for (const kind of KINDS.slice(from === undefined ? 0 : KINDS.indexOf(from.kind))) {
    const first = from?.kind === kind ? from.prefix : '';
    for (const prefix of await listPrefixes(deps, kind, since)) {
      if (prefix >= first || first.startsWith(prefix)) yield { kind, prefix };
    }
  }
}

async function listPrefixes(deps: PlaceDeps, kind: CallbackResource, since: Date) {
  const { temporal, runsMax = RUNS_MAX } = deps;
  const counts = await Promise.all(
    buildQueries(deps, { kind, prefix: '' }, since).map((query) => temporal.workflow.count(query)),
  );
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  if (total <= runsMax) return [''];
  if (total <= runsMax * HEX.length) return HEX;
  return HEX.flatMap((first) => HEX.map((second) => `${first}${second}`));
}

export function buildQueries(
  { lifecycleQueue }: PlaceDeps,
  { kind, prefix }: Place,
  since: Date,
): string[] {
  const { workflowType, workflowId } = LIFECYCLES[kind];
  const named = prefix === '' ? '' : ` AND WorkflowId STARTS_WITH '${workflowId(prefix)}'`;
  const base = `${buildWorkflowQuery(workflowType, lifecycleQueue)}${named}`;
  // The next run of one that was continued is listed itself. SQL databases also find running ones
  // by a later CloseTime, which would be compared twice.
  const others = "ExecutionStatus != 'Running' AND ExecutionStatus != 'ContinuedAsNew'";
  const ended = `CloseTime >= '${since.toISOString()}' AND ${others}`;
  return [`${base} AND ExecutionStatus = 'Running'`, `${base} AND ${ended}`];
}

/** Value of `--from`. */
export function formatPlace({ kind, prefix }: Place): string {
  return prefix === '' ? kind : `${kind}:${prefix}`;
}

export function readPlace(text: string): Place | undefined {
  const [, name, prefix = ''] = /^([a-z_]+)(?::([0-9a-f]{1,2}))?$/.exec(text) ?? [];
  const kind = CALLBACK_RESOURCES.find((each) => each === name);
  return kind === undefined ? undefined : { kind, prefix };
}

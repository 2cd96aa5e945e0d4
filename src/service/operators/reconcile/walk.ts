import { type Client, type WorkflowExecutionInfo, WorkflowNotFoundError } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { History } from '@temporalio/common/lib/proto-utils';
import { z } from 'zod';
import { inBatches } from '../../../base/batches';
import { CALLBACK_RESOURCES, type CallbackResource } from '../../../domain/banks/callback';

import { listStateSteps } from '../../../domain/resources';
import { SEARCH_KEYS } from '../../../domain/search-attributes';
import { buildWorkflowQuery } from '../../../domain/task-queues';
import { KINDS, LIFECYCLES, type Resource, type ResourceStores } from '../../../lifecycles';

interface WalkDeps extends PlaceDeps {
  stores: ResourceStores;
}

export interface WalkOptions {
  /** Workflows that ended earlier are not compared. */
  since: Date;
  /** End of an earlier walk; absent: the beginning. */
  from?: Place | undefined;
  /** Reads each workflow, not only those that Temporal's list shows as different. */
  full?: boolean;
}

export interface Difference {
  kind: Disagreement;
  resource: CallbackResource;
  id: string;
  workflow: ResourceState | null;
  document: StateDocument | null;
  running: boolean;
  /** Newest run, ISO 8601. */
  started_at: string;
}

interface Run {
  id: string;
  runId: string;
  running: boolean;
  startedAt: Date;
  status: string | undefined;
  version: number | undefined;
}

interface Step {
  place: Place;
  checked: number;
  read: number;
  differences: Difference[];
}

/** As many as a list of Temporal returns at most: it admits few lists a second. */
const PAGE = 1_000;
const READ_AT_ONCE = 20;

/**
 * Compares status and version of workflows that run, or have ended since, with their documents:
 * those in Temporal's list, which lags by seconds, then those of the differing workflows themselves.
 */
export async function* walk(deps: WalkDeps, options: WalkOptions): AsyncGenerator<Step> {
  const { since, from, full = false } = options;
  for await (const place of listPlaces(deps, since, from)) {
    const { kind } = place;
    /** A resource may have several runs. */
    const differing = new Set<string>();
    for (const query of buildQueries(deps, place, since)) {
      for await (const page of inBatches(listRuns(deps.temporal, kind, query), PAGE)) {
        const unequal = full ? page : await findUnequal(deps, kind, page);
        const ids = [...new Set(unequal.map(({ id }) => id))].filter((id) => !differing.has(id));
        const differences = await compareWorkflows(deps, kind, ids);
        for (const { id } of differences) differing.add(id);
        yield { place, checked: page.length, read: ids.length, differences };
      }
    }
  }
}

async function* listRuns({ workflow }: Client, kind: CallbackResource, query: string) {
  for await (const info of workflow.list({ query, pageSize: PAGE })) yield readRun(kind, info);
}

type RunInfo = Pick<
  WorkflowExecutionInfo,
  'workflowId' | 'runId' | 'startTime' | 'typedSearchAttributes' | 'status'
>;

function readRun(kind: CallbackResource, info: RunInfo): Run {
  const { workflowId, runId, startTime: startedAt, typedSearchAttributes: shown } = info;
  return {
    id: workflowId.slice(LIFECYCLES[kind].workflowId('').length),
    ...{ runId, startedAt, running: info.status.name === 'RUNNING' },
    status: shown.get(SEARCH_KEYS.status),
    version: shown.get(SEARCH_KEYS.version),
  };
}

async function findUnequal(
  { stores }: WalkDeps,
  kind: CallbackResource,
  runs: readonly Run[],
): Promise<Run[]> {
  const ids = [...new Set(runs.map(({ id }) => id))];
  const states = await LIFECYCLES[kind].listStates(stores, ids);
  const byId = new Map(states.map((state) => [state._id, state]));
  return runs.filter(({ id, status, version }) => {
    const stored = byId.get(id);
    if (stored === undefined) return status !== REFUSED.status;
    return stored.status !== status || stored.version !== version;
  });
}

export async function compareWorkflows(
  deps: WalkDeps,
  kind: CallbackResource,
  ids: readonly string[],
): Promise<Difference[]> {
  const differences: Difference[] = [];
  for await (const batch of inBatches(ids, READ_AT_ONCE)) {
    const compared = await Promise.all(batch.map((id) => compareOne(deps, kind, id)));
    differences.push(...compared.filter((each) => each !== null));
  }
  return differences;
}

/**
 * Reads the document last: while the service runs, it can only have a later version.
 * @returns null when both agree
 */
async function compareOne(
  { temporal, stores }: WalkDeps,
  resource: CallbackResource,
  id: string,
): Promise<Difference | null> {
  const { get, workflowId } = LIFECYCLES[resource];
  // The run itself is never late, as the list is.
  const run = temporal.workflow.getHandle(workflowId(id)).describe();
  const newest = await run.catch((error: unknown) => {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  });
  if (newest === null) return null;
  const { status: shown, version: counted, running, startedAt } = readRun(resource, newest);
  // Before it has a state, it shows none.
  const isShown = shown !== undefined && counted !== undefined;
  const state = isShown ? { status: shown, version: counted } : null;
  const workflow = shown === REFUSED.status ? REFUSED : state;
  let document = await get(stores, id);
  if (document === null && workflow !== REFUSED) {
    // A first run has the state of an opened resource from its start.
    const histories: Promise<History>[] = [];
    const own = `WorkflowId = '${workflowId(id)}'`;
    for await (const { runId } of listRuns(temporal, resource, own)) {
      histories.push(temporal.workflow.getHandle(workflowId(id), runId).fetchHistory());
    }
    if (!hasEnded(listStateSteps(resource), await Promise.all(histories))) return null;
    document = await get(stores, id);
  }
  const kind = compare(workflow, document);
  if (kind === null) return null;
  const started_at = startedAt.toISOString();
  if (document === null) return { kind, resource, id, workflow, document, running, started_at };
  const { status, version, account_id, livemode, updated_at } = document;
  const stored = { status, version, account_id, livemode, updated_at };
  return { kind, resource, id, workflow, document: stored, running, started_at };
}

export async function getRetentionStart({ workflowService, options }: Client, now: Date) {
  const { namespace } = options;
  const { config } = await workflowService.describeNamespace({ namespace });
  const seconds = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  return new Date(now.getTime() - seconds * 1_000);
}

interface PlaceDeps {
  temporal: Client;
  /** Two services may share a namespace. */
  lifecycleQueue: string;
  /** Runs of one place. */
  runsMax?: number;
}

/** Resources of a kind whose ids begin alike. */
export interface Place {
  kind: CallbackResource;
  /** First digits of their UUIDs; empty for all. */
  prefix: string;
}

const RUNS_MAX = 50_000;
const HEX = [...'0123456789abcdef'];

/** Places are small, so that a walk goes on where it ended. */
async function* listPlaces(
  deps: PlaceDeps,
  since: Date,
  from: Place | undefined,
): AsyncGenerator<Place> {
  const { temporal, runsMax = RUNS_MAX } = deps;
  for (const kind of KINDS.slice(from === undefined ? 0 : KINDS.indexOf(from.kind))) {
    const first = from?.kind === kind ? from.prefix : '';
    const queries = buildQueries(deps, { kind, prefix: '' }, since);
    const counts = await Promise.all(queries.map((query) => temporal.workflow.count(query)));
    const total = counts.reduce((sum, { count }) => sum + count, 0);
    let prefixes = [''];
    if (total > runsMax) prefixes = HEX;
    if (total > runsMax * HEX.length) prefixes = HEX.flatMap((one) => HEX.map((two) => one + two));
    for (const prefix of prefixes) {
      if (prefix >= first || first.startsWith(prefix)) yield { kind, prefix };
    }
  }
}

function buildQueries(
  { lifecycleQueue }: PlaceDeps,
  { kind, prefix }: Place,
  since: Date,
): string[] {
  const { workflowType, workflowId, idStart = '' } = LIFECYCLES[kind];
  const start = workflowId(`${idStart}${prefix}`);
  const named = prefix === '' ? '' : ` AND WorkflowId STARTS_WITH '${start}'`;
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

export interface ResourceState {
  status: string;
  /** Number of the workflow's writes. */
  version: number;
}

type StateDocument = ResourceState & Pick<Resource, 'account_id' | 'livemode' | 'updated_at'>;

/** The workflow refused the resource. */
export const REFUSED: ResourceState = { status: 'refused', version: 0 };

/**
 * - `missing`: the workflow has opened it, but it is not in MongoDB
 * - `behind`: MongoDB has an earlier version
 * - `ahead`: MongoDB has a later version; the workflow syncs from it on its next write
 * - `contradicts`: the same version with another status, or the workflow has refused the resource
 */
type Disagreement = 'missing' | 'behind' | 'ahead' | 'contradicts';

/** @returns null when both agree, or the resource is not opened yet */
export function compare(
  workflow: ResourceState | null,
  document: ResourceState | null,
): Disagreement | null {
  if (workflow === null) return null;
  if (workflow === REFUSED) return document === null ? null : 'contradicts';
  if (document === null) return 'missing';
  if (document.version < workflow.version) return 'behind';
  if (document.version > workflow.version) return 'ahead';
  return document.status === workflow.status ? null : 'contradicts';
}

const LocalStep = z.looseObject({ activity_type: z.string() });

/** Whether one of some activities has ended, also as a local one. @param histories of all runs */
export function hasEnded(
  steps: readonly string[],
  histories: readonly Pick<History, 'events'>[],
): boolean {
  return histories.some(({ events }) => {
    const scheduled = new Map<string, string>();
    return (events ?? []).some((event) => {
      const { activityTaskScheduledEventAttributes: start } = event;
      if (start) scheduled.set(String(event.eventId), start.activityType?.name ?? '');
      const ended = event.activityTaskCompletedEventAttributes?.scheduledEventId;
      if (ended != null) return steps.includes(scheduled.get(String(ended)) ?? '');
      const marker = event.markerRecordedEventAttributes?.details?.['data']?.payloads?.[0];
      if (marker == null) return false;
      const local = LocalStep.safeParse(defaultPayloadConverter.fromPayload(marker));
      return local.success && steps.includes(local.data.activity_type);
    });
  });
}

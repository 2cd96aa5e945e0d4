import type { Client } from '@temporalio/client';
import type { CallbackResource } from '../../domain/callback/callback';
import { CONTRACT_VERSION, type ConnectorStop, isSilent } from '../../domain/capabilities';
import { buildWorkflowQuery, connectorQueue } from '../../domain/task-queues';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import type { Routes } from '../../routing';
import type { Stores } from '../../store';
import { getPauseId } from '../../store/connector-pauses';
import { readTaskQueue, type TaskQueueState } from '../../temporal/status';
import { findPauseEnvironment, presentPause, type ShownPause } from './connectors';

/** A bank that answers takes an instruction within seconds. */
const WAIT_SECONDS_MAX = 60;
/** Counts of a busy Temporal take seconds. */
const TEMPORAL_MS_MAX = 30_000;

interface ConnectorHealth {
  connector: string;
  livemode: boolean;
  /** Null unless an operator has paused it. */
  pause: ShownPause | null;
  instructions: TaskQueueState;
  /** Last report of its processes; null without one. */
  report: { serves: readonly string[]; contract: number; seen_at: string } | null;
  /** Workflows that run, and those of them that need an operator. */
  resources: Record<CallbackResource, { running: number; attention: number }>;
  /** Callbacks that no workflow has received. */
  callbacks_waiting: number;
  /** Files of its bank that were refused, and neither taken nor dismissed since. */
  files_refused: number;
  /** Reports of its bank that it has set aside, since they were refused or malformed. */
  reports_set_aside: number;
  /** Why it sends nothing after a restore; null: it sends. */
  stopped: ConnectorStop | null;
  /** Keys that its callbacks may be signed with. */
  keys: number;
  /** Sentences for an operator. */
  faults: string[];
}

interface HealthDeps extends Routes {
  stores: Pick<
    Stores,
    'callbacks' | 'capabilities' | 'connectorKeys' | 'connectorPauses' | 'statements'
  >;
  temporal: Client;
  namespace: string;
  taskQueuePrefix: string;
  lifecycleQueue: string;
  now: () => Date;
}

/**
 * Reads whether a connector takes instructions, and what waits. Whether its bank answers shows only
 * once something needs an operator. Counts of Temporal lag by seconds.
 * @throws ServiceError `connector_name_invalid`, `connector_unknown`, `setting_invalid`
 */
export async function readConnectorHealth(
  deps: HealthDeps,
  connector: string,
): Promise<ConnectorHealth> {
  const { stores, temporal, namespace, taskQueuePrefix } = deps;
  const { livemode } = await findPauseEnvironment(deps, connector);
  const name = connectorQueue(connector, taskQueuePrefix);
  const deadline = Date.now() + TEMPORAL_MS_MAX;
  const [pause, instructions, report, running, callbacks_waiting, keys] = await Promise.all([
    stores.connectorPauses.get(getPauseId({ connector, livemode })),
    temporal.withDeadline(deadline, () =>
      readTaskQueue(temporal, { namespace, name, type: 'activity' }),
    ),
    stores.capabilities.get(connector),
    temporal.withDeadline(deadline, () =>
      Promise.all(
        KINDS.map(async (kind) => {
          const own = buildWorkflowQuery(LIFECYCLES[kind].workflowType, deps.lifecycleQueue);
          const query = `${own} AND ServiceConnector = '${connector}' AND ExecutionStatus = 'Running'`;
          const [{ count }, attention] = await Promise.all([
            temporal.workflow.count(query),
            temporal.workflow.count(`${query} AND ServiceAttention IS NOT NULL`),
          ]);
          return [kind, { running: count, attention: attention.count }] as const;
        }),
      ),
    ),
    stores.callbacks.countWaiting({ waits: 'any', connector }),
    stores.connectorKeys.current(connector),
  ]);
  const health = {
    ...{ connector, livemode, instructions, callbacks_waiting, keys: keys.length },
    files_refused: await stores.statements.countFiles(connector),
    reports_set_aside: report?.set_aside ?? 0,
    pause: pause && presentPause(pause),
    stopped: report?.stopped ?? null,
    report: report && {
      ...{ serves: report.serves, contract: report.contract },
      seen_at: report.seen_at.toISOString(),
    },
    resources: Object.fromEntries(running) as ConnectorHealth['resources'],
  };
  return { ...health, faults: listFaults(health, deps.now()) };
}

function listFaults(health: Omit<ConnectorHealth, 'faults'>, now: Date): string[] {
  const { livemode, stopped, report, callbacks_waiting, keys, resources } = health;
  const { files_refused, reports_set_aside } = health;
  const { pollers, waiting, oldest_seconds } = health.instructions;
  const attention = KINDS.reduce((sum, kind) => sum + resources[kind].attention, 0);
  const contract = report?.contract ?? CONTRACT_VERSION;
  const isLate = waiting > 0 && oldest_seconds > WAIT_SECONDS_MAX;
  const checks: [isFault: boolean, fault: string][] = [
    [pollers === 0, 'No process of it takes instructions: start it.'],
    [stopped !== null, `${stopped?.reason}: it sends nothing until \`connector release\`.`],
    [isLate, `Instructions wait, the oldest one for ${oldest_seconds} s: its bank may be slow.`],
    [
      report !== null && isSilent(new Date(report.seen_at), now),
      `Its processes have reported nothing since ${report?.seen_at}.`,
    ],
    [contract !== CONTRACT_VERSION, `It has version ${contract} of the contract, unknown here.`],
    [livemode && keys === 0, 'It has no key, so that its callbacks change nothing on live.'],
    [callbacks_waiting > 0, `${callbacks_waiting} callbacks wait: \`callback list\` shows them.`],
    [
      files_refused > 0,
      `${files_refused} files of its bank are refused: see \`sepa inbound list\`.`,
    ],
    [
      reports_set_aside > 0,
      `${reports_set_aside} reports of its bank are set aside: see its collection \`reports_set_aside\`.`,
    ],
    [attention > 0, `${attention} resources need an operator: \`attention list\` shows them.`],
  ];
  return checks.flatMap(([isFault, fault]) => (isFault ? [fault] : []));
}

import type { Client } from '@temporalio/client';
import { describeError } from '../../base/errors';
import { inTransaction } from '../../base/mongo';
import type { CallbackResource } from '../../domain/banks/callback';
import { CONTRACT_VERSION, type ConnectorStop, isSilent } from '../../domain/banks/capabilities';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { isBalanceAccountName } from '../../domain/money/money';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { RAIL_IDS } from '../../domain/payout/rails';
import { buildWorkflowQuery, connectorQueue } from '../../domain/task-queues';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import { type Connectors, createConnectors, type Routes, SANDBOX_CONNECTOR } from '../../routing';
import type { Stores } from '../../store';
import { type ConnectorPauseDocument, getPauseId } from '../../store/connectors';
import { readTaskQueue, type TaskQueueState } from '../../temporal/status';
import type { WriteDeps } from '../access';

/** @throws ServiceError `connector_name_invalid` */
export function assertConnectorName(name: string): void {
  if (isBalanceAccountName(name)) return;
  throw new ServiceError(
    'connector_name_invalid',
    `"${name}" cannot be the name of a connector: 1 to 64 letters, digits, hyphens and underscores.`,
  );
}

/** @throws ServiceError `setting_invalid` */
export function isRouted(routes: Routes, name: string): boolean {
  return parseConnectors(routes).names.includes(name);
}

type LiveDeps = { stores: Pick<Stores, 'approvals'> } & Routes;

/** Whether a connector serves the sandbox alone, as the variables and the worker say. */
export async function isOfSandboxOnly(deps: LiveDeps, name: string): Promise<boolean> {
  return isRouted(deps, name) && !(await hasServedLive(deps, name));
}

/** Whether the variables say so, or a worker ever did: those of a command may be anything. */
export async function hasServedLive(
  { stores, ...routes }: LiveDeps,
  name: string,
): Promise<boolean> {
  const isHere = isLiveConnector(routes, name);
  return isHere || (await stores.approvals.readLiveConnectors()).includes(name);
}

/** @throws ServiceError `setting_invalid` */
export function isLiveConnector(routes: Routes, name: string): boolean {
  return parseConnectors(routes).liveNames.includes(name);
}

/** @throws ServiceError `connector_name_invalid`, `connector_unknown`, `setting_invalid` */
export function assertServes(
  routes: Routes,
  { connector, livemode }: { connector: string; livemode: boolean },
): void {
  assertConnectorName(connector);
  const { names, liveNames, sandbox } = parseConnectors(routes);
  const isNamed = names.includes(connector);
  if (isNamed && !(livemode && !liveNames.includes(connector))) return;
  const unknown = isNamed
    ? `${connector} is a test system, which holds nothing on live.`
    : `There is no connector ${connector}: neither LIVE_CONNECTORS nor SANDBOX_CONNECTORS names it.`;
  const message = connector === sandbox ? 'The sandbox bank holds nothing on live.' : unknown;
  throw new ServiceError('connector_unknown', message);
}

/** @throws ServiceError `connector_name_invalid`, `connector_unknown`, `setting_invalid` */
export function listRoutedInSandbox(routes: Routes, connector: string) {
  assertConnectorName(connector);
  const { listConnectors, liveNames } = parseConnectors(routes);
  const isRoutedHere = (id: string) => listConnectors(id, false).includes(connector);
  const methods = PAYMENT_METHOD_IDS.filter(isRoutedHere);
  const rails = RAIL_IDS.filter(isRoutedHere);
  if (methods.length + rails.length > 0) return { methods, rails };
  const message = liveNames.includes(connector)
    ? `${connector} is a live connector: check it under another name, named in SANDBOX_CONNECTORS.`
    : `No method or rail of the sandbox is routed to ${connector}: SANDBOX_CONNECTORS does not name it.`;
  throw new ServiceError('connector_unknown', message);
}

/** @throws ServiceError `setting_invalid` */
export function parseConnectors({ liveConnectors, sandboxConnectors }: Routes): Connectors {
  try {
    return createConnectors(SANDBOX_CONNECTOR, liveConnectors, sandboxConnectors);
  } catch (error) {
    throw new ServiceError('setting_invalid', describeError(error));
  }
}

type ShownPause = Pick<ConnectorPauseDocument, 'paused_at' | 'operator' | 'reason'>;

export interface PauseChange {
  connector: string;
  livemode: boolean;
  /** Null where it is not paused. */
  pause: ShownPause | null;
  /** False where it was so already. */
  changed: boolean;
}

/**
 * Finds the environment that a connector serves, as the variables say. One that they name no longer
 * has that of its pause.
 * @throws ServiceError `connector_name_invalid`, `connector_unknown`, `setting_invalid`
 */
export async function findPauseEnvironment(
  { stores, ...routes }: { stores: Pick<Stores, 'connectorPauses'> } & Routes,
  connector: string,
): Promise<{ livemode: boolean }> {
  assertConnectorName(connector);
  if (isRouted(routes, connector)) return { livemode: isLiveConnector(routes, connector) };
  for (const livemode of [true, false]) {
    const pause = await stores.connectorPauses.get(getPauseId({ connector, livemode }));
    if (pause !== null) return { livemode };
  }
  const message = `There is no connector ${connector}: neither LIVE_CONNECTORS nor SANDBOX_CONNECTORS names it.`;
  throw new ServiceError('connector_unknown', message);
}

/**
 * Refuses payments, payouts and settlements that would be created with a connector. What exists
 * goes on, refunds of its payments too: their money is at the bank. A repeat changes nothing.
 * @throws ServiceError `operator_required`, and those of `findPauseEnvironment`
 * @see docs/connectors.md#pause-a-connector
 */
export async function pauseConnector(
  deps: WriteDeps & Routes,
  connector: string,
  note: RuleNote,
): Promise<PauseChange> {
  const scope = await findNotedScope(deps, connector, note);
  const _id = getPauseId(scope);
  const { operator = null, reason = null } = note;
  const pause = { paused_at: deps.now().toISOString(), operator, reason };
  return await inTransaction(deps.mongo, async (session) => {
    const existing = await deps.stores.connectorPauses.get(_id, session);
    if (existing !== null) return { ...scope, pause: presentPause(existing), changed: false };
    await deps.stores.connectorPauses.insert({ _id, ...scope, ...pause }, session);
    const change = { act: 'connector.paused', ...describeTarget(scope) } as const;
    await deps.audit({ ...change, before: {}, after: { connector, ...note } }, session);
    return { ...scope, pause, changed: true };
  });
}

/**
 * Lets new payments, payouts and settlements go to a connector again. A repeat changes nothing.
 * @throws ServiceError `operator_required`, and those of `findPauseEnvironment`
 */
export async function resumeConnector(
  deps: WriteDeps & Routes,
  connector: string,
  note: RuleNote,
): Promise<PauseChange> {
  const scope = await findNotedScope(deps, connector, note);
  return await inTransaction(deps.mongo, async (session) => {
    const removed = await deps.stores.connectorPauses.remove(getPauseId(scope), session);
    if (removed === null) return { ...scope, pause: null, changed: false };
    const change = { act: 'connector.resumed', ...describeTarget(scope) } as const;
    const before = { connector, paused_at: removed.paused_at };
    await deps.audit({ ...change, before, after: { ...note } }, session);
    return { ...scope, pause: null, changed: true };
  });
}

/** @throws ServiceError `operator_required`, and those of `findPauseEnvironment` */
async function findNotedScope(deps: WriteDeps & Routes, connector: string, note: RuleNote) {
  const scope = { connector, ...(await findPauseEnvironment(deps, connector)) };
  assertNoted(scope, note, 'changes the routing');
  return scope;
}

function presentPause({ paused_at, operator, reason }: ConnectorPauseDocument): ShownPause {
  return { paused_at, operator, reason };
}

function describeTarget(scope: Pick<ConnectorPauseDocument, 'connector' | 'livemode'>) {
  return { account_id: null, livemode: scope.livemode, target: getPauseId(scope) };
}

interface ConnectorRelease {
  connector: string;
  livemode: boolean;
  /** Why it was stopped, as part of a sentence. */
  stopped_for: string;
  /** ISO 8601, ms. */
  stopped_at: string;
  /** False where it was released before, and its process has not read that yet. */
  changed: boolean;
}

interface ReleaseNote {
  operator: string | undefined;
  reason: string;
}

/**
 * Finds why a connector has stopped, in which environment, and whether it was released since.
 * @param livemode absent: the environment that it serves
 * @throws ServiceError `connector_not_stopped`, `connector_environment`, and those of
 *   `findPauseEnvironment`
 */
export async function findStop(
  deps: Pick<WriteDeps, 'stores'> & Routes,
  { connector, livemode: named }: { connector: string; livemode?: boolean | undefined },
) {
  const { stores } = deps;
  const served = await findPauseEnvironment(deps, connector);
  const livemode = served.livemode || (await hasServedLive(deps, connector));
  if (named !== undefined && named !== livemode) {
    const message = `${connector} serves ${toEnv(livemode)}, not ${toEnv(named)}.`;
    throw new ServiceError('connector_environment', message);
  }
  const { stopped } = (await stores.capabilities.get(connector)) ?? {};
  if (!stopped) {
    const message = `${connector} reports no stop: \`connector health ${connector}\` shows its state.`;
    throw new ServiceError('connector_not_stopped', message);
  }
  const isReleased = (await stores.connectorReleases.get(stopped.id)) !== null;
  return { ...stopped, livemode, isReleased };
}

/**
 * Lets a connector that a restore has stopped send again, from its book as it is by then. Its
 * process reads the release within seconds. A repeat changes nothing.
 * @param stop id of the stop that was approved, and no later one
 * @throws ServiceError `approval_differs`, and those of `findStop`
 * @see docs/operators.md#release-a-connector
 */
export async function releaseConnector(
  deps: WriteDeps & Routes,
  { connector, livemode, stop }: { connector: string; livemode: boolean; stop?: string },
  { operator, reason }: ReleaseNote,
): Promise<ConnectorRelease> {
  const { stores } = deps;
  const {
    id: _id,
    reason: stopped_for,
    at: stopped_at,
  } = await findStop(deps, { connector, livemode });
  if (stop !== undefined && stop !== _id) {
    const message = `${connector} has stopped again, at ${stopped_at}: ask again.`;
    throw new ServiceError('approval_differs', message);
  }
  const release = { connector, livemode, stopped_for, stopped_at };
  return await inTransaction(deps.mongo, async (session) => {
    const existing = await stores.connectorReleases.get(_id, session);
    if (existing !== null) return { ...release, changed: false };
    const scope = { connector, livemode };
    const by = { operator: operator ?? null, reason };
    const released_at = deps.now().toISOString();
    await stores.connectorReleases.insert({ _id, ...scope, released_at, ...by }, session);
    const change = { act: 'connector.released', account_id: null, livemode, target: _id } as const;
    const after = { connector, operator, reason, stopped_for };
    await deps.audit({ ...change, before: { stopped_at }, after }, session);
    return { ...release, changed: true };
  });
}

/** Required on live. */
export interface RuleNote {
  operator?: string | undefined;
  reason?: string | undefined;
}

/** @param does what is done, as part of a sentence @throws ServiceError `operator_required` */
export function assertNoted(
  { livemode }: { livemode: boolean },
  { operator, reason }: RuleNote,
  does: string,
): void {
  if (!livemode || (operator !== undefined && reason !== undefined)) return;
  const message = `On live, OPERATOR_KEY and --reason say who ${does} and why.`;
  throw new ServiceError('operator_required', message);
}

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
  stores: Stores;
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

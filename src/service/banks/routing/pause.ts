import { inTransaction } from '../../../base/mongo';
import { ServiceError } from '../../../domain/errors';
import type { Routes } from '../../../routing';
import type { Stores } from '../../../store';
import { type ConnectorPauseDocument, getPauseId } from '../../../store/connector-pauses';
import type { WriteDeps } from '../../deps';
import { assertConnectorName, isLiveConnector, isRouted } from '../connectors';
import { assertNoted, type RuleNote } from './change';

export type ShownPause = Pick<ConnectorPauseDocument, 'paused_at' | 'operator' | 'reason'>;

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
  assertNoted(scope, note);
  return scope;
}

export function presentPause({ paused_at, operator, reason }: ConnectorPauseDocument): ShownPause {
  return { paused_at, operator, reason };
}

function describeTarget(scope: Pick<ConnectorPauseDocument, 'connector' | 'livemode'>) {
  return { account_id: null, livemode: scope.livemode, target: getPauseId(scope) };
}

import { inTransaction } from '../../base/mongo';
import { ServiceError } from '../../domain/errors';
import type { Routes } from '../../routing';
import type { Stores } from '../../store';
import type { ConnectorPauseDocument } from '../../store/connector-pauses';
import { assertConnectorName, isLiveConnector, isRouted } from '../connectors';
import type { WriteDeps } from '../deps';
import { assertNoted, type RuleNote } from './change';

export interface PauseChange {
  connector: string;
  livemode: boolean;
  /** Null where it is not paused. */
  pause: Omit<ConnectorPauseDocument, '_id' | 'livemode'> | null;
  /** False where it was so already. */
  changed: boolean;
}

/**
 * Whether a change of the pause needs the key of an operator.
 * @throws ServiceError `connector_name_invalid`, `connector_unknown`, `setting_invalid`
 */
export async function findPauseEnvironment(
  { stores, ...routes }: { stores: Pick<Stores, 'connectorPauses'> } & Routes,
  connector: string,
): Promise<{ livemode: boolean }> {
  assertConnectorName(connector);
  // One that the variables name no longer can still be resumed.
  const pause = await stores.connectorPauses.get(connector);
  if (pause !== null) return { livemode: pause.livemode };
  if (isRouted(routes, connector)) return { livemode: isLiveConnector(routes, connector) };
  const message = `There is no connector ${connector}: neither LIVE_CONNECTORS nor SANDBOX_CONNECTORS names it.`;
  throw new ServiceError('connector_unknown', message);
}

/**
 * Refuses new payments and payouts that would go to a connector. What exists goes on: its money is
 * at the bank. A repeat changes nothing.
 * @throws ServiceError `operator_required`, and those of `findPauseEnvironment`
 * @see docs/connectors.md#pause-a-connector
 */
export async function pauseConnector(
  deps: WriteDeps & Routes,
  connector: string,
  note: RuleNote,
): Promise<PauseChange> {
  const { livemode } = await findPauseEnvironment(deps, connector);
  assertNoted({ livemode }, note);
  const { operator = null, reason = null } = note;
  const pause = { paused_at: deps.now().toISOString(), operator, reason };
  return await inTransaction(deps.mongo, async (session) => {
    const existing = await deps.stores.connectorPauses.get(connector, session);
    if (existing !== null) return present(existing, false);
    const document = { _id: connector, livemode, ...pause };
    await deps.stores.connectorPauses.insert(document, session);
    const change = { act: 'connector.paused', account_id: null, livemode } as const;
    await deps.audit({ ...change, target: connector, before: {}, after: { ...note } }, session);
    return present(document, true);
  });
}

/**
 * Lets new payments and payouts go to a connector again. A repeat changes nothing.
 * @throws ServiceError `operator_required`, and those of `findPauseEnvironment`
 */
export async function resumeConnector(
  deps: WriteDeps & Routes,
  connector: string,
  note: RuleNote,
): Promise<PauseChange> {
  const { livemode } = await findPauseEnvironment(deps, connector);
  assertNoted({ livemode }, note);
  return await inTransaction(deps.mongo, async (session) => {
    const removed = await deps.stores.connectorPauses.remove(connector, session);
    const resumed = { connector, livemode, pause: null };
    if (removed === null) return { ...resumed, changed: false };
    const { paused_at } = removed;
    const change = { act: 'connector.resumed', account_id: null, livemode } as const;
    const facts = { before: { paused_at }, after: { ...note } };
    await deps.audit({ ...change, target: connector, ...facts }, session);
    return { ...resumed, changed: true };
  });
}

function present(
  { _id: connector, livemode, ...pause }: ConnectorPauseDocument,
  changed: boolean,
): PauseChange {
  return { connector, livemode, pause, changed };
}

import { inTransaction } from '../../base/mongo';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import type { Routes } from '../../routing';
import type { WriteDeps } from '../deps';
import { findPauseEnvironment } from './routing/pause';

export interface ConnectorRelease {
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
 * Lets a connector that a restore has stopped send again, from its book as it is by then. Its
 * process reads the release within seconds. A repeat changes nothing.
 * @throws ServiceError `operator_required`, `connector_not_stopped`, `connector_environment`, and
 *   those of `findPauseEnvironment`
 * @see docs/operators.md#release-a-connector
 */
export async function releaseConnector(
  deps: WriteDeps & Routes,
  { connector, livemode }: { connector: string; livemode: boolean },
  { operator, reason }: ReleaseNote,
): Promise<ConnectorRelease> {
  const { stores } = deps;
  const served = await findPauseEnvironment(deps, connector);
  if (served.livemode !== livemode) {
    const message = `${connector} serves ${toEnv(served.livemode)}, not ${toEnv(livemode)}.`;
    throw new ServiceError('connector_environment', message);
  }
  if (livemode && operator === undefined) {
    const message = 'On live, OPERATOR_KEY says who releases a connector.';
    throw new ServiceError('operator_required', message);
  }
  const { stopped } = (await stores.capabilities.get(connector)) ?? {};
  if (!stopped) {
    const message = `${connector} reports no stop: \`connector health ${connector}\` shows its state.`;
    throw new ServiceError('connector_not_stopped', message);
  }
  const { id: _id, reason: stopped_for, at: stopped_at } = stopped;
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

import type { Client } from '@temporalio/client';
import type { Db, MongoClient } from 'mongodb';
import { Gauge, type Registry } from 'prom-client';
import { describeMetric } from '../../base/metrics';
import { ENVIRONMENTS, type Env } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import type { Audit } from '../../store/audit';
import { createEpochStore, type EpochStore } from '../../store/epoch';
import type { HeartbeatStore } from '../../store/heartbeats';
import type { TemporalClient } from '../../temporal/client';
import { isDenied } from '../../temporal/deadline';
import { createTemporalEpoch } from '../../temporal/epoch';

/** A restore over less time is not noticed. */
const ADVANCE_MS = 60_000;
const CHECK_MS = 15_000;
/** Pause before the first result, for which all writes wait. */
export const FIRST_CHECK_MS = 1_000;
const WARN_MS = 60_000;
const NOT_COMPARED =
  'MongoDB and Temporal are not compared yet, so that one may have been restored.';

export interface EpochDeps {
  epoch: EpochStore;
  temporal: Client;
  lifecycleQueue: string;
  now: () => Date;
}

/** @throws ServiceError `other_format` */
export function checkDatabaseFormat(db: Db): Promise<void> {
  return createEpochStore(db).checkFormat();
}

/** Call it before anything is read or written. @throws ServiceError `other_format` */
export async function checkFormats({
  epoch,
  temporal,
  lifecycleQueue,
}: Omit<EpochDeps, 'now'>): Promise<void> {
  await epoch.checkFormat();
  await createTemporalEpoch(temporal, lifecycleQueue).checkFormat();
}

/** ISO 8601; undefined: none. */
export interface Epochs {
  mongodb: string | undefined;
  temporal: string | undefined;
}

export async function readEpochs({ epoch, temporal, lifecycleQueue }: EpochDeps): Promise<Epochs> {
  const stored = await epoch.read();
  if (stored === null) return { mongodb: undefined, temporal: undefined };
  const { installation, at } = stored;
  const copy = await createTemporalEpoch(temporal, lifecycleQueue).read(installation);
  if (copy === undefined || copy <= at) return { mongodb: at, temporal: copy };
  // Another process may have raised both between the two reads.
  return { mongodb: (await epoch.read({ isSure: true }))?.at ?? at, temporal: copy };
}

/** MongoDB is older than Temporal, as after a restore: each epoch is written to MongoDB first. */
export function isBehind({ mongodb, temporal }: Epochs): boolean {
  return mongodb !== undefined && temporal !== undefined && temporal > mongodb;
}

function describeBehind({ mongodb, temporal }: Epochs): string {
  return (
    `MongoDB has the state of ${mongodb}, and Temporal that of ${temporal}, as after a restore: ` +
    'run `reconcile --apply`, then `reconcile --done` if anything is left.'
  );
}

/** Raises both epochs when due, unless MongoDB is older. @param epochs what they are */
export async function advanceEpoch(deps: EpochDeps, epochs: Epochs): Promise<void> {
  const { mongodb = '', temporal } = epochs;
  const now = deps.now();
  // One of all workers is enough.
  const isDue = !(now.getTime() - Date.parse(mongodb) < ADVANCE_MS) || temporal === undefined;
  if (isDue && !isBehind(epochs)) await raise(deps);
}

async function raise({ epoch, temporal, lifecycleQueue }: EpochDeps, to?: string): Promise<void> {
  // MongoDB first, so that Temporal is never later while neither was restored.
  const { installation, at } = await epoch.raise(to);
  await createTemporalEpoch(temporal, lifecycleQueue).write(installation, at);
}

/** Lets processes write again after a restore. @throws ServiceError `not_behind` */
export async function endRestore(
  deps: EpochDeps & { audit: Audit },
  { reason }: { reason: string },
): Promise<Epochs> {
  const epochs = await readEpochs(deps);
  if (!isBehind(epochs)) throw new ServiceError('not_behind', 'MongoDB is not behind Temporal.');
  await deps.audit({
    act: 'stores.reconciled',
    ...{ account_id: null, livemode: null, target: null },
    after: { ...epochs, reason },
  });
  await deps.epoch.noteLostKeys(false);
  const at = [epochs.temporal ?? '', deps.now().toISOString()].sort().at(-1) ?? '';
  await raise(deps, at);
  return epochs;
}

export interface EpochGuard {
  /** Why nothing may be written; undefined when both stores agree, or Temporal denies the look. */
  fault: () => string | undefined;
  close: () => void;
}

interface GuardOptions {
  registry: Registry;
  log: Record<'warn' | 'error', (fields: object, line: string) => void>;
  advances: boolean;
  onBehind?: () => void;
}

/**
 * Compares at the start and from then on. While a store is unavailable, the last result counts; until
 * the first result nothing may be written.
 * @throws ServiceError `other_format` of Temporal
 */
export async function watchEpochs(deps: EpochDeps, options: GuardOptions): Promise<EpochGuard> {
  const { log, advances, onBehind } = options;
  let epochs: Epochs | undefined;
  let isFormatKnown = false;
  let otherFormat: ServiceError | undefined;
  let warnedAt = Number.NEGATIVE_INFINITY;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const readBehind = () => epochs !== undefined && isBehind(epochs);
  const checkFormat = async (): Promise<void> => {
    const temporalEpoch = createTemporalEpoch(deps.temporal, deps.lifecycleQueue);
    await temporalEpoch.checkFormat({ isWriter: advances });
    isFormatKnown = true;
  };
  const compare = async (): Promise<void> => {
    if (!isFormatKnown) await checkFormat();
    const wasBehind = readBehind();
    epochs = await readEpochs(deps);
    const behind = isBehind(epochs);
    if (behind) log.error({ code: 'mongodb_behind' }, describeBehind(epochs));
    if (behind && !wasBehind) onBehind?.();
    const { mongodb = '', temporal = '' } = epochs;
    // Temporal is older, so it may have lost signals.
    if (Date.parse(mongodb) - Date.parse(temporal) > 3 * ADVANCE_MS) {
      const line =
        `Temporal has the state of ${temporal}, and MongoDB that of ${mongodb}: if Temporal was ` +
        `restored, run \`callback deliver --again --since ${temporal}\`.`;
      log.warn({ code: 'temporal_behind' }, line);
    }
    if (advances) await advanceEpoch(deps, epochs);
  };
  const check = async (): Promise<void> => {
    try {
      await compare();
      warnedAt = Number.NEGATIVE_INFINITY;
    } catch (err) {
      if (err instanceof ServiceError) {
        otherFormat = err;
        log.error({ code: err.code }, err.message);
        return;
      }
      // Such a Temporal is never compared: operators know that nothing guards it.
      if (isDenied(err)) epochs ??= { mongodb: undefined, temporal: undefined };
      if (performance.now() - warnedAt < WARN_MS) return;
      log.warn({ err }, 'MongoDB and Temporal are not compared');
      warnedAt = performance.now();
    }
  };
  const checkAgain = async (): Promise<void> => {
    await check();
    // Each waits for the one before: a slow one must not replace a later result.
    const pause = epochs === undefined ? FIRST_CHECK_MS : CHECK_MS;
    if (!isClosed && otherFormat === undefined)
      timer = setTimeout(() => void checkAgain(), pause).unref();
  };
  const gauge: Gauge = new Gauge({
    ...describeMetric('payments_mongodb_behind_seconds'),
    registers: [options.registry],
    collect: () => {
      const { mongodb = '', temporal = '' } = epochs ?? {};
      gauge.set(readBehind() ? (Date.parse(temporal) - Date.parse(mongodb)) / 1_000 : 0);
    },
  });
  await checkAgain();
  if (otherFormat !== undefined) throw otherFormat;
  return {
    fault: () => {
      if (otherFormat !== undefined) return otherFormat.message;
      if (epochs === undefined) return NOT_COMPARED;
      return isBehind(epochs) ? describeBehind(epochs) : undefined;
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

export interface HealthDeps {
  mongo: MongoClient;
  temporal: Pick<TemporalClient, 'answers'>;
  heartbeats: Pick<HeartbeatStore, 'alive'>;
  now: () => Date;
  epochs?: Pick<EpochGuard, 'fault'> | undefined;
}

export async function checkDependencies({ temporal, mongo, heartbeats, now, epochs }: HealthDeps) {
  const isServed = (environment: Env) => isUp(heartbeats.alive(environment, now()));
  const [isTemporalUp, isMongoUp, ...served] = await Promise.all([
    temporal.answers(),
    isUp(mongo.db('admin').command({ ping: 1 }, { timeoutMS: 1_500 })),
    ...ENVIRONMENTS.map(isServed),
  ]);
  const worker = served.includes(true);
  const parts = { temporal: isTemporalUp, mongodb: isMongoUp, worker };
  // Without any worker, `worker` says enough.
  const unserved = worker ? ENVIRONMENTS.filter((_, index) => served[index] === false) : [];
  return {
    ...parts,
    ...Object.fromEntries(unserved.map((environment) => [`worker_${environment}`, false])),
    ...(epochs?.fault() === undefined ? {} : { reconciled: false }),
  };
}

async function isUp(check: Promise<unknown>): Promise<boolean> {
  try {
    return (await check) !== false;
  } catch {
    return false;
  }
}

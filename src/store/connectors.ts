import type { ClientSession, Db } from 'mongodb';
import {
  type AwaitedFile,
  type Capabilities,
  type ConnectorStop,
  getRuleId,
  type RoutingRule,
  type RuleMap,
  type RuleScope,
} from '../domain/banks/capabilities';
import { toEnv } from '../domain/environment';
import { createCachedRead } from './cache';

interface PauseScope {
  connector: string;
  livemode: boolean;
}

/** Nothing new goes to a paused connector. */
export interface ConnectorPauseDocument extends PauseScope {
  _id: string;
  /** ISO 8601, ms. */
  paused_at: string;
  operator: string | null;
  reason: string | null;
}

/** Keyed by `getPauseId`. */
type ConnectorPauses = ReadonlyMap<string, ConnectorPauseDocument>;

/** The environment is part of it: a test system's pause never concerns a live bank of its name. */
export function getPauseId({ connector, livemode }: PauseScope): string {
  return `${toEnv(livemode)}:${connector}`;
}

/** @param cacheMs age up to which they are cached; 0: never */
export function createConnectorPauseStore(db: Db, cacheMs: number) {
  const pauses = db.collection<ConnectorPauseDocument>('connector_pauses');
  const read = async (): Promise<ConnectorPauses> => {
    const all = await pauses.find().sort({ _id: 1 }).toArray();
    return new Map(all.map((pause) => [pause._id, pause]));
  };
  return {
    read,
    readCached: createCachedRead(cacheMs, read),
    get: (_id: string, session?: ClientSession) => pauses.findOne({ _id }, { session }),
    insert: (pause: ConnectorPauseDocument, session: ClientSession) =>
      pauses.insertOne(pause, { session }),
    /** @returns the removed pause; null without one */
    remove: (_id: string, session: ClientSession) => pauses.findOneAndDelete({ _id }, { session }),
  };
}

/** An operator lets a connector that a restore has stopped send again. */
interface ConnectorReleaseDocument {
  /** ID of the stop, so that no release ends a later one. */
  _id: string;
  connector: string;
  livemode: boolean;
  /** ISO 8601, ms. */
  released_at: string;
  operator: string | null;
  reason: string;
}

/** @see docs/connectors.md#after-a-restore */
export function createConnectorReleaseStore(db: Db) {
  const releases = db.collection<ConnectorReleaseDocument>('connector_releases');
  return {
    get: (_id: string, session?: ClientSession) => releases.findOne({ _id }, { session }),
    insert: (release: ConnectorReleaseDocument, session: ClientSession) =>
      releases.insertOne(release, { session }),
  };
}

/** Last report of a connector's processes; of two versions at once, the last one counts. */
interface CapabilitiesDocument extends Capabilities {
  _id: string;
  seen_at: Date;
  /** Null: it sends; undefined: it does not say. */
  stopped?: ConnectorStop | null;
  /** Files of a connector that sends files. */
  awaiting_release?: AwaitedFile[];
}

export function createCapabilitiesStore(db: Db) {
  const reports = db.collection<CapabilitiesDocument>('connector_capabilities');
  return {
    report: async (
      _id: string,
      { serves, functions, contract, ...rest }: Capabilities,
      { seen_at, stopped }: { seen_at: Date; stopped: ConnectorStop | null },
    ) => {
      const { reference_per_step = false, dispute_fee_max = null, set_aside = 0 } = rest;
      const served = { serves, functions, contract, reference_per_step, dispute_fee_max };
      const report = { ...served, set_aside, seen_at, stopped };
      await reports.updateOne({ _id }, { $set: report }, { upsert: true });
    },
    /** @returns false before the first report of the connector */
    reportAwaited: async (_id: string, awaiting_release: AwaitedFile[]): Promise<boolean> =>
      (await reports.updateOne({ _id }, { $set: { awaiting_release } })).matchedCount === 1,
    removeAwaited: (_id: string, file_id: string, session: ClientSession) =>
      reports.updateOne({ _id }, { $pull: { awaiting_release: { file_id } } }, { session }),
    /** Lists those of all connectors, the oldest first. */
    listAwaited: async (): Promise<AwaitedFile[]> =>
      (await reports.find({ 'awaiting_release.0': { $exists: true } }).toArray())
        .flatMap(({ awaiting_release = [] }) => awaiting_release)
        .toSorted((a, b) => a.since - b.since),
    get: (connector: string) => reports.findOne({ _id: connector }),
    list: () => reports.find().sort({ _id: 1 }).toArray(),
  };
}

export interface RoutingRuleDocument extends RoutingRule {
  _id: string;
  /** ISO 8601, ms. */
  set_at: string;
  operator: string | null;
  reason: string | null;
}

type RoutingRules = RuleMap<RoutingRuleDocument>;

/** @param cacheMs age up to which the rules are cached; 0: never */
export function createRoutingRuleStore(db: Db, cacheMs: number) {
  const rules = db.collection<RoutingRuleDocument>('routing_rules');
  const read = async (session?: ClientSession): Promise<RoutingRules> => {
    const all = await rules.find({}, { session }).sort({ _id: 1 }).toArray();
    return new Map(all.map((rule) => [rule._id, rule]));
  };
  return {
    read,
    readCached: createCachedRead(cacheMs, () => read()),
    set: async (rule: Omit<RoutingRuleDocument, '_id'>, session: ClientSession) => {
      const replacing = { upsert: true, session };
      await rules.replaceOne({ _id: getRuleId(rule) }, rule, replacing);
    },
    /** @returns the removed rule; null without one */
    remove: (scope: RuleScope, session: ClientSession) =>
      rules.findOneAndDelete({ _id: getRuleId(scope) }, { session }),
  };
}

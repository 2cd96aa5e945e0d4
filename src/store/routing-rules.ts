import type { ClientSession, Db } from 'mongodb';
import { getRuleId, type RoutingRule, type RuleMap, type RuleScope } from '../domain/routing-rule';
import { createCachedRead } from './cache';

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

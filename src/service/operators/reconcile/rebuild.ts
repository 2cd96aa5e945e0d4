import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import type { CallbackResource } from '../../../domain/callback/callback';
import { omitUndefined } from '../../../domain/defined';
import type { Stores } from '../../../store';
import { type Difference, REFUSED } from './walk';

export interface RebuilderDeps {
  mongo: MongoClient;
  stores: Stores;
  temporal: Client;
  /** Derives the tokens of pages. */
  payTokenKey: Buffer;
  webhookQueue: string;
}

/**
 * - `rebuilt`: the document has the state of the workflow
 * - `short`: the balance is insufficient; nothing was posted
 * - `unreadable`: the histories do not show what was written, or they contradict the document
 */
export interface RebuildResult {
  outcome: 'rebuilt' | 'short' | 'unreadable';
  reason?: string;
  /** Unknown or expired. */
  key_lost?: boolean;
}

export type Part = 'life' | 'disputes';

export interface Rebuilder {
  /**
   * Safe to repeat: existing records are not written again.
   * @param part `life`: all until the first dispute; `disputes`: all, after those of the others
   */
  rebuild(resource: CallbackResource, id: string, part: Part): Promise<RebuildResult>;
}

export type OpenRebuilder = (deps: RebuilderDeps) => Promise<Rebuilder>;

/** `none`: no act is needed; `person`: an operator must act. */
type Act = 'rebuild' | 'restart' | 'deliver' | 'none' | 'person';

export interface Finding {
  kind: Difference['kind'] | 'short' | 'orphan' | 'undelivered' | 'callback';
  resource: Difference['resource'] | 'event';
  id: string;
  account_id: string | null;
  livemode: boolean | null;
  document: string | null;
  workflow: string | null;
  /** ISO 8601; the finding's age starts here. */
  since: string;
  act: Act;
  done: boolean;
  reason?: string;
  /** Unknown or expired. */
  key_lost?: boolean;
}

const ACTS: Record<Difference['kind'], Act> = {
  missing: 'rebuild',
  behind: 'rebuild',
  // The workflow syncs from the database on its next transition.
  ahead: 'none',
  contradicts: 'person',
};

export function buildFinding({ workflow, document, ...difference }: Difference): Finding {
  const { kind, resource, id, running, started_at } = difference;
  const { account_id = null, livemode = null, updated_at = started_at } = document ?? {};
  const run = running ? 'running' : 'closed';
  return {
    ...{ kind, resource, id, account_id, livemode },
    document: document && `${document.status} v${document.version}`,
    // A refusal has no version.
    workflow:
      workflow &&
      `${workflow === REFUSED ? workflow.status : `${workflow.status} v${workflow.version}`}, ${run}`,
    since: updated_at,
    act: ACTS[kind],
    done: false,
  };
}

export function isUnresolved({ act, done }: Finding): boolean {
  return act !== 'none' && !done;
}

/**
 * Repeats as long as one more succeeds: one may need the balance that another releases or credits.
 * Disputes are booked last, since a disputed payment accepts no refunds.
 * @returns a finding for each, in the same order
 */
export async function rebuildAll(
  rebuilder: Rebuilder,
  differences: readonly Difference[],
  progress: (line: string) => void,
): Promise<Finding[]> {
  const results = new Map<Difference, RebuildResult>();
  let remaining = [...differences];
  for (let before = remaining.length + 1; remaining.length > 0 && remaining.length < before; ) {
    before = remaining.length;
    for (const difference of remaining) {
      const { resource, id } = difference;
      const result = await rebuilder.rebuild(resource, id, 'life');
      results.set(difference, result);
      progress(`${resource} ${id}: ${result.outcome}`);
    }
    remaining = remaining.filter((difference) => results.get(difference)?.outcome !== 'rebuilt');
  }
  for (const difference of differences) {
    if (difference.resource !== 'payment' || remaining.includes(difference)) continue;
    const result = await rebuilder.rebuild('payment', difference.id, 'disputes');
    if (result.outcome !== 'rebuilt') results.set(difference, result);
  }
  return differences.map((difference) => {
    const finding = buildFinding(difference);
    const result = results.get(difference);
    if (result === undefined) return finding;
    const { outcome, reason, key_lost } = result;
    const kind = outcome === 'short' ? outcome : finding.kind;
    return {
      ...finding,
      kind,
      done: outcome === 'rebuilt',
      ...omitUndefined({ reason, key_lost }),
    };
  });
}

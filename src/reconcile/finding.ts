import { REFUSED, type Standing } from './standing';
import type { Difference } from './walk';

/** Act of `--apply` on a difference. `none`: nothing is needed; `person`: it can't be done here. */
type Act = 'rebuild' | 'restart' | 'deliver' | 'none' | 'person';

/** Difference between the two stores, and what became of it. */
export interface Finding {
  kind: Difference['kind'] | 'short' | 'orphan' | 'undelivered' | 'callback';
  resource: Difference['resource'] | 'event';
  id: string;
  account_id: string | null;
  livemode: boolean | null;
  /** Standing in MongoDB and in Temporal, in words. */
  document: string | null;
  workflow: string | null;
  /** ISO 8601: the time from which its age is counted. */
  since: string;
  act: Act;
  done: boolean;
  /** Reason why it was left. */
  reason?: string;
  /** Whether its idempotency key is not taken again: it is unknown, or its life is over. */
  key_lost?: boolean;
}

const ACTS: Record<Difference['kind'], Act> = {
  missing: 'rebuild',
  behind: 'rebuild',
  // The workflow takes the record over on its next move.
  ahead: 'none',
  contradicts: 'person',
};

/** Shows a difference between a document and its workflow. */
export function findingOf({ workflow, document, ...difference }: Difference): Finding {
  const { kind, resource, id, running, started_at } = difference;
  const { account_id = null, livemode = null, updated_at = started_at } = document ?? {};
  const run = running ? 'running' : 'closed';
  return {
    ...{ kind, resource, id, account_id, livemode },
    document: document && `${document.status} v${document.version}`,
    workflow: workflow && `${standingText(workflow)}, ${run}`,
    since: updated_at,
    act: ACTS[kind],
    done: false,
  };
}

/** A refusal has no version. */
function standingText(workflow: Standing): string {
  const { status, version } = workflow;
  return workflow === REFUSED ? status : `${status} v${version}`;
}

/** Whether it keeps the two stores apart. */
export function isLeft({ act, done }: Finding): boolean {
  return act !== 'none' && !done;
}

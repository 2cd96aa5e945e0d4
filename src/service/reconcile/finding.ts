import { REFUSED, type ResourceState } from './state';
import type { Difference } from './walk';

/** Act of `--apply`. `none`: no act is needed; `person`: an operator must act. */
type Act = 'rebuild' | 'restart' | 'deliver' | 'none' | 'person';

export interface Finding {
  kind: Difference['kind'] | 'short' | 'orphan' | 'undelivered' | 'callback';
  resource: Difference['resource'] | 'event';
  id: string;
  account_id: string | null;
  livemode: boolean | null;
  /** State in MongoDB and in Temporal, as text. */
  document: string | null;
  workflow: string | null;
  /** ISO 8601; the age of the finding starts here. */
  since: string;
  act: Act;
  done: boolean;
  reason?: string;
  /** It is unknown or has expired. */
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
    workflow: workflow && `${formatState(workflow)}, ${run}`,
    since: updated_at,
    act: ACTS[kind],
    done: false,
  };
}

/** A refusal has no version. */
function formatState(workflow: ResourceState): string {
  const { status, version } = workflow;
  return workflow === REFUSED ? status : `${status} v${version}`;
}

export function isUnresolved({ act, done }: Finding): boolean {
  return act !== 'none' && !done;
}

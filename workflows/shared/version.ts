import { upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';

/**
 * Whether the search attribute has another version. It is absent in a run that does not count all
 * that earlier runs have posted.
 */
export function isOtherVersion(version: number): boolean {
  const shown = readShown();
  return shown !== undefined && shown !== version;
}

/**
 * Removes the version before these steps, which post without a transition, so that `reconcile`
 * reads the history.
 */
export function hideVersionBefore<Activities extends object>(
  steps: readonly (string & keyof Activities)[],
  activities: Activities,
): Activities {
  const names = new Set<string | symbol>(steps);
  return new Proxy(activities, {
    get: (target, name, receiver) => {
      if (names.has(name)) hideVersion();
      return Reflect.get(target, name, receiver);
    },
  });
}

function hideVersion(): void {
  if (readShown() === undefined) return;
  upsertSearchAttributes([{ key: SEARCH_KEYS.version, value: null }]);
}

function readShown(): number | undefined {
  return workflowInfo().typedSearchAttributes.get(SEARCH_KEYS.version);
}

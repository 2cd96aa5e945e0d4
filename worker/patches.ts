import type { PatchActivationCallback } from '@temporalio/worker';

type State = 'active' | 'inactive';

/**
 * Changes of workflows that are behind `patched()`. A release ships a new one `inactive`: workflows
 * keep the old behavior, so that a worker of the release before continues them, in a rolling restart
 * and after a rollback. The next release makes it `active`.
 * @see docs/operations.md#changes-that-are-switched-on
 */
export const PATCHES: Readonly<Record<string, State>> = {
  approvals: 'active',
  'callbacks-in-order': 'active',
  'holds-returns': 'active',
  'holds-sent': 'active',
  'renews-at-rest': 'active',
  'requires-amount': 'active',
  'store-lacking-fields': 'active',
  'store-reversal-failed': 'active',
};

/** Creates the answer to a workflow that meets a change. One that has recorded it keeps it. */
export function createPatchActivation(patches = PATCHES): PatchActivationCallback {
  return ({ patchId }) => patches[patchId] !== 'inactive';
}

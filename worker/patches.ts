import type { PatchActivationCallback } from '@temporalio/worker';

type State = 'active' | 'inactive';

/**
 * A release ships a change `inactive`, so that a worker of the release before continues its
 * workflows, in a rolling restart and after a rollback; the next release makes it `active`.
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

/** Histories that have recorded a change keep it. */
export function createPatchActivation(patches = PATCHES): PatchActivationCallback {
  return ({ patchId }) => patches[patchId] !== 'inactive';
}

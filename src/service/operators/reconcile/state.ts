import { defaultPayloadConverter } from '@temporalio/common';
import type { History } from '@temporalio/common/lib/proto-utils';
import { z } from 'zod';
import type { Resource } from '../../../lifecycles';

export interface ResourceState {
  status: string;
  /** Number of the workflow's writes. */
  version: number;
}

export type StateDocument = ResourceState &
  Pick<Resource, 'account_id' | 'livemode' | 'updated_at'>;

/** The workflow refused the resource. */
export const REFUSED: ResourceState = { status: 'refused', version: 0 };

/**
 * - `missing`: the workflow has opened it, but it is not in MongoDB
 * - `behind`: MongoDB has an earlier version
 * - `ahead`: MongoDB has a later version; the workflow syncs from it on its next write
 * - `contradicts`: the same version with another status, or the workflow has refused the resource
 */
export type Disagreement = 'missing' | 'behind' | 'ahead' | 'contradicts';

/** @returns null when both agree, or the resource is not opened yet */
export function compare(
  workflow: ResourceState | null,
  document: ResourceState | null,
): Disagreement | null {
  if (workflow === null) return null;
  if (workflow === REFUSED) return document === null ? null : 'contradicts';
  if (document === null) return 'missing';
  if (document.version < workflow.version) return 'behind';
  if (document.version > workflow.version) return 'ahead';
  return document.status === workflow.status ? null : 'contradicts';
}

const LocalStep = z.looseObject({ activity_type: z.string() });

/** Whether one of some activities has ended, also as a local one. @param histories of all runs */
export function hasEnded(
  steps: readonly string[],
  histories: readonly Pick<History, 'events'>[],
): boolean {
  return histories.some(({ events }) => {
    const scheduled = new Map<string, string>();
    return (events ?? []).some((event) => {
      const { activityTaskScheduledEventAttributes: start } = event;
      if (start) scheduled.set(String(event.eventId), start.activityType?.name ?? '');
      const ended = event.activityTaskCompletedEventAttributes?.scheduledEventId;
      if (ended != null) return steps.includes(scheduled.get(String(ended)) ?? '');
      const marker = event.markerRecordedEventAttributes?.details?.['data']?.payloads?.[0];
      if (marker == null) return false;
      const local = LocalStep.safeParse(defaultPayloadConverter.fromPayload(marker));
      return local.success && steps.includes(local.data.activity_type);
    });
  });
}

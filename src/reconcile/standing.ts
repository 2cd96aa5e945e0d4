import { defaultPayloadConverter } from '@temporalio/common';
import type { History } from '@temporalio/common/lib/proto-utils';
import { z } from 'zod';

/** State of a resource after so many moves, as Temporal or MongoDB tells it. */
export interface Standing {
  status: string;
  version: number;
}

type HistoryEvent = NonNullable<History['events']>[number];
type Payload = Parameters<typeof defaultPayloadConverter.fromPayload>[0];

/** Steps that answer with where the resource stands. */
const TELLING = /^(open|abandon|load)(Payment|Refund|Payout)$|^record(Payment|Refund|Payout)Move$/;

const Answer = z.looseObject({ status: z.string(), version: z.int() });
const LocalStep = z.looseObject({ activity_type: z.string() });

/** Reads where a resource stands from a history of its workflow; null when that never opened it. */
export function standingIn({ events }: Pick<History, 'events'>): Standing | null {
  const scheduled = new Map<string, string>();
  let standing: Standing | null = null;
  for (const event of events ?? []) {
    const { activityTaskScheduledEventAttributes: start } = event;
    if (start) scheduled.set(String(event.eventId), start.activityType?.name ?? '');
    const { activity, result } = ended(event, scheduled);
    const answer = TELLING.test(activity) ? Answer.safeParse(read(result)) : undefined;
    if (answer?.success) {
      const { status, version } = answer.data;
      standing = { status, version };
    }
  }
  return standing;
}

/** The step that ended with this event, and its result. */
function ended(
  {
    activityTaskCompletedEventAttributes: end,
    markerRecordedEventAttributes: marker,
  }: HistoryEvent,
  scheduled: ReadonlyMap<string, string>,
): { activity: string; result?: Payload | undefined } {
  if (end) {
    const activity = scheduled.get(String(end.scheduledEventId)) ?? '';
    return { activity, result: end.result?.payloads?.[0] };
  }
  const step = LocalStep.safeParse(read(marker?.details?.['data']?.payloads?.[0]));
  if (!step.success) return { activity: '' };
  return { activity: step.data.activity_type, result: marker?.details?.['result']?.payloads?.[0] };
}

function read(payload: Payload | undefined): unknown {
  return payload === undefined ? undefined : defaultPayloadConverter.fromPayload(payload);
}

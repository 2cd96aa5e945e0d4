import { defaultPayloadConverter } from '@temporalio/common';
import type { History } from '@temporalio/common/lib/proto-utils';
import { z } from 'zod';

/** Steps that book money beside the moves, and count no version. */
export const BOOKINGS = [
  'recordLateMoney',
  'recordLateReversed',
  'recordDispute',
  'clawBack',
] as const;

export type Booking = (typeof BOOKINGS)[number];

/** State of a resource after so many moves, as Temporal or MongoDB tells it. */
export interface Standing {
  status: string;
  version: number;
  bookings: readonly Booking[];
}

type HistoryEvent = NonNullable<History['events']>[number];
type Payload = Parameters<typeof defaultPayloadConverter.fromPayload>[0];

/** Steps that answer with where the resource stands. */
const TELLING =
  /^(open|abandon|load)(Crypto)?(Payment|Refund|Payout|Settlement)$|^record(Crypto)?(Payment|Refund|Payout|Settlement)Move$/;

/** Steps that free the key of what was refused. */
const FREEING = /^(abandon(Refund|Payout)|releaseCryptoClaim)$/;

const Answer = z.looseObject({ status: z.string(), version: z.int() });
/** Bookings that were made: one that could not be says so. */
const Booked = z.union([
  z.undefined(),
  z.null(),
  z.looseObject({ reversed: z.boolean() }),
  z.looseObject({ outcome: z.literal('booked') }),
]);
const LocalStep = z.looseObject({ activity_type: z.string() });

/**
 * Reads where a resource stands from the histories of its runs, the oldest first; null when none of
 * them opened it.
 */
export function standingIn(histories: readonly Pick<History, 'events'>[]): Standing | null {
  let standing: Pick<Standing, 'status' | 'version'> | null = null;
  const bookings = new Set<Booking>();
  for (const { activity, result } of histories.flatMap(endedSteps)) {
    const answer = TELLING.test(activity) ? Answer.safeParse(result) : undefined;
    if (answer?.success) standing = answer.data;
    const booking = BOOKINGS.find((name) => name === activity);
    if (booking !== undefined && wasBooked(booking, result)) bookings.add(booking);
  }
  if (standing === null) return null;
  const { status, version } = standing;
  return { status, version, bookings: [...bookings] };
}

/** Late money that the bank sent back in another amount is still here. */
function wasBooked(booking: Booking, result: unknown): boolean {
  const booked = Booked.safeParse(result);
  if (!booked.success) return false;
  if (booking !== 'recordLateReversed') return true;
  return booked.data?.['reversed'] === true;
}

/** Standing of what its workflow refused: it has opened nothing, and never will. */
export const REFUSED: Standing = { status: 'refused', version: 0, bookings: [] };

/**
 * Whether the histories end a refusal: the step that frees the key found nothing written, so that no
 * attempt under way can be accepted after it.
 */
export function wasRefused(histories: readonly Pick<History, 'events'>[]): boolean {
  const isFreed = histories.flatMap(endedSteps).some(({ activity }) => FREEING.test(activity));
  return isFreed && standingIn(histories) === null;
}

interface Ended {
  activity: string;
  result: unknown;
}

function endedSteps({ events }: Pick<History, 'events'>): Ended[] {
  const scheduled = new Map<string, string>();
  return (events ?? []).map((event) => {
    const { activityTaskScheduledEventAttributes: start } = event;
    if (start) scheduled.set(String(event.eventId), start.activityType?.name ?? '');
    const { activity, result } = ended(event, scheduled);
    return { activity, result: read(result) };
  });
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

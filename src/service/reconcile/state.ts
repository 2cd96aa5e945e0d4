import { defaultPayloadConverter } from '@temporalio/common';
import type { History } from '@temporalio/common/lib/proto-utils';
import { z } from 'zod';
import { getReleaseStep, KINDS, listStateSteps, type UncountedStep } from '../../domain/resources';

/** Steps that book money without a transition, so the version does not change. */
export const BOOKINGS = ['recordDispute', 'clawBack'] as const satisfies readonly UncountedStep[];

export type Booking = (typeof BOOKINGS)[number];

export interface ResourceState {
  status: string;
  version: number;
  /** Those of `BOOKINGS`, of receipts and of disputes. */
  bookings: readonly string[];
}

type HistoryEvent = NonNullable<History['events']>[number];
type Payload = Parameters<typeof defaultPayloadConverter.fromPayload>[0];

const STATE_STEPS = new Set(KINDS.flatMap(listStateSteps));

const RELEASE_STEPS = new Set([...KINDS.map(getReleaseStep), 'releaseCryptoClaim']);

const Answer = z.looseObject({ status: z.string(), version: z.int() });
/** A failed booking has another shape. */
const BookedResult = z.union([
  z.undefined(),
  z.null(),
  z.looseObject({ outcome: z.literal('posted') }),
]);
const Receipts = z.looseObject({
  receipts: z.array(z.looseObject({ id: z.string(), state: z.string() })),
});
const Disputes = z.looseObject({
  disputes: z.array(z.looseObject({ id: z.string(), state: z.string() })),
});
const Sent = z.looseObject({ sent: z.array(z.string()) });
const Held = z.looseObject({ held: z.array(z.string()) });
const SentHeld = z.looseObject({ sent_held: z.array(z.looseObject({ id: z.string() })) });
const LocalStep = z.looseObject({ activity_type: z.string() });

/**
 * @param histories oldest first
 * @returns null when none opened the resource
 */
export function readResourceState(histories: readonly Pick<History, 'events'>[]) {
  let state: Pick<ResourceState, 'status' | 'version'> | null = null;
  const bookings = new Set<string>();
  for (const { activity, result } of histories.flatMap(listEndedSteps)) {
    const answer = STATE_STEPS.has(activity) ? Answer.safeParse(result) : undefined;
    if (answer?.success) state = answer.data;
    const booking = BOOKINGS.find((name) => name === activity);
    if (booking !== undefined && BookedResult.safeParse(result).success) bookings.add(booking);
    const receipts = RECEIPT_STEPS.has(activity) ? Receipts.safeParse(result).data : undefined;
    for (const each of listReceiptBookings(receipts?.receipts ?? [])) bookings.add(each);
    const disputes = DISPUTE_STEPS.has(activity) ? Disputes.safeParse(result).data : undefined;
    for (const each of listDisputeBookings(disputes?.disputes ?? [])) bookings.add(each);
    const sent = SENT_STEPS.has(activity) ? Sent.safeParse(result).data : undefined;
    for (const id of sent?.sent ?? []) bookings.add(`sent ${id}`);
    const held = HELD_STEPS.has(activity) ? Held.safeParse(result).data : undefined;
    for (const id of held?.held ?? []) bookings.add(`held ${id}`);
    const sentHeld = SENT_HELD_STEPS.has(activity) ? SentHeld.safeParse(result).data : undefined;
    for (const { id } of sentHeld?.sent_held ?? []) bookings.add(`sent_held ${id}`);
  }
  if (state === null) return null;
  const { status, version } = state;
  return { status, version, bookings: [...bookings] };
}

const SENT_STEPS = listSteps('recordRefundSent', 'recordPayoutSent');
const DISPUTE_STEPS = listSteps('recordDisputeReport', 'clawBack', 'liftDispute');
const HELD_STEPS = listSteps('recordReturnHeld');
const SENT_HELD_STEPS = listSteps('recordSentHeld');
const RECEIPT_STEPS = listSteps('recordReceipt', 'recordReversal');

function listSteps(...steps: readonly UncountedStep[]): ReadonlySet<string> {
  return new Set<string>(steps);
}

/** Each receipt is held, and may be returned. */
export function listReceiptBookings(receipts: readonly { id: string; state: string }[]): string[] {
  return receipts.flatMap(({ id, state }) => [
    `held ${id}`,
    ...(state === 'returned' ? [`returned ${id}`] : []),
  ]);
}

/** A lost dispute may be won later. */
export function listDisputeBookings(disputes: readonly { id: string; state: string }[]): string[] {
  return disputes.flatMap(({ id, state }) => [
    `disputed ${id}`,
    ...(state === 'opened' ? [] : [`closed ${id}`]),
    ...(state === 'won' ? [`won ${id}`] : []),
  ]);
}

export const REFUSED: ResourceState = { status: 'refused', version: 0, bookings: [] };

/**
 * Whether the workflow refused the resource: the step that releases the key found nothing stored,
 * so no running attempt can be accepted after it.
 */
export function wasRefused(histories: readonly Pick<History, 'events'>[]): boolean {
  const isFreed = histories
    .flatMap(listEndedSteps)
    .some(({ activity }) => RELEASE_STEPS.has(activity));
  return isFreed && readResourceState(histories) === null;
}

/**
 * - `missing`: the workflow has opened it, but it is not in MongoDB
 * - `behind`: MongoDB has an earlier version, or lacks a booking
 * - `ahead`: MongoDB has a later version; the workflow syncs from it on its next transition
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
  const lacks = workflow.bookings.some((booking) => !document.bookings.includes(booking));
  if (document.version < workflow.version || lacks) return 'behind';
  if (document.version > workflow.version) return 'ahead';
  return document.status === workflow.status ? null : 'contradicts';
}

function listEndedSteps({ events }: Pick<History, 'events'>) {
  const scheduled = new Map<string, string>();
  return (events ?? []).map((event) => {
    const { activityTaskScheduledEventAttributes: start } = event;
    if (start) scheduled.set(String(event.eventId), start.activityType?.name ?? '');
    const { activity, result } = parseStep(event, scheduled);
    return { activity, result: decode(result) };
  });
}

/** Returns the step that ended with this event. */
function parseStep(
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
  const step = LocalStep.safeParse(decode(marker?.details?.['data']?.payloads?.[0]));
  if (!step.success) return { activity: '' };
  return { activity: step.data.activity_type, result: marker?.details?.['result']?.payloads?.[0] };
}

function decode(payload: Payload | undefined): unknown {
  return payload === undefined ? undefined : defaultPayloadConverter.fromPayload(payload);
}

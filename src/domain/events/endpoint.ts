import { DEFAULT_EVENT_TYPES, type EventType } from './event';

/** `failing`: disabled by the service after `FAILING_DAYS`. */
export const DISABLED_REASONS = ['merchant', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

export const ENDPOINT_STATUSES = ['enabled', 'disabled'] as const;

/** Account time without a success. @see docs/webhooks.md#an-endpoint-that-keeps-failing */
const FAILING_DAYS = 5;

const DAY_MS = 86_400_000;

export function hasFailedTooLong(failing_since: string, nowMs: number): boolean {
  return nowMs - Date.parse(failing_since) >= FAILING_DAYS * DAY_MS;
}

/** @param enabled_events absent: the default */
export function listEnabledEvents(enabled_events: readonly EventType[] | undefined): EventType[] {
  return [...(enabled_events ?? DEFAULT_EVENT_TYPES)];
}

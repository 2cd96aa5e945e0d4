import { createHash } from 'node:crypto';
import type { temporal } from '@temporalio/proto';

type Event = temporal.api.history.v1.IHistoryEvent;

/** Events that depend on the machine, not on the code. */
const INCIDENTAL = new Set(['workflowTaskScheduled', 'workflowTaskTimedOut']);
const ATTRIBUTES = /^(.+)EventAttributes$/;

/** Names the path through the workflow's code. Runs of one path replay alike. */
export function namePath({ events }: temporal.api.history.v1.IHistory): string {
  const steps = (events ?? []).map(nameStep).filter((step) => step !== undefined);
  return createHash('sha256').update(steps.join('\n')).digest('hex');
}

function nameStep(event: Event): string | undefined {
  for (const [key, attributes] of Object.entries(event)) {
    const name = ATTRIBUTES.exec(key)?.[1];
    if (name === undefined || attributes == null || INCIDENTAL.has(name)) continue;
    const { activityType, signalName, markerName, acceptedRequest, details } = Object(attributes);
    const named = [
      activityType?.name,
      signalName,
      markerName,
      acceptedRequest?.input?.name,
      readMarker(
        details?.data?.payloads?.[0]?.data ?? details?.['patch-data']?.payloads?.[0]?.data,
      ),
    ];
    return [name, ...named.filter((each) => each !== undefined)].join(' ');
  }
  return undefined;
}

function readMarker(data: Uint8Array | undefined): string | undefined {
  if (data === undefined) return undefined;
  try {
    const { activity_type, id } = Object(JSON.parse(Buffer.from(data).toString('utf8')));
    return activity_type ?? id;
  } catch {
    return undefined;
  }
}

import { PART_NAMES } from '../../stack/state-file';
import type { Kill } from './nemesis';
import type { PatientClient } from './patient-client';
import type { WebhookReceiver } from './webhook-receiver';

export interface Story {
  made: readonly unknown[];
  events: readonly unknown[];
  kills: readonly Kill[];
  /** Until the last payment had reached its goal. */
  drivenMs: number;
  /** From then on until the last event was delivered. */
  deliveredMs: number;
  receiver: WebhookReceiver;
  client: PatientClient;
}

/** Describes in four lines, for a reader, how the run went. */
export function summarize(story: Story): string {
  const { made, events, kills, receiver, client } = story;
  const { sent, troubled, retries, errors } = client.counts;
  const times = [...receiver.received.values()].reduce((sum, one) => sum + one.times, 0);
  const met = [...errors].map(([why, count]) => `${count} × ${why}`).join(', ');
  return [
    `${made.length} payments, ${events.length} events posted ${times} times, ${kills.length} kills.`,
    `Killed: ${summarizeKills(kills)}.`,
    `Calls: ${sent} requests, ${troubled} calls met an error, ${retries} retries (${met}).`,
    `Driven in ${seconds(story.drivenMs)}, told of ${seconds(story.deliveredMs)} later.`,
  ].join('\n');
}

/** Per part: how often it was killed, and its longest recovery. */
function summarizeKills(kills: readonly Kill[]): string {
  return PART_NAMES.map((part) => {
    const own = kills.filter((kill) => kill.part === part);
    const ready = seconds(Math.max(...own.map(({ readyMs }) => readyMs)));
    const served = seconds(Math.max(...own.map(({ servedMs }) => servedMs)));
    return `${part} ×${own.length} (ready in ${ready}, serving in ${served})`;
  }).join(', ');
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

import { Badge, type Tone } from './parts';

const TONES: Readonly<Record<string, Tone>> = {
  settled: 'good',
  authorized: 'good',
  completed: 'good',
  delivered: 'good',
  received: 'good',
  confirmed: 'good',
  underpaid: 'note',
  held: 'note',
  rejected: 'bad',
  failed: 'bad',
  returned: 'bad',
  exhausted: 'bad',
};

/** State of a resource or of a delivery, in words and in colour. */
export function Status({ of }: { of: string }) {
  return <Badge tone={TONES[of] ?? 'plain'}>{statusName(of)}</Badge>;
}

/** Words of a state: `Awaiting customer` for `awaiting_customer`. */
export function statusName(status: string): string {
  const words = status.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

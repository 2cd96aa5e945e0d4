import { createHash } from 'node:crypto';

/** Derives a UUID (version 8, RFC 9562 §5.8) from a name, so that a repeated write keeps its id. */
export function deriveUuid(name: string): string {
  const bytes = createHash('sha256').update(name).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6); // version 8
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [8, 12, 16, 20, 32].map((end, i) => hex.slice([0, 8, 12, 16, 20][i], end)).join('-');
}

/** @see docs/decisions.md#events */
export function eventId(resource: string, resourceId: string, transition: number): string {
  return `evt_${deriveUuid(`${resource}:${resourceId}:${transition}`)}`;
}

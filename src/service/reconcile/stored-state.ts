import type { Resource } from '../../lifecycles';
import {
  BOOKINGS,
  type Booking,
  listDisputeBookings,
  listReceiptBookings,
  type ResourceState,
} from './state';

export type StateDocument = ResourceState & {
  account_id: string;
  livemode: boolean;
  updated_at: string;
};

export function toState(document: Resource): StateDocument {
  const { status, version, account_id, livemode, updated_at } = document;
  return { status, version, account_id, livemode, updated_at, bookings: listBookings(document) };
}

function listSent(document: Resource): string[] {
  const sent = 'sent_again' in document ? (document.sent_again ?? []) : [];
  const late = 'sent_late' in document && document.sent_late ? [document.sent_late] : [];
  return [...late, ...sent].map(({ id }) => id);
}

function listHeld(document: Resource): string[] {
  const held = 'returns_held' in document ? (document.returns_held ?? []) : [];
  return held.map(({ id }) => id);
}

function listSentHeld(document: Resource): string[] {
  const held = 'sent_held' in document ? (document.sent_held ?? []) : [];
  return held.map(({ id }) => id);
}

function listBookings(document: Resource): string[] {
  if ('due_at' in document) {
    return [
      ...listSent(document).map((id) => `sent ${id}`),
      ...listHeld(document).map((id) => `held ${id}`),
      ...listSentHeld(document).map((id) => `sent_held ${id}`),
    ];
  }
  if (!('browser_hash' in document)) return [];
  const isBooked: Record<Booking, boolean> = {
    recordDispute: Boolean(document.disputed_at ?? document.dispute_ended_at),
    clawBack: document.disputes?.some(({ kind }) => kind === 'clawed_back') ?? false,
  };
  return [
    ...BOOKINGS.filter((booking) => isBooked[booking]),
    ...listReceiptBookings(document.receipts ?? []),
    ...listDisputeBookings(document.disputes ?? []),
  ];
}

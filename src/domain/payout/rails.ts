import { CURRENCIES } from '../money/currencies';

export type RecipientType = 'card' | 'bank_account';

type RailDue =
  | { kind: 'after'; seconds: number }
  /** 18:00 in Frankfurt on the next TARGET2 business day. */
  | { kind: 'next_business_day' };

export const RAIL_FIELDS = [
  'card_number',
  'date_of_birth',
  'iban',
  'sort_code',
  'account_number',
  'address_line1',
  'city',
  'postal_code',
] as const;
export type RecipientField = (typeof RAIL_FIELDS)[number];

interface PublicRail {
  display_name: string;
  recipient_type: RecipientType;
  typical_speed: string;
  can_be_returned: boolean;
}

export interface RailRules extends PublicRail {
  currencies: readonly string[];
  required_fields: readonly RecipientField[];
  /** Reaches only the SEPA area. */
  sepa: boolean;
  /** Files carry only Latin letters. @see docs/sepa.md#text */
  latin: boolean;
  due: RailDue;
}

const ADDRESS = ['address_line1', 'city', 'postal_code'] as const;

/** @see docs/api.md#rails, docs/api.md#recipients */
export const RAILS = {
  card_payout: {
    display_name: 'Card payout',
    recipient_type: 'card',
    typical_speed: 'instant',
    can_be_returned: false,
    currencies: CURRENCIES,
    required_fields: ['card_number', 'date_of_birth', ...ADDRESS],
    sepa: false,
    latin: false,
    due: { kind: 'after', seconds: 15 * 60 },
  },
  sepa_credit_transfer: {
    display_name: 'SEPA Credit Transfer',
    recipient_type: 'bank_account',
    typical_speed: 'next business day',
    can_be_returned: true,
    currencies: ['EUR'],
    required_fields: ['iban', ...ADDRESS],
    sepa: true,
    latin: true,
    due: { kind: 'next_business_day' },
  },
  sepa_instant: {
    display_name: 'SEPA Instant',
    recipient_type: 'bank_account',
    typical_speed: 'seconds',
    can_be_returned: true,
    currencies: ['EUR'],
    required_fields: ['iban', ...ADDRESS],
    sepa: true,
    latin: false,
    due: { kind: 'after', seconds: 60 },
  },
  faster_payments: {
    display_name: 'Faster Payments',
    recipient_type: 'bank_account',
    typical_speed: 'seconds to two hours',
    can_be_returned: true,
    currencies: ['GBP'],
    required_fields: ['sort_code', 'account_number'],
    sepa: false,
    latin: false,
    due: { kind: 'after', seconds: 2 * 3_600 },
  },
} as const satisfies Record<string, RailRules>;

export type RailId = keyof typeof RAILS;

export function isRailId(id: string): id is RailId {
  return Object.hasOwn(RAILS, id);
}

export const RAIL_IDS: readonly RailId[] = Object.freeze(Object.keys(RAILS).filter(isRailId));

export function railRules(id: RailId): RailRules {
  return RAILS[id];
}

/** Whether its recipient waits for the money. */
export function isInstant(method: string): boolean {
  return isRailId(method) && railRules(method).due.kind === 'after';
}

export function railEntry(id: RailId) {
  const { display_name, recipient_type, typical_speed, can_be_returned } = railRules(id);
  return { method: id, display_name, recipient_type, typical_speed, can_be_returned };
}

import type { WithId } from 'mongodb';
import type { DisabledReason } from '../domain/webhook/endpoint';
import type { EventType } from '../domain/webhook/event';
import type { Encrypted } from '../encryption/encrypter';

interface EndpointSecret {
  ciphertext: Encrypted;
  /** ISO 8601: the secret signs from then on. */
  active_from: string;
}

/** @see docs/webhooks.md#register-an-endpoint */
export interface EndpointDocument {
  account_id: string;
  livemode: boolean;
  /** `we_…` */
  endpoint_id: string;
  /** 0 to 15, each once in an environment, which bounds the number of endpoints. */
  slot: number;
  position: string;
  url: string;
  description: string | null;
  /** Absent while it is enabled. */
  disabled_reason?: DisabledReason;
  /** Account time since which no attempt is known to have succeeded. */
  failing_since?: string;
  /** Account time of a success; the latest may be `SUCCESS_NOTED_MS` later. */
  last_success_at?: string;
  /** Oldest first: the signing secret and, during a roll, the next one. */
  secrets: EndpointSecret[];
  /** Absent: all types, those of later versions too. */
  enabled_events?: EventType[];
  created_at: string;
  updated_at: string;
}

export type Endpoint = WithId<EndpointDocument>;

export type EndpointChange = Partial<
  Pick<EndpointDocument, 'url' | 'description'> & {
    enabled_events: readonly EventType[] | 'all';
    /** Null enables it. */
    disabled_reason: DisabledReason | null;
    /** Null ends it. */
    failing_since: null;
  }
>;

export interface EndpointSetting {
  account_id: string;
  livemode: boolean;
  url: string;
  endpoint_id: string;
  /** First secret; a stored one stays. */
  ciphertext: Encrypted;
  enabled_events?: readonly EventType[] | 'all' | undefined;
  now: Date;
  /** Account time; by default `now`. */
  at?: string;
}

/** Without an id: the oldest endpoint. */
export interface EndpointKey {
  account_id: string;
  livemode: boolean;
  endpoint_id?: string | undefined;
}

export interface SecretRoll extends EndpointKey {
  ciphertext: Encrypted;
  now: Date;
  /**
   * The current secret still signs for it: 0, 1 h or 24 h.
   * @see docs/webhooks.md#roll-the-secret
   */
  afterMs: number;
  /** Account time; by default the real one. */
  updated_at?: string;
}

export function secretOwner({
  account_id,
  livemode,
  endpoint_id,
}: Pick<EndpointDocument, 'account_id' | 'livemode' | 'endpoint_id'>): string {
  return `webhook_endpoint/${account_id}/${livemode ? 'live' : 'sandbox'}/${endpoint_id}`;
}

/** @returns undefined while no secret is active. @see docs/webhooks.md#roll-the-secret */
export function signingSecret(
  endpoint: Pick<EndpointDocument, 'secrets'>,
  now: Date,
): Encrypted | undefined {
  return endpoint.secrets.filter(({ active_from }) => active_from <= now.toISOString()).at(-1)
    ?.ciphertext;
}

import type { MongoClient } from 'mongodb';
import type { ClientAddress } from '../client-address';
import type { Rings } from '../keys/ring';
import type { Sealer } from '../keys/seal';
import type { Logger } from '../log';
import type { Payers } from '../merchants/payers';
import type { Connectors } from '../routing';
import type { Stores } from '../store';
import type { Redeliveries } from '../temporal/redeliveries';
import type { EndpointLimits } from '../webhooks/endpoint-limits';
import type { PostWebhook } from '../webhooks/post';

/** Acts on money, by the same door as the API's. */
export interface MerchantActs {
  /**
   * Refunds a payment, once under its key.
   * @param wish.amount minor units; all that remains when not given
   * @returns id of the refund
   * @throws Refusal 400, 404, 422; `temporarily_unavailable`: outcome unknown
   */
  refund(wish: {
    account_id: string;
    livemode: boolean;
    key: string;
    requestId: string;
    payment_id: string;
    amount?: number | undefined;
    reason?: string | undefined;
  }): Promise<string>;
  /** Cancels a payment. @throws Refusal 404; 422 `cannot_cancel`; `temporarily_unavailable` */
  cancel(wish: { account_id: string; livemode: boolean; payment_id: string }): Promise<void>;
  /**
   * Pays the whole balance of a coin to the wallet, once under its key.
   * @returns id of the settlement
   * @throws Refusal 422; `temporarily_unavailable`: outcome unknown
   */
  settle(wish: {
    account_id: string;
    livemode: boolean;
    key: string;
    requestId: string;
    asset: string;
    network: string;
  }): Promise<string>;
}

/** Dependencies of the dashboard, in one object. */
export interface DashboardDeps {
  stores: Stores;
  mongo: MongoClient;
  acts: MerchantActs;
  redeliveries: Redeliveries;
  connectors: Connectors;
  sealer: Sealer;
  /** Opens the payers of payments. */
  payers: Pick<Payers, 'open'>;
  keys: Pick<Rings, 'pay_token' | 'fingerprint'>;
  publicUrl: string;
  /** Whether sandbox endpoints may be on this machine. */
  allowPrivateWebhooks: boolean;
  /** Says which addresses the operator keeps from webhooks. */
  isDeniedAddress: (address: string) => boolean;
  /** Limits of test events. */
  limits: EndpointLimits;
  post: PostWebhook;
  /** Address by which attempts to sign in are counted. */
  clientAddress: ClientAddress;
  now: () => Date;
  log: Logger;
}

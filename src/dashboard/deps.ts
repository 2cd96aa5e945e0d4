import type { ClientAddress } from '../base/client-address';
import type { MerchantDeps } from '../service/deps';
import type { Redeliveries } from '../service/events/redeliveries';
import type { EndpointLimits } from '../webhooks/endpoint-limits';
import type { PostWebhook } from '../webhooks/post';

export interface DashboardDeps extends MerchantDeps {
  redeliveries: Redeliveries;
  publicUrl: string;
  allowPrivateWebhooks: boolean;
  /** Whether the operator denies webhooks to the address. */
  isDeniedAddress: (address: string) => boolean;
  /** Limits of test events. */
  limits: EndpointLimits;
  post: PostWebhook;
  /** Address by which sign-in attempts are counted. */
  clientAddress: ClientAddress;
}

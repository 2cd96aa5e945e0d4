import type { ClientAddress } from '../base/client-address';
import type { MerchantDeps } from '../service/deps';
import type { Redeliveries } from '../service/events/redeliveries';
import type { EndpointLimits } from '../webhooks/endpoint-limits';
import type { PostWebhook } from '../webhooks/post';

/** Dependencies of the dashboard, in one object. */
export interface DashboardDeps extends MerchantDeps {
  redeliveries: Redeliveries;
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
}

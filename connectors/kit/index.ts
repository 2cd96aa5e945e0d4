/** The connector kit. A connector imports nothing else of the service. @see docs/connectors.md */
export type * from '../contract/activities';
export type { Attempt } from '../contract/guard';
export { RecipientDeleted } from '../contract/recipients';
export { BankFailure, type BankLimits, type BankRequest, type CallBank } from './bank-client';
export { secretFile } from './config';
export { runConnector } from './connector';
export {
  type ConnectorDefinition,
  defineConnector,
  type PayoutTools,
  type Poll,
  type Report,
  type Tools,
  type Webhook,
} from './definition';
export { assertSigned, WebhookRefused, type WebhookRequest } from './webhook-request';

/**
 * Connector kit. A connector imports nothing else of the service, and the package declares the types
 * of these modules, with those that they import: none is one of the product's own.
 * @see docs/connectors.md
 */

export type { MadeLine, MadeTransfer } from '../../src/domain/banks/statement';
export type { Evidence } from '../../src/domain/dispute/evidence';
export { encodeIdentifier } from '../../src/domain/shape';
export type * from '../contract/activities';
export type { Attempt } from '../contract/attempt';
export { RecipientDeleted } from '../contract/recipient-deleted';
export {
  AnswerMalformed,
  BankFailure,
  type BankLimits,
  type BankRequest,
  type CallBank,
} from './bank-client';
export {
  assertSigned,
  type ConnectorDefinition,
  defineConnector,
  type Malformed,
  type PayoutTools,
  type Poll,
  type Report,
  type StatementDay,
  type Tools,
  type Webhook,
  WebhookRefused,
  type WebhookRequest,
} from './definition';
export { runConnector } from './run';
export { secretFile } from './secret-file';
export { createTestTools } from './testing';

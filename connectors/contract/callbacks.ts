export { readConnectorKey } from '../../src/connectors/key-file';
export { type ConnectorKey, signCallback } from '../../src/connectors/mac';
/** Report of a bank's callback to the product: call `deliverCallback` until it does not throw. */
export {
  CallbackConflict,
  type CallbackMeter,
  type CallbackReceipt,
  deliverCallback,
  type InboxStores,
  type ResourceCallback,
} from '../../src/temporal/bank-callbacks';
export { createCallbackMemory } from '../../src/temporal/callback-memory';

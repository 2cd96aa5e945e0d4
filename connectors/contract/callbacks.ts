/** Retry `deliverCallback` until it does not throw. */
export {
  CallbackConflict,
  type CallbackMeter,
  type CallbackReceipt,
  deliverCallback,
  type InboxStores,
  type ResourceCallback,
} from '../../src/callbacks/deliver';
export { readConnectorKey } from '../../src/callbacks/keys';
export { createCallbackMemory } from '../../src/callbacks/memory';
export { type ConnectorKey, signCallback } from '../../src/callbacks/verify';

/** The kit's way to report what a bank said. */
export {
  type CallbackDeps,
  type CallbackReceipt,
  deliverCallback,
  type InboxStores,
  type ResourceCallback,
} from '../../src/temporal/bank-callbacks';

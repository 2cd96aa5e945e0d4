export type { CallOptions, ClientOptions, CreateOptions } from './api';
export type { RawResponse } from './attempt';
export { type Client, createClient } from './client';
export {
  type AnyErrorCode,
  ApiError,
  ConnectionError,
  isApiError,
  PaymentsError,
  SignatureError,
  TimeoutError,
} from './errors';
export type { List, Page } from './list';
export type { BalanceTransaction } from './resources/balances';
export type { EventDelivery, ListedEvent } from './resources/events';
export type * from './schema';
export { type ReceivedWebhook, signWebhook, verifyWebhook } from './webhooks';

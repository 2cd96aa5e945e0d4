import { listAvailablePaymentMethods, listPaymentMethods } from './catalogue';
import type { Endpoint } from './endpoint';
import { cancelPayment, createPayment, getPayment, listPayments } from './payments';
import { simulatePayment } from './sandbox';

/** Every endpoint, in the order of the document. A new one is added here and in `src/api`. */
export const ENDPOINTS: readonly Endpoint[] = [
  createPayment,
  getPayment,
  listPayments,
  cancelPayment,
  listPaymentMethods,
  listAvailablePaymentMethods,
  simulatePayment,
];

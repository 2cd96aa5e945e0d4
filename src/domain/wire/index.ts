import { listAvailablePaymentMethods, listPaymentMethods } from './catalogue';
import type { Endpoint } from './endpoint';
import { cancelPayment, createPayment, getPayment, listPayments } from './payments';
import { createRefund, getRefund, listPaymentRefunds, listRefunds } from './refunds';
import { simulatePayment, simulateRefund } from './sandbox';

/** Every endpoint, in the order of the document. A new one is added here and in `src/api`. */
export const ENDPOINTS: readonly Endpoint[] = [
  createPayment,
  getPayment,
  listPayments,
  cancelPayment,
  listPaymentRefunds,
  createRefund,
  getRefund,
  listRefunds,
  listPaymentMethods,
  listAvailablePaymentMethods,
  simulatePayment,
  simulateRefund,
];

/** Workflows of the queue `lifecycle`; deliveries have a bundle of their own. */
export { audit } from './audit/audit';
export { cryptoPayment } from './crypto-payment/lifecycle';
export { cryptoSettlement } from './crypto-settlement/lifecycle';
export { payment } from './payment/lifecycle';
export { payout } from './payout/lifecycle';
export { refund } from './refund/lifecycle';
export { retention } from './retention/retention';
export { cryptoSettlements } from './settle/settle';

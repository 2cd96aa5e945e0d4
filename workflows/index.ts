/** Workflows of the queue `lifecycle`; deliveries have their own bundle. */

export { accountClock } from './clock/clock';
export { cryptoPayment } from './crypto-payment/lifecycle';
export { cryptoSettlement } from './crypto-settlement/lifecycle';
export { dispute } from './dispute/lifecycle';
export { payment } from './payment/lifecycle';
export { payout } from './payout/lifecycle';
export { refund } from './refund/lifecycle';
export { audit, cryptoSettlements, ledgerCheck, retention } from './schedules';

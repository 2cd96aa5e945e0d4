export { audit } from './audit/audit';
export { payment } from './payment/lifecycle';
export { payout } from './payout/lifecycle';
export { refund } from './refund/lifecycle';
export { webhookDelivery } from './webhook/delivery';

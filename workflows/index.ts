export { payment } from './payment';
export { payout } from './payout';
export { refund } from './refund';
export { webhookDelivery } from './webhook-delivery';

export { payment } from './payment';
export { refund } from './refund';
export { webhookDelivery } from './webhook-delivery';

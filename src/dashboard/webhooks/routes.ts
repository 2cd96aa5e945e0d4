import type { Route } from '../route';
import { DELIVERIES_ROUTE } from './deliveries';
import { DELIVERY_ROUTES } from './delivery';
import { ENDPOINT_ROUTES } from './endpoint';
import { SECRET_ROUTES } from './secret';
import { SEND_FAILED_ROUTES } from './send-failed';
import { TEST_EVENT_ROUTE } from './test-event';

/** Endpoint, secret, test events and deliveries. */
export const WEBHOOK_ROUTES: readonly Route[] = [
  ...ENDPOINT_ROUTES,
  ...SECRET_ROUTES,
  TEST_EVENT_ROUTE,
  DELIVERIES_ROUTE,
  ...DELIVERY_ROUTES,
  ...SEND_FAILED_ROUTES,
];

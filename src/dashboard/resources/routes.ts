import type { Route } from '../route';
import { PAYMENTS, PAYOUTS, REFUNDS } from './kinds';
import { listRoutes } from './list';
import { PAYMENT_ROUTES } from './payment-page';
import { PAYOUT_ROUTE } from './payout-page';
import { REFUND_ROUTE } from './refund-page';

/** Lists and pages of payments, refunds and payouts. */
export const RESOURCE_ROUTES: readonly Route[] = [
  ...listRoutes(PAYMENTS),
  ...PAYMENT_ROUTES,
  ...listRoutes(REFUNDS),
  REFUND_ROUTE,
  ...listRoutes(PAYOUTS),
  PAYOUT_ROUTE,
];

import { API_KEY_ROUTES } from './account/api-keys';
import { AUDIT_LOG_ROUTE } from './account/audit-log';
import { GETTING_STARTED_ROUTE } from './account/getting-started';
import { INVITATION_ROUTES } from './account/invitations';
import { PROFILE_ROUTES } from './account/profile';
import { TEAM_ROUTES } from './account/team';
import { CRYPTO_PAYMENTS, CRYPTO_SETTLEMENTS, CryptoTabs } from './crypto/kinds';
import { CRYPTO_PAYMENT_ROUTE } from './crypto/payment-page';
import { CRYPTO_SETTLEMENT_ROUTE } from './crypto/settlement-page';
import { WALLET_ROUTES } from './crypto/wallets';
import type { Route } from './frame/route';
import { BALANCES_ROUTE } from './overview/balances';
import { OVERVIEW_ROUTE } from './overview/overview';
import { PAYMENTS, PAYOUTS, REFUNDS } from './resources/kinds';
import { listRoutes } from './resources/list';
import { PAYMENT_ROUTES } from './resources/payment-page';
import { PAYOUT_ROUTE } from './resources/payout-page';
import { REFUND_ROUTE } from './resources/refund-page';
import { SECOND_FACTOR_ROUTES } from './sign-in/second-factor';
import { DELIVERIES_ROUTE } from './webhooks/deliveries';
import { DELIVERY_ROUTES } from './webhooks/delivery';
import { ENDPOINT_ROUTES } from './webhooks/endpoint';
import { SECRET_ROUTES } from './webhooks/secret';
import { SEND_FAILED_ROUTES } from './webhooks/send-failed';
import { TEST_EVENT_ROUTE } from './webhooks/test-event';

const CRYPTO_ROUTES: readonly Route[] = [
  {
    method: 'get',
    path: '/crypto',
    act: 'view',
    title: 'Crypto',
    handle: async ({ href }) => ({ go: href(CRYPTO_PAYMENTS.path) }),
  },
  ...listRoutes(CRYPTO_PAYMENTS, CryptoTabs),
  CRYPTO_PAYMENT_ROUTE,
  ...listRoutes(CRYPTO_SETTLEMENTS, CryptoTabs),
  CRYPTO_SETTLEMENT_ROUTE,
  ...WALLET_ROUTES,
];

export const ROUTES: readonly Route[] = [
  OVERVIEW_ROUTE,
  ...listRoutes(PAYMENTS),
  ...PAYMENT_ROUTES,
  ...listRoutes(REFUNDS),
  REFUND_ROUTE,
  ...listRoutes(PAYOUTS),
  PAYOUT_ROUTE,
  BALANCES_ROUTE,
  ...CRYPTO_ROUTES.map((route) => ({ ...route, crypto: true as const })),
  ...ENDPOINT_ROUTES,
  ...SECRET_ROUTES,
  TEST_EVENT_ROUTE,
  DELIVERIES_ROUTE,
  ...DELIVERY_ROUTES,
  ...SEND_FAILED_ROUTES,
  ...API_KEY_ROUTES,
  ...TEAM_ROUTES,
  ...INVITATION_ROUTES,
  AUDIT_LOG_ROUTE,
  GETTING_STARTED_ROUTE,
  ...PROFILE_ROUTES,
  ...SECOND_FACTOR_ROUTES,
];

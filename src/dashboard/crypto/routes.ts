import { listRoutes } from '../resources/list';
import type { Route } from '../route';
import { CRYPTO_PAYMENTS, CRYPTO_SETTLEMENTS } from './kinds';
import { CRYPTO_PAYMENT_ROUTE } from './payment-page';
import { SETTLE_ROUTE } from './settle';
import { CRYPTO_SETTLEMENT_ROUTE } from './settlement-page';
import { CryptoTabs } from './tabs';
import { WALLET_ROUTES } from './wallets';

const ROUTES: readonly Route[] = [
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
  SETTLE_ROUTE,
];

/** Pages of coins, which only accounts with crypto have. */
export const CRYPTO_ROUTES: readonly Route[] = ROUTES.map((route) => ({ ...route, crypto: true }));

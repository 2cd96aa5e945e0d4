import { API_KEY_ROUTES } from './api-keys';
import { AUDIT_LOG_ROUTES } from './audit-log';
import { CRYPTO_ROUTES } from './crypto/routes';
import { GETTING_STARTED_ROUTES } from './getting-started';
import { INVITATION_ROUTES } from './invitations';
import { BALANCES_ROUTE } from './overview/balances';
import { OVERVIEW_ROUTE } from './overview/overview';
import { PROFILE_ROUTES } from './profile';
import { RESOURCE_ROUTES } from './resources/routes';
import type { Route } from './route';
import { SECOND_FACTOR_ROUTES } from './second-factor';
import { TEAM_ROUTES } from './team';
import { WEBHOOK_ROUTES } from './webhooks/routes';

/** Pages and acts of signed-in people. */
export const ROUTES: readonly Route[] = [
  OVERVIEW_ROUTE,
  ...RESOURCE_ROUTES,
  BALANCES_ROUTE,
  ...CRYPTO_ROUTES,
  ...WEBHOOK_ROUTES,
  ...API_KEY_ROUTES,
  ...TEAM_ROUTES,
  ...INVITATION_ROUTES,
  ...AUDIT_LOG_ROUTES,
  ...GETTING_STARTED_ROUTES,
  ...PROFILE_ROUTES,
  ...SECOND_FACTOR_ROUTES,
];

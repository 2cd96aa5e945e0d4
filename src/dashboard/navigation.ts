import type { Route } from './route';

/** Entries of the navigation. Names are a contract. @see docs/dashboard.md#names-that-scripts-may-use */
const ENTRIES = [
  { name: 'Overview', path: '/overview' },
  { name: 'Payments', path: '/payments' },
  { name: 'Refunds', path: '/refunds' },
  { name: 'Payouts', path: '/payouts' },
  { name: 'Balances', path: '/balances' },
  { name: 'Crypto', path: '/crypto', crypto: true },
  { name: 'Webhooks', path: '/webhooks' },
  { name: 'API keys', path: '/api-keys' },
  { name: 'Team', path: '/team' },
  { name: 'Audit log', path: '/audit-log' },
  { name: 'Getting started', path: '/getting-started' },
] as const satisfies readonly NavigationEntry[];

export interface NavigationEntry {
  name: string;
  path: string;
  /** Whether it is there only where the account has crypto. */
  crypto?: true;
}

/** Lists the entries that have a page. */
export function navigationOf(routes: readonly Route[]): NavigationEntry[] {
  return ENTRIES.filter(({ path }) => routes.some((route) => route.path === path));
}

/** Entry that a path belongs to, so that a payment's page marks `Payments`. */
export function entryOf(
  navigation: readonly NavigationEntry[],
  path: string,
): NavigationEntry | undefined {
  return navigation.find((entry) => path === entry.path || path.startsWith(`${entry.path}/`));
}

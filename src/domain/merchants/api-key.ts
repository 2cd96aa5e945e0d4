/** @see docs/decisions.md#keys */
export const SCOPES = [
  'payments:read',
  'payments:write',
  'refunds:read',
  'refunds:write',
  'payouts:read',
  'payouts:write',
  'crypto:read',
  'crypto:write',
  'balances:read',
  'events:read',
  'sandbox:write',
  'requests:read',
  'webhooks:read',
  'webhooks:write',
  'disputes:read',
  'disputes:write',
] as const;

export type Scope = (typeof SCOPES)[number];

export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}

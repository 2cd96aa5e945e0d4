export const ROLES = ['owner', 'developer', 'finance', 'read_only'] as const;

export type Role = (typeof ROLES)[number];

export const ROLE_NAMES: Readonly<Record<Role, string>> = {
  owner: 'Owner',
  developer: 'Developer',
  finance: 'Finance',
  read_only: 'Read-only',
};

/** Roles that may do each act. @see docs/dashboard.md#roles */
export const ACTS = {
  view: ROLES,
  'self.change': ROLES,
  'keys.change': ['owner', 'developer'],
  'webhooks.change': ['owner', 'developer'],
  'webhooks.secret': ['owner', 'developer'],
  'clock.advance': ['owner', 'developer'],
  'brand.change': ['owner', 'developer'],
  'events.send': ['owner', 'developer'],
  'payments.refund': ['owner', 'finance'],
  'payments.cancel': ['owner', 'finance'],
  'disputes.answer': ['owner', 'finance'],
  'crypto.settle': ['owner', 'finance'],
  'wallets.change': ['owner', 'finance'],
  'team.change': ['owner'],
} as const satisfies Record<string, readonly Role[]>;

export type Act = keyof typeof ACTS;

export function mayAct(role: Role, act: Act): boolean {
  return ACTS[act].some((allowed) => allowed === role);
}

export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

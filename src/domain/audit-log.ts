/** Changes that leave a line in the audit log, and the words for each. @see docs/dashboard.md#audit-log */
export const AUDITED = {
  'account.created': 'Account made',
  'account.updated': 'Account changed',
  'account.frozen': 'Account frozen',
  'account.unfrozen': 'Account released',
  'api_key.created': 'API key made',
  'api_key.revoked': 'API key revoked',
  'connector_key.created': 'Connector key made',
  'connector_key.revoked': 'Connector key revoked',
  'webhook.set': 'Webhook endpoint set',
  'webhook.rolled': 'Signing secret rolled',
  'webhook.secret_shown': 'Signing secret shown',
  'event.sent': 'Event sent by hand',
  'payment.act': "Operator's act on a payment",
  'refund.act': "Operator's act on a refund",
  'payout.act': "Operator's act on a payout",
  'crypto_payment.act': "Operator's act on a payment in coins",
  'crypto_settlement.act': "Operator's act on a settlement in coins",
  'callback.delivered': 'Callback delivered by hand',
  'orphan.restarted': 'Workflow started again',
  'keys.rotated': 'Sealing key made',
  'keys.retired': 'Sealing key removed',
  'payment.cancelled': 'Payment cancelled',
  'refund.created': 'Refund made',
  'recipient.deleted': 'Recipient deleted',
  'settlement.created': 'Settlement asked for',
  'wallet.set': 'Wallet set',
  'balance.funded': 'Balance funded',
  'balance.adjusted': 'Balance corrected',
  'balance.reversed': 'Posting reversed',
  'user.invited': 'Person invited',
  'user.invitation_withdrawn': 'Invitation withdrawn',
  'user.joined': 'Person joined',
  'user.role_changed': 'Role changed',
  'user.removed': 'Person removed',
  'user.signed_in': 'Signed in',
  'user.signed_out_everywhere': 'Signed out everywhere',
  'user.password_changed': 'Password changed',
  'user.password_reset': 'Password reset',
  'user.second_factor_on': 'Second factor switched on',
  'user.second_factor_off': 'Second factor switched off',
  'user.recovery_code_used': 'Recovery code used',
} as const satisfies Record<string, string>;

export type AuditedAct = keyof typeof AUDITED;

/** Whether a change concerns an account, so that a merchant's log may have it. */
export function isOfAccount(act: AuditedAct): boolean {
  return !/^(?:connector_key|keys)[.]/.test(act);
}

/** Values that a line holds; never a secret. */
export type AuditFacts = Readonly<
  Record<string, string | number | boolean | null | readonly string[] | undefined>
>;

/** Forms of our secrets, and of their hashes. */
const SECRET = /sk_(?:sandbox|live)_|whsec_|cnsec_|\$argon2|^[A-Za-z0-9_-]{43}$/;

/** @throws Error when a value has the form of a secret */
export function assertNoSecret(facts: AuditFacts | null): void {
  for (const [name, value] of Object.entries(facts ?? {})) {
    const texts = Array.isArray(value) ? value : [value];
    if (texts.some((text) => typeof text === 'string' && SECRET.test(text))) {
      throw new Error(`The audit log must not hold a secret: ${name}.`);
    }
  }
}

/** Text as a line may hold it, where it is an operator's own. */
export function leaveOutSecret(text: string | undefined): string | undefined {
  const isSecret = text !== undefined && SECRET.test(text);
  return isSecret ? 'left out: it has the form of a secret' : text;
}

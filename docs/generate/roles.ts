import { ACTS, type Act, mayAct, ROLE_NAMES, ROLES } from '../../src/domain/account/dashboard-role';
import { table } from './markdown';

const WORDS: Readonly<Record<Act, string>> = {
  view: 'See everything but secrets',
  'self.change': 'Own password, second factor, sessions',
  'keys.change': 'Create and revoke API keys',
  'webhooks.change': 'Set the endpoint, roll its secret',
  'webhooks.secret': 'See the signing secret',
  'events.send': 'Send events again, and test events',
  'payments.refund': 'Refund payments',
  'payments.cancel': 'Cancel payments',
  'crypto.settle': 'Settle crypto balances',
  'wallets.change': 'Register wallets',
  'team.change': 'Change the team and its roles',
};

/** Acts of the dashboard by the roles that may do each. */
export function roleTable(): string {
  const names = ROLES.map((role) => ROLE_NAMES[role]);
  const acts = Object.keys(ACTS).filter((act): act is Act => Object.hasOwn(WORDS, act));
  const rows = acts.map((act) => [
    WORDS[act],
    ...ROLES.map((role) => (mayAct(role, act) ? 'yes' : '')),
  ]);
  return table(['What', ...names], rows);
}

import { ACTS, type Act, mayAct, ROLE_NAMES, ROLES } from '../../src/domain/account/dashboard-role';
import { list } from './markdown';

const WORDS: Readonly<Record<Act, string>> = {
  view: 'see everything but secrets',
  'self.change': 'change their own sign-in',
  'keys.change': 'manage API keys',
  'webhooks.change': 'manage webhook endpoints',
  'webhooks.secret': 'see signing secrets',
  'clock.advance': 'advance the sandbox clock',
  'brand.change': 'set the brand',
  'events.send': 'send events',
  'payments.refund': 'refund payments',
  'payments.cancel': 'cancel payments',
  'disputes.answer': 'answer disputes',
  'crypto.settle': 'settle crypto balances',
  'wallets.change': 'register wallets',
  'team.change': 'change the team',
};

/** Acts of the dashboard, by the roles that may do them. */
export function roleList(): string {
  const actsByRoles = new Map<string, string[]>();
  for (const act of Object.keys(ACTS).filter((act): act is Act => Object.hasOwn(WORDS, act))) {
    const roles = ROLES.filter((role) => mayAct(role, act)).map((role) => ROLE_NAMES[role]);
    const names = roles.join(', ');
    actsByRoles.set(names, [...(actsByRoles.get(names) ?? []), WORDS[act]]);
  }
  return list([...actsByRoles].map(([names, acts]) => `**${names}**: ${acts.join('; ')}`));
}

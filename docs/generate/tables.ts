import {
  CRYPTO_MAGIC_AMOUNTS,
  SETTLEMENT_MAGIC_AMOUNTS,
} from '../../connectors/sandbox/chain/magic-amounts';
import {
  MAGIC_AMOUNTS,
  PAYOUT_MAGIC_AMOUNTS,
  REFUND_MAGIC_AMOUNTS,
} from '../../connectors/sandbox/magic-amounts';
import { ASSETS, formatUnits } from '../../src/domain/crypto/assets';
import {
  ACTS,
  type Act,
  mayAct,
  ROLE_NAMES,
  ROLES,
} from '../../src/domain/merchants/dashboard-role';
import { GROWTH } from '../../src/service/installation/database';
import type { Variable } from '../../stack/usage';
import { code, codes, list, table } from './markdown';

export function assetTable(): string {
  const rows = ASSETS.map(({ asset, network, decimals, settled_from, least_deposit }) => [
    code(asset),
    code(network),
    String(decimals),
    formatUnits(settled_from, { asset, network }),
    formatUnits(least_deposit, { asset, network }),
  ]);
  return table(['Asset', 'Network', 'Digits', 'Settled from', 'Least deposit'], rows);
}

/** Rows that end; the page says that all others stay. */
export function growthTable(): string {
  const ending = GROWTH.filter(({ until }) => until !== 'always');
  const rows = ending.map(({ collections, until }) => [codes(collections), until]);
  return table(['Collections', 'Until'], rows);
}

type Amounts = Record<number, { description: string }>;

/** Amounts with which the sandbox bank misbehaves. */
export function magicAmountLists() {
  return {
    'payment-amounts': amountList(MAGIC_AMOUNTS),
    'refund-amounts': amountList(REFUND_MAGIC_AMOUNTS),
    'payout-amounts': amountList(PAYOUT_MAGIC_AMOUNTS),
    'crypto-payment-amounts': amountList(CRYPTO_MAGIC_AMOUNTS),
    'crypto-settlement-amounts': amountList(SETTLEMENT_MAGIC_AMOUNTS),
  };
}

function amountList(amounts: Amounts): string {
  const entries = Object.entries(amounts);
  return list(entries.map(([amount, { description }]) => `${code(amount)}: ${description}`));
}

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

export function variableTable(variables: readonly Variable[], head = 'Variable'): string {
  const rows = variables.map(({ name, usual, alone, description }) => [
    code(name),
    alone === usual ? formatValue(usual) : `${formatValue(usual)}; alone ${formatValue(alone)}`,
    description,
  ]);
  return table([head, 'Default', 'What it is'], rows);
}

/** Formats a value as code, but not a word about it. */
function formatValue(text: string): string {
  return text.includes(' ') || text === 'none' || text === 'required' ? text : code(text);
}

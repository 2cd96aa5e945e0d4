import { BALANCE_ACTS, mayCredit } from '../../src/domain/approval';
import { CRYPTO_PAYMENT_STATUSES } from '../../src/domain/crypto/payment';
import { PAYMENT_STATUSES } from '../../src/domain/payment/payment';
import { KINDS, RESOURCES } from '../../src/domain/resources';
import { code, codes, list } from './markdown';
import { TEXTS } from './workflow-texts';

/**
 * Attention reasons with the remedies that the page of a resource in the Temporal UI shows: a list of
 * each resource, and one of those that all resources have in common.
 */
export function remedyLists() {
  const all = Object.values(TEXTS).map(({ remedies }) => remedies);
  const isCommon = ([reason, remedy]: [string, string]) =>
    all.every((remedies) => remedies[reason] === remedy);
  const lists = Object.entries(TEXTS).map(([kind, { remedies }]) => {
    const own = Object.entries(remedies).filter((entry) => !isCommon(entry));
    return [`${kind}-remedies`, remedyList(own)];
  });
  const common = Object.entries(TEXTS.payment.remedies).filter(isCommon);
  return Object.fromEntries([['common-remedies', remedyList(common)], ...lists]);
}

function remedyList(entries: [string, string][]): string {
  return list(entries.map(([reason, remedy]) => `${code(reason)}: ${remedy}`));
}

/** States of the resources that have updates in any state. */
const STATUSES: Readonly<Partial<Record<string, readonly string[]>>> = {
  payment: PAYMENT_STATUSES,
  'crypto-payment': CRYPTO_PAYMENT_STATUSES,
};

/**
 * Updates of each resource, and the states in which operators can send them. The page describes once
 * what all resources have in common.
 */
export function updateLists() {
  const all = Object.values(TEXTS).map(({ descriptions }) => descriptions);
  const describe = (name: string, description = '') =>
    all.every((descriptions) => descriptions[name] === description)
      ? ''
      : `: ${withoutInput(description)}`;
  return Object.fromEntries(
    Object.entries(TEXTS).map(([kind, { acts, descriptions }]) => {
      const items = Object.entries(acts).map(([name, { from }]) => {
        const isAlways = STATUSES[kind]?.every((status) => from.includes(status)) === true;
        const states = isAlways ? 'in any state' : `while ${codes(from)}`;
        return `${code(name)} (${states})${describe(name, descriptions[name])}`;
      });
      return [`${kind}-updates`, list(items)];
    }),
  );
}

/** Descriptions without the input, which is the same for all updates. */
function withoutInput(description: string): string {
  return description.replace(/:? \{[^}]*\}/, '');
}

/** Acts that may credit a merchant. */
export function listCredits(): string {
  const balances = `balances: ${codes(BALANCE_ACTS.map((act) => `balance ${act}`))}`;
  const resources = KINDS.map((kind) => {
    const acts = RESOURCES[kind].acts.filter((act) => mayCredit(kind, act));
    return `${kind.replace('_', ' ')}s: ${codes(acts)}`;
  });
  return list([balances, ...resources]);
}

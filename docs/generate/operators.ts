import { BALANCE_ACTS, mayCredit } from '../../src/domain/approval';
import { KINDS, RESOURCES } from '../../src/domain/resources';
import { code, codes, list } from './markdown';
import { REMEDIES } from './workflow-texts';

/**
 * Attention reasons with the remedies that the page of a resource in the Temporal UI shows: a list of
 * each resource, and one of those that all resources have in common.
 */
export function remedyLists() {
  const all = Object.values(REMEDIES);
  const isCommon = ([reason, remedy]: [string, string]) =>
    all.every((remedies) => remedies[reason] === remedy);
  const lists = Object.entries(REMEDIES).map(([kind, remedies]) => {
    const own = Object.entries(remedies).filter((entry) => !isCommon(entry));
    return [`${kind}-remedies`, remedyList(own)];
  });
  const common = Object.entries(REMEDIES.payment).filter(isCommon);
  return Object.fromEntries([['common-remedies', remedyList(common)], ...lists]);
}

function remedyList(entries: [string, string][]): string {
  return list(entries.map(([reason, remedy]) => `${code(reason)}: ${shorten(remedy)}`));
}

/** Leaves out what the page says once: to ask the bank first, and how to send an act. */
function shorten(remedy: string): string {
  return remedy.replace(' Ask the bank. ', ' ').replaceAll(/run `\w+ act ID (\w+)`/g, 'send `$1`');
}

/** Acts that may credit a merchant. */
export function listCredits(): string {
  const balances = `balances: ${codes(BALANCE_ACTS)}`;
  const resources = KINDS.map((kind) => {
    const acts = RESOURCES[kind].acts.filter((act) => mayCredit(kind, act));
    return `${kind.replace('_', ' ')}s: ${codes(acts)}`;
  });
  return list([balances, ...resources]);
}

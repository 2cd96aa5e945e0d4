import { CREDITS, mayCredit } from '../../src/domain/approval';
import {
  COMMON_REMEDIES,
  describeRemedy,
  FINDING_REMEDIES,
  REMEDIES,
  type Remedy,
} from '../../src/domain/remedies';
import { KINDS, RESOURCES } from '../../src/domain/resources';
import { code, codes, list } from './markdown';

/** Attention reasons with their remedies: a list of each resource, and one of those that all have. */
export function remedyLists() {
  const lists = Object.entries(REMEDIES).map(([kind, remedies]) => [
    `${kind.replace('_', '-')}-remedies`,
    remedyList(remedies),
  ]);
  return Object.fromEntries([['common-remedies', remedyList(COMMON_REMEDIES)], ...lists]);
}

/** Findings of the trial balance with their remedies. */
export function listFindings(): string {
  return remedyList(FINDING_REMEDIES);
}

function remedyList(remedies: Readonly<Record<string, Remedy>>): string {
  return list(
    Object.entries(remedies).map(([reason, remedy]) => `${code(reason)}: ${shorten(remedy)}`),
  );
}

/** Leaves out what the page says once: to ask the bank first, and how to send an act. */
function shorten(remedy: Remedy): string {
  const text = describeRemedy(remedy).replace(' Ask the bank. ', ' ');
  return text.replaceAll(/`[\w-]+ act ID ([^`]+)`/g, '`$1`');
}

/** Acts that may credit a merchant. */
export function listCredits(): string {
  const onBalances = Object.keys(CREDITS.balance).map((act) => `balance ${act}`);
  const balances = `balances: ${codes([...onBalances, 'platform post'])}`;
  const resources = KINDS.map((kind) => {
    const acts = RESOURCES[kind].acts.filter((act) => mayCredit(kind, act));
    return `${kind.replace('_', ' ')}s: ${codes(acts)}`;
  });
  const lines = 'statements: `statement match`, by the charge that it books, and `statement clear`';
  return list([balances, ...resources, lines]);
}

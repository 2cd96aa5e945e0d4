import { CREDITS, mayCredit } from '../../src/domain/operators/approval';
import { AUTHORITY } from '../../src/domain/operators/authority';
import {
  COMMON_REMEDIES,
  describeRemedy,
  FINDING_REMEDIES,
  REMEDIES,
  type Remedy,
} from '../../src/domain/operators/remedies';
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

/** Where two reasons of a list require the same acts, the later one names the earlier. */
function remedyList(remedies: Readonly<Record<string, Remedy>>): string {
  const reasons = new Map<string, string>();
  const items = Object.entries(remedies).map(([reason, remedy]) => {
    const { what } = remedy;
    const acts = describeRemedy(remedy).slice(what.length);
    const earlier = reasons.get(acts);
    if (acts !== '' && earlier === undefined) reasons.set(acts, reason);
    const shownActs = earlier === undefined ? acts : ` Do as for ${code(earlier)}.`;
    return `${code(reason)}: ${shorten(what + shownActs)}`;
  });
  return list(items);
}

/** Leaves out what the page says once: to ask the bank first, and how to send an act. */
function shorten(text: string): string {
  return text.replace(' Ask the bank. ', ' ').replaceAll(/`[\w-]+ act ID ([^`]+)`/g, '`$1`');
}

/** Commands that need an operator's key on live, and those that another operator approves, too. */
export function authorityLists() {
  const keyed = Object.entries(AUTHORITY).filter(([, need]) => need === 'key');
  const approved = Object.entries(AUTHORITY).flatMap(([command, need]) => {
    if (typeof need === 'string') return [];
    const { when } = { when: undefined, ...need };
    return [`${code(command)}${when === undefined ? '' : ` ${when}`}`];
  });
  return {
    'key-commands': codes(keyed.map(([name]) => name)),
    'approved-commands': list(approved),
  };
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

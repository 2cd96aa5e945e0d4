import { isBalanceAccountName } from '../domain/account/balance-account';
import { ADJUSTMENTS, BANK_FEES, clearing, HELD, RECEIVABLE } from './ledger-accounts';

/** Opposite side of an operator's correction. */
export type Against = keyof typeof AGAINST | `clearing:${string}`;

const AGAINST = {
  adjustments: ADJUSTMENTS,
  receivable: RECEIVABLE,
  suspense: HELD,
  bank_fees: BANK_FEES,
} as const;

const isNamed = (name: string): name is keyof typeof AGAINST => Object.hasOwn(AGAINST, name);

export function parseAgainst(text: string): Against | undefined {
  if (isNamed(text)) return text;
  const connector = readConnector(text);
  return connector !== undefined && isBalanceAccountName(connector)
    ? `clearing:${connector}`
    : undefined;
}

export function readConnector(against: string): string | undefined {
  return /^clearing:(.+)$/.exec(against)?.[1];
}

export function getOppositeAccount(against: Against): string {
  return isNamed(against) ? AGAINST[against] : clearing(readConnector(against) ?? '');
}
